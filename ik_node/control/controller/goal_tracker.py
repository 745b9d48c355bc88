# SPDX-License-Identifier: Apache-2.0
"""GoalTracker: the requests that an arm pursues, one per tool, from acceptance to arrival."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ik_node.checks import Array
from ik_node.control.controller.report_queue import ReportQueue
from ik_node.control.robot.arm_model import ArmModel, Columns, JointModel
from ik_node.control.state.report import Level, Report
from ik_node.control.state.requests import Request
from ik_node.control.state.states import State
from ik_node.control.state.target_plan import TargetPlan, arrival_at

ARRIVING = 1.0  # [s] within which measured joints must arrive after the end of their commands
SAME = 1e-6  # [rad or m]: a smaller change of a target is ignored


class GoalTracker:
    """Counts requests and reports their results.

    arrival: when a request was received whose first setpoint is pending (steady), else None.
    """

    def __init__(self, reports: ReportQueue) -> None:
        self._reports = reports
        self._number = 0
        self._at_the_end: dict[str, Report] = {}  # by tool, when the arm arrives
        self._targets: dict[str, Array] = {}  # by tool, of its joints
        self._began = self._share = math.nan
        self._rested = math.inf  # since when the commands are constant [s]
        self.arrival: float | None = None

    def begin(
        self,
        plan: TargetPlan,
        request: Request,
        state: State,
        time: float,
        model: JointModel,
        target: Array,
    ) -> None:
        """Report the result of a request; the arm, now in state, pursues it if there are joint targets.

        time [s]: of the last setpoint. target: of all joints (k,) of model, for other tools as well.
        """
        self._number += 1
        report = plan.report(state, request, self._number)
        self._reports.add(report)
        if plan.joints is not None:
            for tool in [tool for tool in self._at_the_end if tool != request.tool]:
                self._judge(tool, *model.of(tool), target, request, state)
            self._at_the_end[request.tool] = plan.arrived_report(report)
            self._targets[request.tool] = target[model.of(request.tool)[1]]
            self.arrival = request.arrival
            self._began, self._rested = time, math.inf

    @property
    def pursues(self) -> bool:
        """Whether the arm pursues requests."""
        return bool(self._at_the_end)

    def waited(self, time: float) -> bool:
        """Whether measured joints, or a controller, have had enough time to arrive by time [s]."""
        self._rested = min(self._rested, time)
        return time >= self._rested + ARRIVING

    def _judge(
        self, tool: str, arm: ArmModel, columns: Columns, target: Array, request: Request, state: State
    ) -> None:
        """Check whether the target (k,) of a request for another tool still meets the goal of a tool."""
        report, q = self._at_the_end[tool], target[columns]
        if np.abs(q - self._targets[tool]).max() <= SAME:
            return
        self._targets[tool] = q
        found = None if report.goal is None else arm.solver.evaluate(report.goal, q)
        if found is not None and found.solved:
            self._at_the_end[tool] = replace(
                report, level=Level.OK, message=arrival_at(found), status=found.status.value, solution=found
            )
        elif report.status == 'solved' and report.request is not None:
            del self._at_the_end[tool]
            message = (
                f'{report.request.source} ended before the arm arrived: {request.source} moves its joints'
            )
            self._reports.add(
                replace(report, level=Level.WARN, message=message, phase='stopped', state=state)
            )

    def reject(self, request: Request, reason: str, state: State) -> None:
        """Report why a request is rejected."""
        self._number += 1
        message = f'{request.source} rejected: {reason}'
        self._reports.add(Report(Level.ERROR, message, 'rejected', 'rejected', state, request, self._number))

    def arrive(self, inexact: str | None = None) -> None:
        """Report that the arm has arrived, if it pursues requests. inexact: how far off it is."""
        if self._at_the_end:
            for report in self._at_the_end.values():
                message = f'{report.message}; {inexact}' if inexact else report.message
                self._reports.add(replace(report, message=message))
            self._at_the_end.clear()
            self._share = 1.0

    def share(self, time: float, remaining: float) -> float:
        """Return the completed share of the motion at time [s], with remaining [s] left.

        1 after an arrival; NaN without a motion, and while its end is unknown.
        """
        if not self._at_the_end:
            return self._share
        passed = max(0.0, time - self._began) if math.isfinite(self._began) else 0.0
        return passed / (passed + remaining) if passed else 0.0

    def end(self, state: State, reason: str, level: Level = Level.WARN) -> None:
        """End all requests; report those that the arm, now in state, was pursuing."""
        for report in self._at_the_end.values():
            if report.request is not None:
                message = f'{report.request.source} ended before the arm arrived: {reason}'
                self._reports.add(replace(report, level=level, message=message, phase='stopped', state=state))
        self._at_the_end.clear()
        self.arrival = None
        self._share = math.nan
