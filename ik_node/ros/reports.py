"""What ~/status says of a goal: one plain sentence, and the same as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from ik_node.control.inbox import Request
from ik_node.solver.goal import Solution


def report(level: bytes, name: str, message: str, values: Mapping[str, Any]) -> DiagnosticStatus:
    """Return a status message; numbers are written so that they can be read back exactly."""
    pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    return DiagnosticStatus(level=level, name=name, message=message, values=pairs)


def _goal_report(
    level: bytes, name: str, message: str, request: Request, word: str, **known: Any
) -> DiagnosticStatus:
    """Return the report on a goal; what is not known about it is NaN, zero or empty."""
    header = getattr(request.message, 'header', None)
    values = {
        'status': word,
        'position_error': math.nan,
        'direction_error': math.nan,
        'reason': '',
        'restarts': 0,
        'solve_time': 0.0,
        'goal_stamp': f'{header.stamp.sec}.{header.stamp.nanosec:09d}' if header else '',
        'frame': header.frame_id if header else '',
        'goal': request.topic,
    }
    return report(level, name, message, {**values, **known})


def state_report(level: bytes, name: str, message: str, word: str) -> DiagnosticStatus:
    """Say how the node is, apart from any goal."""
    return _goal_report(level, name, message, Request('', None), word)


def solution_report(
    name: str, request: Request, solution: Solution, solve_time: float, held: bool
) -> DiagnosticStatus:
    """Say how a solve ended, which took solve_time [s], and whether the arm is held back because of it."""
    reason = solution.reason.sentence if solution.reason else ''
    if solution.solved:
        level, message = DiagnosticStatus.OK, 'solved: the tool goes to the goal'
    else:
        act = 'the arm does not follow' if held else 'the arm goes as near as it can'
        level, message = DiagnosticStatus.WARN, f'{solution.status.value}: {reason}; {act}'
    return _goal_report(
        level,
        name,
        message,
        request,
        solution.status.value,
        position_error=solution.position_error,
        direction_error=solution.direction_error,
        reason=reason,
        restarts=solution.restarts,
        solve_time=solve_time,
    )


def joints_report(name: str, request: Request) -> DiagnosticStatus:
    """Say that a goal in joint values is taken."""
    message = 'solved: the joints go to the values asked for'
    return _goal_report(DiagnosticStatus.OK, name, message, request, 'solved')


def refusal_report(name: str, request: Request, reason: str) -> DiagnosticStatus:
    """Say that a request was refused, and why."""
    message = f'{request.topic} refused: {reason}'
    return _goal_report(DiagnosticStatus.ERROR, name, message, request, 'refused', reason=reason)
