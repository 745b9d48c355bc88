# SPDX-License-Identifier: Apache-2.0
"""Reports as messages: a sentence with data as text on ~/status, and numbers on ~/goal_state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from ik_node.control.state.report import Level, Report
from ik_node.control.state.snapshot import Snapshot

LEVELS = {
    Level.OK: DiagnosticStatus.OK,
    Level.WARN: DiagnosticStatus.WARN,
    Level.ERROR: DiagnosticStatus.ERROR,
}
STATUSES = (
    '',
    'solved',
    'unreachable',
    'not found',
    'rejected',
)  # ~/goal_state publishes their index
NUMBERS = (
    'goal',
    'state',
    'status',
    'position_error',
    'direction_error',
    'distance_left',
    'time_left',
    'share_done',
    'behind',
)


def diagnostic(level: Level, name: str, message: str, values: Mapping[str, Any]) -> DiagnosticStatus:
    """Return a status message; numbers are formatted so that they can be parsed back exactly."""
    pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    return DiagnosticStatus(level=LEVELS[level], name=name, message=message, values=pairs)


def status_message(name: str, report: Report) -> DiagnosticStatus:
    """Return a report as text; unknown values are NaN, zero or empty."""
    solution, request = report.solution, report.request
    values = {
        'status': report.status,
        'state': report.phase,
        'goal_number': report.number,
        'position_error': math.nan if solution is None else solution.position_error,
        'direction_error': math.nan if solution is None else solution.direction_error,
        'reason': _reason(report),
        'restarts': 0 if solution is None else solution.restarts,
        'solve_time': report.solve_time,
        'goal_stamp': '' if request is None else request.stamp,
        'frame': '' if request is None else request.frame,
        'goal': '' if request is None else request.source,
    }
    return diagnostic(report.level, name, report.message, values)


def _reason(report: Report) -> str:
    if report.solution is not None:
        return str(report.solution.reason or '')
    rejected = report.request is not None and report.status == 'rejected'
    return report.message.split(' rejected: ', 1)[-1] if rejected else ''


def goal_state(report: Report | None, arm: Snapshot) -> Float64MultiArray:
    """Return the progress to the goal of report (None before the first) as the values of NUMBERS.

    distance_left: largest remaining joint move [rad or m]. time_left in s, NaN while unknown. share_done:
    completed share of the motion, from 0 to 1, NaN without a goal. behind: distance of the tool from a moving
    goal [m], else NaN.
    """
    solution = None if report is None else report.solution
    status = report.status if report is not None and report.status in STATUSES else ''
    values = (
        0 if report is None else report.number,
        arm.state.code,
        STATUSES.index(status),
        math.nan if solution is None else solution.position_error,
        math.nan if solution is None else solution.direction_error,
        abs(arm.target - arm.position).max(initial=0.0),
        arm.remaining,
        arm.share,
        arm.behind,
    )
    size = len(values)
    dimension = MultiArrayDimension(label=','.join(NUMBERS), size=size, stride=size)
    return Float64MultiArray(layout=MultiArrayLayout(dim=[dimension]), data=[float(v) for v in values])
