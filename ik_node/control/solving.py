# SPDX-License-Identifier: Apache-2.0
"""GoalSolver: solves a goal, or a stream of goals, for targets of the joints."""

from __future__ import annotations

import math
import statistics
import time
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.errors import quoted
from ik_node.solver.goal import Cause, Goal, Solution, Status
from ik_node.solver.trees import TreeSolution

from .models import ArmModel, Columns, JointModel, TreeModel
from .paths import ToolPath, plan_path
from .pursuit import advanced
from .requests import Aim, Level, Request, TargetPlan, arrival_at
from .settings import ArmSettings
from .stamps import plausible_stamps, regularised_stamps
from .trajectory import MotionState

STREAM_GAP = 0.5  # [s] between goals: a shorter gap makes them one moving goal
FOLLOWED_GAP = 0.13  # [s] between goals from which a velocity can be estimated: 10 Hz with some jitter
AHEAD = 0.25  # [s] maximum extrapolation after the newest goal
BRIDGED = 3.5  # intervals after which the stream may have ended: two goals may be lost
RETURN = 0.4  # [s] in which the extrapolated motion then comes to rest at the newest goal
STAMPED, RECEIVED = 4, 8  # goals in an estimate, by stamps and by times of arrival, which have more jitter
JUMP = 0.1  # [rad or m] beyond what the speed limits allow: the goal has jumped


@dataclass(frozen=True, eq=False)
class _Target:
    position: Array
    received: float
    stamp: float | None


class _Motion(NamedTuple):
    """A parabola: at newest [s], with the interval of the targets [s]; place, rate and half the bend (n,)."""

    newest: float
    interval: float
    place: Array
    rate: Array
    bend: Array


class GoalStream:
    """The newest joint targets of one stream of goals; all times are seconds of one clock.

    velocity (n,): the speed limits, which distinguish a jump of the goal from its motion.
    """

    def __init__(self, velocity: Array) -> None:
        self._velocity = velocity
        self._targets: deque[_Target] = deque(maxlen=RECEIVED)
        self._motion: _Motion | None = None

    def clear(self) -> None:
        """Forget all targets."""
        self._targets.clear()
        self._motion = None

    def add(self, position: Array, received: float, stamp: float | None) -> None:
        """Add a target (n,), received at a time; stamp: the time of the goal if it has one.

        Duplicate and outdated goals are ignored.
        """
        last = self._targets[-1] if self._targets else None
        if last is not None and _older(stamp, last.stamp) and 0.0 <= received - last.received < STREAM_GAP:
            return
        if last is not None and not self._continues(last, position, received, stamp):
            self.clear()
        self._targets.append(_Target(position, received, stamp))
        self._motion = self._fitted()

    def _continues(self, last: _Target, position: Array, received: float, stamp: float | None) -> bool:
        if (last.stamp is None) != (stamp is None) or not 0.0 <= received - last.received < STREAM_GAP:
            return False
        if _older(stamp, last.stamp):
            return False
        expected = self.at(received)
        before = last.position if expected is None else expected.position
        room = JUMP + self._velocity * (received - last.received)
        return bool((np.abs(position - before) <= room).all())

    def _estimated_times(self) -> tuple[Array, bool]:
        """Return the times of the targets, and whether they are free of jitter."""
        received = np.array([target.received for target in self._targets])
        if self._targets[-1].stamp is None:
            return regularised_stamps(received)
        return plausible_stamps(np.array([target.stamp for target in self._targets], float), received), True

    def _fitted(self) -> _Motion | None:
        """Return a parabola through the newest targets, by least squares; None if they do not move."""
        if len(self._targets) < STAMPED:
            return None
        times, exact = self._estimated_times()
        count = min(len(times), STAMPED if exact else RECEIVED)
        times = times[-count:]
        interval = statistics.median(np.diff(times).tolist())  # much faster than numpy's for a few
        positions = np.array([target.position for target in self._targets])[-count:]
        if not 0.0 < interval <= FOLLOWED_GAP or not np.ptp(positions, axis=0).any():
            return None
        parabola = np.empty((3, positions.shape[1]))
        known = kernels.fit_parabola(times, positions, parabola)
        return _Motion(float(times[-1]), interval, *parabola) if known else None

    def at(self, time: float) -> MotionState | None:
        """Return the state of the targets at a time; None if they rest, or if their motion is unknown."""
        if self._motion is None:
            return None
        newest, interval, place, rate, bend = self._motion
        ahead, known = time - newest, min(BRIDGED * interval, AHEAD)
        if not -STREAM_GAP < ahead < known + RETURN:
            return None
        t = min(ahead, known)
        position, velocity = place + (rate + bend * t) * t, rate + 2.0 * bend * t
        if ahead <= known:
            return MotionState(position, velocity, 2.0 * bend)
        # A cubic, gentle so that an arm for which goals come again has little to catch up; without the
        # acceleration, which is no demand of the goal.
        s, beyond = (ahead - known) / RETURN, position - place
        return MotionState(
            place + (1.0 - s) ** 2 * ((1.0 + 2.0 * s) * beyond + s * RETURN * velocity),
            (1.0 - s) * ((1.0 - 3.0 * s) * velocity - 6.0 * s / RETURN * beyond),
            np.zeros(len(place)),
        )


