# SPDX-License-Identifier: Apache-2.0
"""GoalSolver: solves a goal, or a stream of goals, for targets of the joints."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.errors import quoted
from ik_node.solver.goal import Cause, Goal, Solution
from ik_node.solver.trees import TreeSolution

from .models import ArmModel, Columns
from .paths import ToolPath, plan_path
from .pursuit import advanced
from .requests import Aim, JointTargets, Level, Request, arrival_at
from .settings import ArmSettings
from .trajectory import MotionState

# When the messages of a stream were made, from their stamps or from when they arrived.

MIN_COUNT = 4  # messages from which a rate is known
PROMPT = 0.03  # [s] largest delay between stamp and arrival that is compensated


def plausible_stamps(stamps: Array, received: Array) -> Array:
    """Return stamps (k,), moved by one duration to the arrivals (k,) if they are in the future or too old."""
    late = float((received - stamps).min())
    return stamps if 0.0 <= late <= PROMPT else stamps + late


def regularised_stamps(times: Array) -> tuple[Array, bool]:
    """Return times of arrival (k,) without jitter, and True, if the rate is constant; else (times, False).

    Fits a line through the times by their numbers, of which some may be missing.
    """
    gaps = np.diff(times)
    interval = statistics.median(gaps.tolist()) if gaps.size >= MIN_COUNT - 1 else 0.0
    if interval <= 0.0:
        return times, False
    steps = np.round(gaps / interval)
    if steps.sum() == gaps.size:
        steps[:] = 1.0  # if two arrived together, the next one is later by the same time
    numbers = np.append(0.0, np.cumsum(steps))
    slope, begin = np.polyfit(numbers, times, 1)
    line = begin + slope * numbers
    even = (steps >= 1.0).all() and np.abs(times - line).max() < interval / 2.0
    return (line, True) if even else (times, False)


STREAM_GAP = 0.5  # [s] between goals: a shorter gap makes them one moving goal
FOLLOWED_GAP = 0.13  # [s] between goals from which a velocity can be estimated: 10 Hz with some jitter
AHEAD = 0.25  # [s] maximum extrapolation after the newest goal
BRIDGED = 3.5  # intervals after which the stream may have ended: two goals may be lost
RETURN = 0.4  # [s] in which the extrapolated motion then comes to rest at the newest goal
STAMPED, RECEIVED = 4, 8  # goals in an estimate, by stamps and by times of arrival, which have more jitter
PATIENCE = 20.0  # times the time budget, for a goal that continues no stream, if that has not been enough
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


EXTRAPOLATED = 0.1  # [s] for which a teleoperation command is extrapolated
MIN_SMOOTHING = 0.08  # [s] least smoothing in teleoperation: with 0.04 s the jerk limits amplify the tremor of a hand


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


class GoalSolver:
    """Turns goals into joint targets. A goal soon after another continues from the solution of that one.

    Every goal is solved together with the last ones of the other tools, which stay without one. Goals of
    different tools come at different times: every tool has a stream for the joints that only it moves, and
    one for its spare roll; the joints that tools share have one that every goal adds to.
    """

    def __init__(self, model: ArmModel) -> None:
        self.model = model
        self._last: Followed | None = None
        self._goals: dict[str, Goal] = {}  # by tool, that are met together
        self._newest = model.home  # joints (k,) of the newest goal
        self._streams = _streams_of(model)
        self._teleoperated: tuple[MotionState, float] | None = None  # state and time of its last command

    def restart(self) -> None:
        """Restart: the next goal is not part of a stream, and the tools keep their present poses."""
        self._last = None
        self._goals.clear()
        for _, _, stream in self._streams:
            stream.clear()
        self._teleoperated = None

    def find(
        self,
        aim: Aim,
        tool: str,
        arrival: float,
        position: Array,
        settings: ArmSettings,
        real: bool = False,
    ) -> JointTargets:
        """Return the targets for a goal of a tool received at arrival, with the joints at position (k,).

        real: the joints are measured.

        Raises InputError for joint targets beyond the limits, and for a path that cannot be followed.
        """
        if isinstance(aim, ToolPath):
            return self._along(aim, tool, position, settings)
        if not isinstance(aim, Goal):
            named, names = self.model.joint_targets(aim), self.model.joint_names
            joints = np.array([named.pop(name, math.nan) for name in names])
            message = 'solved: moving to the requested joint positions'
            return JointTargets(joints, Level.OK, message, 'arrived at the requested joint positions', others=named)
        begin = time.perf_counter()
        last = self._last  # read once: teleoperation may clear it concurrently
        solution, q, switched = self._solve(aim, tool, arrival, position, settings)
        before = last.q if last is not None and last.streams(arrival) else position
        switched = switched or self._unwinding(before, q)
        solve_time = time.perf_counter() - begin
        if solution.solved:
            level = Level.WARN if switched else Level.OK
            message = f'solved: {switched}; moving to the goal' if switched else 'solved: moving to the goal'
            return JointTargets(q, level, message, arrival_at(solution), aim, solution, solve_time)
        reason = f'{solution.status.value}: {solution.reason}'
        missed = solution.position_error > (aim.tolerance or settings.position_tolerance)
        if settings.on_unreachable == 'hold' or (settings.on_unreachable == 'auto' and real and missed):
            message = f'{reason}; holding position'
            return JointTargets(None, Level.WARN, message, message, aim, solution, solve_time)
        message = f'{reason}; moving as near to it as possible'
        return JointTargets(q, Level.WARN, message, arrival_at(solution), aim, solution, solve_time)

    def _unwinding(self, before: Array, q: Array) -> str:
        """Return which joint that only rolls the tool unwinds between before and q (k,), or ''."""
        for i in self.model.rolls:
            turn = float(q[i] - before[i])
            if abs(turn) > math.pi:
                name = self.model.joint_names[i]
                return f'joint "{name}" unwinds by {turn:.3g} rad during the motion to stay within its limits'
        return ''

    def _along(self, path: ToolPath, tool: str, position: Array, settings: ArmSettings) -> JointTargets:
        """Return the targets along a path of a tool that begins at position (k,)."""
        begin = time.perf_counter()
        found = plan_path(self.model, self.model.tools[tool], path, position, settings)
        end = position if found.trajectory is None else found.trajectory.positions[-1]
        duration = 0.0 if found.trajectory is None else found.trajectory.duration
        message = f'solved: moving along {found.length:.4g} m in {duration:.3g} s'
        arrived = 'arrived at the end of the path'
        if found.reason:
            message = f'unreachable: {found.reason}; moving along the part before it, in {duration:.3g} s'
            arrived = f'arrived at the end of the part that can be followed; {found.reason}'
        return JointTargets(
            end,
            Level.WARN if found.reason else Level.OK,
            message,
            arrived,
            solve_time=time.perf_counter() - begin,
            trajectory=found.trajectory,
            partial=bool(found.reason),
        )

    def _solve(
        self, goal: Goal, tool: str, arrival: float, position: Array, settings: ArmSettings
    ) -> tuple[Solution, Array, str]:
        """Return the solution for the tool, all joints (k,), and a sentence on a change of branch or ''."""
        before, last = self._goals.copy(), self._last  # read once: teleoperation may clear them concurrently
        goals, model = {**before, tool: goal}, self.model
        if last is None or not last.streams(arrival):
            found = model.solve(goals, position)
            # With kernels in Python or on a busy computer; nothing waits for this answer.
            if any(one.reason is not None and one.reason.cause is Cause.TIME for one in found.tools.values()):
                found = model.solve(goals, position, PATIENCE * settings.time_budget)
        elif last.solved and tool in before and settings.solver == 'lm':  # only lm tracks
            found = model.track(goals, last.q, last.before)
        else:
            found = model.solve(goals, last.q)
        switched = next((str(x.reason) for x in found.tools.values() if x.other_branch is not None), '')
        if switched:
            found = model.solve(goals, found.q)
        return _judged(tool, found), found.q, switched

    def accept(self, targets: JointTargets, request: Request) -> None:
        """Note that the arm moves to targets: a goal soon after it continues from its solution."""
        if targets.joints is None and len(self.model.tools) > 1:
            return  # the other tools stay at their goals
        q = targets.joints
        if q is None or targets.trajectory is not None or np.isnan(q).any():
            self.restart()
            return
        last, self._teleoperated, self._newest = self._last, None, q
        if targets.solution is None:  # joint positions: no tool keeps a goal
            self._last = None
            self._goals.clear()
        else:
            before = last.q if last is not None and last.streams(request.arrival) else None
            self._last = Followed(q, targets.solution.solved, before, request.arrival)
            self._keep(q, targets, targets.solution, request.tool)
        for tool, columns, stream in self._streams:
            if targets.solution is None or tool in (None, request.tool):
                stream.add(q[columns], request.received, request.goal_time)

    def _keep(self, q: Array, targets: JointTargets, solution: Solution, tool: str) -> None:
        """Keep the goal of a tool, or where joints q (k,) have it if it cannot be met by any of them."""
        assert targets.goal is not None
        own, reason = self.model.tools[tool], solution.reason
        conflicts = reason is not None and reason.cause is Cause.CONFLICT
        met = solution.solved or conflicts
        self._goals[tool] = targets.goal if met else Goal(*own.arm.fk(q[own.columns]))

    def steer(self, q: Array, time: float, rates: tuple[Array, Array] | None) -> None:
        """Note the targets of a teleoperation command q (arm.n,) at time [s], followed as a moving goal.

        rates: velocities and accelerations (arm.n,) there; None: from the positions before.
        """
        self._last, self._newest = None, q
        self._teleoperated = None if rates is None else (MotionState(q, *rates), time)
        for _, columns, stream in self._streams:
            if rates is None:
                stream.add(q[columns], time, time)
            else:
                stream.clear()

    def moving(self, time: float) -> MotionState | None:
        """Return the state of the joints (k,) at time [s] that follow a moving goal; None at rest."""
        if self._teleoperated is None:
            return self._streamed(time)
        state, then = self._teleoperated
        if abs(time - then) > EXTRAPOLATED:  # a step may be a little ahead of a setpoint
            return None
        return advanced(state, np.zeros(len(state.position)), time - then)

    def _streamed(self, time: float) -> MotionState | None:
        """Return the same from the streams; joints whose stream rests are at the newest goal."""
        found = MotionState(self._newest.copy(), *np.zeros((2, len(self._newest))))
        anything = False
        for _, columns, stream in self._streams:
            state = stream.at(time)
            if state is not None:
                anything = True
                for whole, part in zip(found, state, strict=True):
                    whole[columns] = part
        return found if anything else None

    def smoothing(self, settings: ArmSettings) -> float:
        """Return the time constant [s] with which errors vanish."""
        return settings.smoothing if self._teleoperated is None else max(settings.smoothing, MIN_SMOOTHING)


def _streams_of(model: ArmModel) -> list[tuple[str | None, Columns, GoalStream]]:
    """Return a stream for each block of joints: a jump of one does not end the motion of another.

    With the only tool that moves them, None for joints that tools share.
    """
    velocity = model.joints.velocity[model.index]
    parts: list[tuple[str | None, Columns]] = [(name, tool.own) for name, tool in model.tools.items()]
    parts.append((None, np.setdiff1d(np.arange(model.tree.n), np.concatenate([own for _, own in parts]))))
    divided = [(name, np.intersect1d(block, own)) for name, own in parts for block in model.blocks]
    return [(name, columns, GoalStream(velocity[columns])) for name, columns in divided if columns.size]


def _judged(tool: str, found: TreeSolution) -> Solution:
    """Return the solution of a tool, not solved if another one cannot meet its goal, or stay, meanwhile."""
    own = found.tools[tool]
    if own.solved:
        for name, other in found.tools.items():
            if not other.solved and other.reason is not None:
                sentence = f'tool {quoted(name)}: {other.reason.sentence}'
                return replace(own, status=other.status, reason=replace(other.reason, sentence=sentence))
    return own
