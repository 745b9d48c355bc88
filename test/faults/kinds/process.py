# SPDX-License-Identifier: Apache-2.0
"""Faults of the process."""

from __future__ import annotations

import signal

from faults.actions import Action, Draw, Plan


def killed(draw: Draw) -> Plan:
    """Kill it."""
    return _signal(draw, signal.SIGKILL)


def interrupted(draw: Draw) -> Plan:
    """Press Ctrl-C."""
    return _signal(draw, signal.SIGINT)


def terminated(draw: Draw) -> Plan:
    """End it as a manager does."""
    return _signal(draw, signal.SIGTERM)


def _signal(draw: Draw, number: int) -> Plan:
    return [Action(draw.time(), lambda arena: arena.kill(number))]


def stalls(draw: Draw) -> Plan:
    """Stop the process for a while."""
    begin, end = draw.span(0.02, 0.5)
    return [
        Action(begin, lambda arena: arena.kill(signal.SIGSTOP)),
        Action(end, lambda arena: arena.kill(signal.SIGCONT)),
    ]
