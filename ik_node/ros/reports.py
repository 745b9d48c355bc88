# SPDX-License-Identifier: Apache-2.0
"""Reports as messages: status and goal_state; NodeTime: the clock of a node in seconds since its start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from builtin_interfaces.msg import Time as Stamp
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from ik_node.checks import Array
from ik_node.control.requests import Level, Report, Snapshot
from ik_node.control.states import State
from ik_node.ros.conversions import (
    NS_PER_S,
)
from ik_node.solver.goal import Status

NO_CLOCK = 'use_sim_time is true, but no message has arrived on /clock: the arm does not move'


class NodeTime:
    """Seconds since 1970 need so many digits that a float rounds them to a quarter of a microsecond."""

    def __init__(self, node: Node) -> None:
        self._clock = node.get_clock()
        self._start = self.now_ns()

    def now_ns(self) -> int:
        """Return the node's clock [ns]."""
        return int(self._clock.now().nanoseconds)

    @property
    def stands(self) -> bool:
        """Whether the time is simulated and no /clock message has been received."""
        return self.now_ns() == 0

    def now(self) -> float:
        """Return the time since the start [s]."""
        return self.seconds(self.now_ns())

    def seconds(self, nanoseconds: int) -> float:
        """Return the time since the start [s] of a time of the node's clock [ns]."""
        return (nanoseconds - self._start) / NS_PER_S

    def nanoseconds(self, seconds: float) -> int:
        """Return the time of the node's clock [ns] of a time since the start [s]."""
        return self._start + round(seconds * NS_PER_S)

    def of(self, stamp: Stamp) -> float | None:
        """Return the time since the start [s] of the stamp of a message, None if that is zero."""
        nanoseconds = stamp.sec * NS_PER_S + stamp.nanosec
        return self.seconds(nanoseconds) if nanoseconds else None

    def stamp(self, seconds: float) -> Stamp:
        """Return the stamp of a time since the start [s]."""
        sec, nanosec = divmod(self.nanoseconds(seconds), NS_PER_S)
        return Stamp(sec=sec, nanosec=nanosec)


LEVELS = {
    Level.OK: DiagnosticStatus.OK,
    Level.WARN: DiagnosticStatus.WARN,
    Level.ERROR: DiagnosticStatus.ERROR,
}
STATUSES = ('', *(status.value for status in Status), 'rejected')  # ~/goal_state publishes their index
# The keys of ~/status and the numbers of ~/goal_state, each with its meaning.
KEYS = {
    'status': 'of a goal: ' + ', '.join(f'`{status}`' for status in STATUSES[1:]) + '; else the same as `state`',
    'state': 'of a goal: `moving` once it is accepted, `arrived`, `held`, `stopped` before it arrived, '
    '`rejected`; of the arm: `waiting`, `ready`, `stopped`, `faulted`, `hand-guided`, `late` while the '
    'motion waits for measurements, then `continuing`, or its present state',
    'arm': 'state of the arm: ' + ', '.join(f'`{state.value}`' for state in State),
    'goal_number': 'the same in all reports on a goal, 0 in a report on the arm',
    'position_error': 'm, NaN while unknown',
    'direction_error': 'rad, NaN while unknown',
    'reason': 'why the arm cannot meet the goal, or why the goal was rejected',
    'restarts': 'of the solver',
    'solve_time': 's',
    'goal_stamp': 'stamp of the goal',
    'frame': '`frame_id` of the goal',
    'goal': 'topic or service that the goal came from',
    'goal_position': 'x y z of the goal in the base link [m], empty without a position',
    'goal_direction': 'x y z of the unit direction of the goal in the base link, empty without one',
}
MEASURED_AGE = 'age of the oldest measurement [s]'  # in /diagnostics, of an arm that is measured
NUMBERS = {
    'goal': 'number of the goal, 0 before the first',
    'state': 'state of the arm: ' + ', '.join(f'{state.code} {state.value}' for state in State),
    'status': 'status of the goal: ' + ', '.join(f'{code} {status or "none"}' for code, status in enumerate(STATUSES)),
    'position_error': 'm',
    'direction_error': 'rad',
    'distance_left': 'largest joint move left [rad or m]',
    'time_left': 's, NaN during a stream of goals',
    'share_done': 'completed share of the motion, from 0 to 1; NaN without one and during a stream of goals',
    'behind': 'distance of the tool from a moving goal [m], else NaN',
}


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
        'arm': report.state.value,
        'goal_number': report.number,
        'position_error': math.nan if solution is None else solution.position_error,
        'direction_error': math.nan if solution is None else solution.direction_error,
        'reason': _reason(report),
        'restarts': 0 if solution is None else solution.restarts,
        'solve_time': report.solve_time,
        'goal_stamp': '' if request is None else request.stamp,
        'frame': '' if request is None else request.frame,
        'goal': '' if request is None else request.source,
        'goal_position': '' if report.goal is None else _numbers(report.goal.position),
        'goal_direction': '' if report.goal is None else _numbers(report.goal.direction),
    }
    return diagnostic(report.level, name, report.message, {key: values[key] for key in KEYS})


def _numbers(vector: Array | None) -> str:
    return '' if vector is None else ' '.join(map(repr, vector.tolist()))


def _reason(report: Report) -> str:
    if report.solution is not None:
        return str(report.solution.reason or '')
    rejected = report.request is not None and report.status == 'rejected'
    return report.message.split(' rejected: ', 1)[-1] if rejected else ''


def goal_state(report: Report | None, snapshot: Snapshot) -> Float64MultiArray:
    """Return the progress to the goal of report (None before the first) as the values of NUMBERS."""
    solution = None if report is None else report.solution
    status = report.status if report is not None and report.status in STATUSES else ''
    values = (
        0 if report is None else report.number,
        snapshot.state.code,
        STATUSES.index(status),
        math.nan if solution is None else solution.position_error,
        math.nan if solution is None else solution.direction_error,
        abs(snapshot.target - snapshot.position).max(initial=0.0),
        snapshot.remaining,
        snapshot.share,
        snapshot.behind,
    )
    size = len(values)
    dimension = MultiArrayDimension(label=','.join(NUMBERS), size=size, stride=size)
    return Float64MultiArray(layout=MultiArrayLayout(dim=[dimension]), data=[float(v) for v in values])
