# SPDX-License-Identifier: Apache-2.0
"""Targets: from goals to joint targets. Streams of goals are tracked on one branch."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from ik_node.checks import Array
from ik_node.control.motion.goal_stream import STREAM_GAP, GoalStream
from ik_node.control.motion.motion_state import MotionState
from ik_node.control.motion.pursuit import advanced
from ik_node.control.paths.lines import plan_path
from ik_node.control.paths.tool_path import ToolPath
from ik_node.control.robot.arm_model import ArmModel, Columns, JointModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.report import Level
from ik_node.control.state.requests import Aim, Request
from ik_node.control.state.target_plan import TargetPlan, arrival_at
from ik_node.solver.goal import Goal, Solution, Status

HELD = 0.1  # [s] for which a teleoperation command is extrapolated
CALM = 0.08  # [s] least smoothing in teleoperation: with 0.04 s the jerk limits amplify the tremor of a hand


@dataclass(frozen=True, eq=False)
class Followed:
    """The last goal: joints (k,) for it, whether they meet it, those before, and when it was received."""

    q: Array
    solved: bool
    before: Array | None
    arrival: float

    def streams(self, arrival: float) -> bool:
        """Whether a goal received at arrival continues from this one."""
        return 0.0 <= arrival - self.arrival < STREAM_GAP


class Targets(ABC):
    """Turns goals into joint targets. A goal soon after another continues from the solution of that one."""

    def __init__(self, model: JointModel) -> None:
        self.model = model
        self._last: Followed | None = None
        self._newest = model.home  # joints (k,) of the newest goal
        self._streams = self._new_streams()
        self._teleoperated: tuple[MotionState, float] | None = None  # state and time of its last command

    def restart(self) -> None:
        """Restart: the next goal is not part of a stream."""
        self._last = None
        for _, stream in self._streams:
            stream.clear()
        self._teleoperated = None

    def _new_streams(self) -> list[tuple[Columns, GoalStream]]:
        """Return a stream for each block of joints: a jump of one does not end the motion of another."""
        velocity = self.model.joints.velocity[self.model.index]
        return [(columns, GoalStream(velocity[columns])) for columns in self.model.blocks]

    def find(
        self,
        wanted: Aim,
        tool: str,
        arrival: float,
        position: Array,
        settings: ArmSettings,
        real: bool = False,
    ) -> TargetPlan:
        """Return the targets for a goal of a tool received at arrival, with the joints at position (k,).

        real: the joints are measured.

        Raises InputError for joint targets beyond the limits, and for a path that cannot be followed.
        """
        if isinstance(wanted, ToolPath):
            return self._along(wanted, tool, position, settings)
        if not isinstance(wanted, Goal):
            named, names = self.model.joint_targets(wanted), self.model.joint_names
            joints = np.array([named.pop(name, math.nan) for name in names])
            said = 'solved: moving to the requested joint positions'
            return TargetPlan(
                joints, Level.OK, said, 'arrived at the requested joint positions', others=named
            )
        begin = time.perf_counter()
        last = self._last  # read once: teleoperation may clear it concurrently
        solution, q, switched = self._solve(wanted, tool, arrival, position, settings)
        before = last.q if last is not None and last.streams(arrival) else position
        switched = switched or self._unwinding(before, q)
        solve_time = time.perf_counter() - begin
        if solution.solved:
            level = Level.WARN if switched else Level.OK
            said = f'solved: {switched}; moving to the goal' if switched else 'solved: moving to the goal'
            return TargetPlan(q, level, said, arrival_at(solution), wanted, solution, solve_time)
        reason = f'{solution.status.value}: {solution.reason}'
        missed = solution.position_error > settings.position_tolerance
        if settings.on_unreachable == 'hold' or (settings.on_unreachable == 'auto' and real and missed):
            said = f'{reason}; holding position'
            return TargetPlan(None, Level.WARN, said, said, wanted, solution, solve_time)
        said = f'{reason}; moving to the closest configuration'
        return TargetPlan(q, Level.WARN, said, arrival_at(solution), wanted, solution, solve_time)

    def _unwinding(self, before: Array, q: Array) -> str:
        """Return which joint that only rolls the tool unwinds between before and q (k,), or ''."""
        for i in self.model.rolls:
            turn = float(q[i] - before[i])
            if abs(turn) > math.pi:
                name = self.model.joint_names[i]
                return f'joint "{name}" turns by {turn:.3g} rad meanwhile, to stay within its limits'
        return ''

    def _along(self, wanted: ToolPath, tool: str, position: Array, settings: ArmSettings) -> TargetPlan:
        """Return the plan for a path of a tool that begins at position (k,)."""
        begin = time.perf_counter()
        found = plan_path(self.model.of(tool)[0], wanted, position, settings)
        end = position if found.trajectory is None else found.trajectory.positions[-1]
        duration = 0.0 if found.trajectory is None else found.trajectory.duration
        said = f'solved: moving along {found.length:.4g} m in {duration:.3g} s'
        arrived = 'arrived at the end of the path'
        if found.reason:
            said = f'unreachable: {found.reason}; moving along the part before it, in {duration:.3g} s'
            arrived = f'arrived at the end of the part that can be followed; {found.reason}'
        return TargetPlan(
            end,
            Level.WARN if found.reason else Level.OK,
            said,
            arrived,
            solve_time=time.perf_counter() - begin,
            path=found.trajectory,
            partial=bool(found.reason),
        )

    def accept(self, plan: TargetPlan, request: Request) -> None:
        """Note that a plan is pursued: a goal soon after it continues from its solution."""
        if plan.solution is None or plan.joints is None:
            self.restart()
            return
        last, q = self._last, plan.joints
        before = last.q if last is not None and last.streams(request.arrival) else None
        self._newest = q
        self._last = Followed(q, plan.solution.solved, before, request.arrival)
        self._teleoperated = None
        self._followed(q, plan, request)

    def _followed(self, q: Array, plan: TargetPlan, request: Request) -> None:  # noqa: ARG002
        """Note the joints (k,) of a goal that is pursued."""
        for columns, stream in self._streams:
            stream.add(q[columns], request.received, request.goal_time)

    def steer(self, q: Array, time: float, rates: tuple[Array, Array] | None) -> None:
        """Note the targets of a teleoperation command q (arm.n,) at time [s], followed as a moving goal.

        rates: velocities and accelerations (arm.n,) there; None: from the positions before.
        """
        self._last, self._newest = None, q
        self._teleoperated = None if rates is None else (MotionState(q, *rates), time)
        for columns, stream in self._streams:
            if rates is None:
                stream.add(q[columns], time, time)
            else:
                stream.clear()

    def moving(self, time: float) -> MotionState | None:
        """Return the state of the joints (arm.n,) at time [s] that follow a moving goal; None at rest."""
        if self._teleoperated is None:
            return self._streamed(time)
        state, then = self._teleoperated
        if abs(time - then) > HELD:  # a step may be a little ahead of a setpoint
            return None
        return advanced(state, np.zeros(len(state.position)), time - then)

    def _streamed(self, time: float) -> MotionState | None:
        """Return the same from the streams; joints whose stream rests are at the newest goal."""
        found = MotionState(self._newest.copy(), *np.zeros((2, len(self._newest))))
        anything = False
        for columns, stream in self._streams:
            state = stream.at(time)
            if state is not None:
                anything = True
                for whole, part in zip(found, state, strict=True):
                    whole[columns] = part
        return found if anything else None

    def smoothing(self, settings: ArmSettings) -> float:
        """Return the time constant [s] with which errors vanish."""
        return settings.smoothing if self._teleoperated is None else max(settings.smoothing, CALM)

    @abstractmethod
    def _solve(
        self, goal: Goal, tool: str, arrival: float, position: Array, settings: ArmSettings
    ) -> tuple[Solution, Array, str]:
        """Return the solution for the tool, all joints (k,), and a sentence on a change of branch or ''."""


class ArmTargets(Targets):
    """The targets of an arm with one tool."""

    model: ArmModel

    def _solve(
        self,
        goal: Goal,
        tool: str,  # noqa: ARG002 - there is only one
        arrival: float,
        position: Array,
        settings: ArmSettings,
    ) -> tuple[Solution, Array, str]:
        solver, last = self.model.solver, self._last  # read once: teleoperation may clear it concurrently
        if last is None or not last.streams(arrival):
            solution = solver.solve(goal, position)
        elif not last.solved or settings.solver != 'lm':  # only lm tracks
            solution = solver.solve(goal, last.q)
        else:
            solution = solver.track(goal, last.q, last.before)
            if solution.other_branch is not None:
                errors = solver.errors(goal, solution.other_branch)
                said = str(solution.reason)
                solution = replace(
                    solution,
                    status=Status.SOLVED,
                    q=solution.other_branch,
                    position_error=errors[0],
                    direction_error=errors[1],
                )
                return solution, solution.q, said
        return solution, solution.q, ''
