# SPDX-License-Identifier: Apache-2.0
"""Faults of a simulated clock."""

from __future__ import annotations

from faults.actions import Action, Draw, Plan
from faults.arena import Arena


def jumps(draw: Draw) -> Plan:
    """Jump forwards and backwards, by little and by much."""
    rng, plan = draw.rng, []
    for _ in range(int(rng.integers(1, 6))):
        sense = float(rng.choice([-1.0, 1.0]))
        step = sense * 10.0 ** float(rng.uniform(-3.0, 3.0))
        plan.append(Action(draw.time(), lambda arena, s=step: _clock(arena).jump(s)))
    return plan


def runs_off(draw: Draw) -> Plan:
    """Stand, or run slower or faster than real time."""
    rate = float(draw.rng.choice([0.0, 0.3, 3.0]))
    begin, end = draw.span()
    return [
        Action(begin, lambda arena: _clock(arena).run(rate)),
        Action(end, lambda arena: _clock(arena).run(1.0)),
    ]


def _clock(arena: Arena):
    clock = arena.driver.clock
    assert clock is not None
    return clock
