# SPDX-License-Identifier: Apache-2.0
"""Faults of the controllers that offer the action: how they answer, what they do unasked."""

from __future__ import annotations

from typing import Any

import numpy as np
from action_msgs.srv import CancelGoal

from faults.actions import Action, Draw, Plan
from faults.arena import of_tool
from faults.kinds.garbage import spoilt
from faults.setups import ACTION


def _conducts(span: tuple[float, float], **values: Any) -> Plan:
    """Let the controllers behave otherwise for a while."""
    return [
        Action(span[0], lambda arena: vars(arena.conduct).update(values)),
        Action(span[1], lambda arena: arena.conduct.behave()),
    ]


def rejects(draw: Draw) -> Plan:
    """Reject goals, and now and then to cancel."""
    return _conducts(draw.span(), rejects=True, keeps=bool(draw.rng.random() < 0.3))


def aborts(draw: Draw) -> Plan:
    """Abort each goal, now and then at once."""
    return _conducts(draw.span(0.1, 1.0), aborts=float(draw.rng.choice([0.0, 0.02, 0.2])))


def answers_late(draw: Draw) -> Plan:
    """Begin and answer late: by a few periods, or by more than the patience of any client."""
    delay = float(draw.rng.choice([draw.rng.uniform(0.0, 0.1), draw.rng.uniform(0.1, 1.5)]))
    return _conducts(draw.span(0.1, 1.5), delay=delay)


def never_answers(draw: Draw) -> Plan:
    """Move the arm, and say nothing."""
    return _conducts(draw.span(0.05, 1.5), delay=None)


def answers_twice(draw: Draw) -> Plan:
    """Give each answer twice, and then the contrary of it."""
    return _conducts(draw.span(0.1, 1.0), twice=True, rejects=bool(draw.rng.random() < 0.2))


def says_garbage(draw: Draw) -> Plan:
    """Put garbage into answers, results and feedback, which come before the good ones."""
    noise = np.random.default_rng(int(draw.rng.integers(2**32)))
    aborts = float(draw.rng.choice([0.05, 0.3])) if draw.rng.random() < 0.5 else None
    return _conducts(draw.span(0.1, 1.2), spoil=lambda message: spoilt(message, noise), aborts=aborts)


def cancelled_by_others(draw: Draw) -> Plan:
    """Let another client cancel all goals; the controller may keep on when the node cancels."""
    service = '/' + of_tool(f'{ACTION}/_action/cancel_goal', draw.arena.tool).lstrip('/')
    plan = _conducts(draw.span(), keeps=True) if draw.rng.random() < 0.3 else []
    for at in draw.times(float(draw.rng.uniform(2.0, 10.0)), *draw.span(0.1, 1.0)):
        plan.append(Action(at, lambda arena: arena.request(service, CancelGoal, CancelGoal.Request())))
    return plan


def goes_away(draw: Draw) -> Plan:
    """Go away and come back, perhaps several times."""
    plan: Plan = []
    for _ in range(int(draw.rng.integers(1, 3))):
        plan += _conducts(draw.span(0.02, 0.8), away=True)
    return plan