def _older(stamp: float | None, last: float | None) -> bool:
    return stamp is not None and last is not None and stamp <= last


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


class GoalSolver(ABC):
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
                return f'joint "{name}" unwinds by {turn:.3g} rad during the motion to stay within its limits'
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


class ArmGoalSolver(GoalSolver):
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


class TreeGoalSolver(GoalSolver):
    """Every goal is solved together with the last ones of the other tools, which stay without one.

    Goals of different tools come at different times: every tool has a stream for the joints that only it
    moves, and one for its spare roll; the joints that tools share have one that every goal adds to.
    """

    model: TreeModel

    def __init__(self, model: TreeModel) -> None:
        super().__init__(model)
        self._goals: dict[str, Goal] = {}

    def _new_streams(self) -> list[tuple[Columns, GoalStream]]:
        velocity = self.model.joints.velocity[self.model.index]
        own = [self.model.alone(tool) for tool in self.model.arms]
        shared = np.setdiff1d(np.arange(self.model.tree.n), np.concatenate(own))
        parts = [np.intersect1d(block, columns) for columns in (*own, shared) for block in self.model.blocks]
        return [(columns, GoalStream(velocity[columns])) for columns in parts if columns.size]

    def restart(self) -> None:
        """Restart: the tools keep their present poses."""
        super().restart()
        self._goals.clear()

    def accept(self, plan: TargetPlan, request: Request) -> None:
        """Note that a plan is pursued; a goal that is not pursued leaves the other tools at theirs."""
        if plan.joints is not None:
            super().accept(plan, request)

    def _solve(
        self,
        goal: Goal,
        tool: str,
        arrival: float,
        position: Array,
        settings: ArmSettings,  # noqa: ARG002 - the solver of a tree has one method
    ) -> tuple[Solution, Array, str]:
        before, last = self._goals.copy(), self._last  # read once: teleoperation may clear them concurrently
        goals, solver = {**before, tool: goal}, self.model.solver
        if last is None or not last.streams(arrival):
            found = solver.solve(goals, position)
        elif last.solved and tool in before:
            found = solver.track(goals, last.q, last.before)
        else:
            found = solver.solve(goals, last.q)
        switched = next((str(x.reason) for x in found.tools.values() if x.other_branch is not None), '')
        if switched:
            found = solver.solve(goals, found.q)
        return _told(tool, found), found.q, switched

    def _followed(self, q: Array, plan: TargetPlan, request: Request) -> None:
        """Keep the goal, and add to the streams of the joints that it moves."""
        assert plan.goal is not None
        assert plan.solution is not None
        arm, columns = self.model.of(request.tool)
        reason = plan.solution.reason
        wished = plan.solution.solved or (reason is not None and reason.cause is Cause.CONFLICT)
        self._goals[request.tool] = plan.goal if wished else Goal(*arm.arm.fk(q[columns]))
        others = [self.model.alone(tool) for tool in self.model.arms if tool != request.tool]
        for joints, stream in self._streams:
            if not np.isin(joints, np.concatenate(others)).any():
                stream.add(q[joints], request.received, request.goal_time)


def _told(tool: str, found: TreeSolution) -> Solution:
    """Return the solution of a tool, not solved if another one cannot meet its goal, or stay, meanwhile."""
    own = found.tools[tool]
    if own.solved:
        for name, other in found.tools.items():
            if not other.solved and other.reason is not None:
                sentence = f'tool {quoted(name)}: {other.reason.sentence}'
                return replace(own, status=other.status, reason=replace(other.reason, sentence=sentence))
    return own


def goal_solver_of(model: JointModel) -> GoalSolver:
    """Return the targets for a model."""
    return TreeGoalSolver(model) if isinstance(model, TreeModel) else ArmGoalSolver(model)
