# SPDX-License-Identifier: Apache-2.0
"""TargetPlan: the joint targets for a request, and the report on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ik_node.checks import Array
from ik_node.control.motion.trajectory import Trajectory
from ik_node.control.state.report import Level, Report
from ik_node.control.state.requests import Request
from ik_node.control.state.states import State
from ik_node.solver.goal import Goal, Solution


@dataclass(frozen=True, eq=False)
class TargetPlan:
    """The joint targets for a request.

    joints (k,): those of the arm, NaN for joints that keep theirs; None if the arm holds its position.
    others: those of joints off the arm, by name. goal and solution: None for joint targets. arrived: the
    message at the end of the motion. path: the path to the targets, None for the fastest motion. partial:
    only a part of a path can be followed.
    """

    joints: Array | None
    level: Level
    message: str
    arrived: str
    goal: Goal | None = None
    solution: Solution | None = None
    solve_time: float = 0.0
    path: Trajectory | None = None
    partial: bool = False
    others: Mapping[str, float] = field(default_factory=dict)

    def report(self, state: State, request: Request, number: int) -> Report:
        """Return the report on the request, with the arm in state."""
        status = 'unreachable' if self.partial else 'solved'
        if self.solution is not None:
            status = self.solution.status.value
        phase = 'held' if self.joints is None else 'moving'
        return Report(
            self.level,
            self.message,
            status,
            phase,
            state,
            request,
            number,
            self.goal,
            self.solution,
            self.solve_time,
        )

    def arrived_report(self, report: Report) -> Report:
        """Return the report for the end of the motion that report announced."""
        level = Level.OK if report.status == 'solved' else Level.WARN
        return replace(report, level=level, message=self.arrived, phase='arrived', state=State.HOLDING)


def filled(joints: Array, present: Array) -> Array:
    """Return the targets joints (k,), those of present (k,) where they are NaN."""
    return np.where(np.isnan(joints), present, joints)


def arrival_at(solution: Solution) -> str:
    """Return the message at the end of the motion to a solution."""
    if solution.solved:
        return 'arrived at the goal'
    return f'arrived at the closest configuration; {solution.status.value}: {solution.reason}'
