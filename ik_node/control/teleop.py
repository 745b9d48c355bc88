# SPDX-License-Identifier: Apache-2.0
"""TeleopController: moves an arm by twists, joint rates, and poses with a clutch."""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from ik_node.checks import Array
from ik_node.control.locks import Rank, ordered_lock
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.rotations import rotations
from ik_node.solver.goal import Goal, Solution
from ik_node.solver.solver import IkSolver

from .controller import ArmController
from .models import ArmModel
from .paths import limits_of_motion
from .requests import Level, Snapshot
from .settings import NO_CLUTCH, ArmSettings
from .solving import plausible_stamps
from .states import READY, State

# JogKinematics: teleoperation velocities and poses to joint positions, a step at a time.
#
# A tool velocity moves a goal, which the solver follows. The Jacobian is not inverted, so no singularity
# stops an arm with fewer than six joints. Out of reach the goal stays at the closest reachable point, so
# it does not wind up there. Limits of tool speed and turn rate are not known here: a faster goal runs
# ahead of the arm.

SHARES = (1.0, 0.5, 0.2, 0.05)  # of a step, tried in this order
OFF = 0.1  # share of a step by which the tool may miss its end
ROUNDING = 1e-6  # [m]
LEASH = 0.1  # [rad] by which the goal direction may be ahead of the tool direction during a turn
ALIGNED = 0.99  # cosine between tool axis and joint axis above which the joint rolls the tool
BETTER = 1e-3  # [m] by which another configuration must be closer before the arm changes to it
PATIENCE = 0.15  # [s] for which that must hold
INTERVAL = 0.04  # [s] minimum time between two searches for one
RIVALS = 32  # random starts of the search for an equally close configuration that is reached sooner
SOONER = 0.3  # [s] by which another one must be reached sooner while the arm is moving
AT_BOUND = 1e-3  # [m] position error above which a goal is out of reach


class JogKinematics:
    """The goal of a teleoperated arm; q (n,): its joint positions after the last step.

    held_back: the last step ended short of its command, at a limit or at the edge of the workspace.
    """

    def __init__(self, solver: IkSolver, q: Array) -> None:
        self._solver, self._arm = solver, solver.arm
        self.q = q.copy()
        self.held_back = False
        self._position, self._direction = self._arm.fk(q)  # of the goal
        self._roll = roll_joint(self._arm, q)
        self._better_for = 0.0  # [s] for which another configuration has been closer
        self._since = 0.0  # [s] since one was looked for

    def twist(self, linear: Array, angular: Array, dt: float, fastest: Array) -> Array:
        """Move the tool at linear [m/s] and angular [rad/s] velocity, (3,) in the base link, for dt [s].

        The tool slows down where a joint would exceed the velocity fastest (n,), and slides along the edge of
        its workspace. The component of angular about the tool axis turns a joint that only rolls the tool.
        Returns the joint positions (n,).
        """
        axis = self._arm.fk(self.q)[1]
        length, max_step = float(np.linalg.norm(linear)) * dt, fastest * dt
        if self._roll is not None:  # the other joints solve the goal
            max_step[self._roll] = 0.0
        for share in SHARES:
            position = self._position + share * dt * linear
            direction = _unit(rotation_about(share * dt * angular) @ self._direction)
            solution = self._solver.solve_nearby(Goal(position, direction), self.q, max_step)
            if solution.position_error <= OFF * share * length + ROUNDING:
                break
        else:
            position = self._arm.fk(solution.q)[0]  # the goal stays at the tool
        self.held_back = share < 1.0
        q = solution.q
        if self._roll is not None:
            q = self._rolled(q, float(angular @ axis) * dt, fastest[self._roll] * dt)
        if np.any(angular):
            direction = limited_to_cone(direction, self._arm.fk(q)[1])
        self._position, self._direction = position, direction
        self.q = q
        return q.copy()

    def jog(self, velocities: Array, dt: float) -> Array:
        """Move the joints at velocities (n,) for dt [s], up to their limits. Returns their positions (n,)."""
        target = self.q + velocities * dt
        lower, upper = np.minimum(self._arm.lower, self.q), np.maximum(self._arm.upper, self.q)
        self.q = np.clip(target, lower, upper)
        self.held_back = bool((self.q != target).any())
        self._position, self._direction = self._arm.fk(self.q)
        return self.q.copy()

    def reach(self, goal: Goal, dt: float, fastest: Array, now: Array) -> Array:
        """Move the tool to goal, or as close as possible without a jump. Returns the joint positions (n,).

        No joint exceeds the velocity fastest (n,), and position has priority. If another configuration has
        been closer by BETTER for PATIENCE, the arm changes to the closest one, of several the one that it
        reaches first from its present position now (n,). dt [s]: since the last step.
        """
        solution = self._solver.solve_nearby(goal, self.q, self._max_step(goal, fastest * dt))
        q = solution.q
        self._since += dt
        if solution.position_error < BETTER:
            self._better_for = 0.0
        elif self._since > INTERVAL:
            nearby = self._solver.solve_nearby(goal, q).position_error
            other = self._solver.solve(goal, self.q)
            closer = other.position_error < nearby - BETTER
            self._better_for = self._better_for + self._since if closer else 0.0
            self._since = 0.0
            if self._better_for > PATIENCE:
                q, self._better_for = self._soonest(goal, other, now, fastest), 0.0
            elif self._time(q - now, fastest) > SOONER:
                q = self._soonest(goal, self._solver.solve_nearby(goal, q), now, fastest, SOONER)
        self.held_back = solution.position_error > AT_BOUND
        self.q = self._served(q, goal, fastest * dt)
        self._position, self._direction = self._arm.fk(self.q)
        return self.q.copy()

    def _soonest(self, goal: Goal, found: Solution, now: Array, fastest: Array, by: float = 0.0) -> Array:
        """Return found, or an equally close configuration reached sooner from now (n,), at least by [s]."""
        best, shortest = found.q, self._time(found.q - now, fastest) - by
        for start in self._arm.sample(np.random.default_rng(0), RIVALS):
            other = self._solver.solve_nearby(goal, start)
            time = self._time(other.q - now, fastest)
            if other.position_error < found.position_error + BETTER and time < shortest:
                best, shortest = other.q, time
        return best

    def _time(self, move: Array, fastest: Array) -> float:
        """Return the shortest time [s] in which the joints that position the tool make the move (n,)."""
        times = np.abs(move) / fastest
        if self._roll is not None:
            times[self._roll] = 0.0  # it does not move the tool point
        return float(times.max())

    def ahead(self, goal: Goal, q: Array, dt: float, fastest: Array) -> Array:
        """Return the joint positions (n,) for goal, dt [s] after q (n,)."""
        after = self._solver.solve_nearby(goal, q, self._max_step(goal, fastest * dt)).q
        return self._served(after, goal, fastest * dt)

    def _max_step(self, goal: Goal, max_step: Array) -> Array:
        if self._roll is not None and goal.lateral is not None:
            max_step[self._roll] = 0.0  # it turns the lateral axis
        return max_step

    def _served(self, q: Array, goal: Goal, max_step: Array) -> Array:
        if self._roll is None or goal.lateral is None:
            return q
        axis, lateral = self._arm.frames(q)[-2:]
        return self._rolled(q, _angle_about(axis, lateral, goal.lateral), max_step[self._roll])

    def _rolled(self, q: Array, angle: float, max_step: float) -> Array:
        i, arm = self._roll, self._arm
        assert i is not None
        sense = math.copysign(1.0, float(arm.frames(q)[i] @ arm.fk(q)[1]))
        out = q.copy()
        out[i] = np.clip(q[i] + sense * np.clip(angle, -max_step, max_step), arm.lower[i], arm.upper[i])
        return out


def roll_joint(arm: Arm, q: Array) -> int | None:
    """Return the last joint if it only rolls the tool, None if all joints are needed."""
    last = arm.n - 1
    axis = arm.frames(q)[len(arm.joints) - 1]
    aligned = abs(float(axis @ arm.fk(q)[1])) > ALIGNED and not arm.prismatic[last]
    return last if aligned and arm.practical_dof < arm.n else None


def limited_to_cone(direction: Array, axis: Array) -> Array:
    """Return the unit direction (3,), at most LEASH away from axis (3,)."""
    cross = np.cross(axis, direction)
    angle = math.atan2(float(np.linalg.norm(cross)), float(axis @ direction))
    if angle <= LEASH:
        return direction
    return _unit(rotation_about(cross * (LEASH / np.linalg.norm(cross))) @ axis)


def _angle_about(axis: Array, start: Array, end: Array) -> float:
    """Return the angle [rad] about the unit axis (3,) from start (3,) to the projection of end (3,)."""
    return math.atan2(float(axis @ np.cross(start, end)), float(start @ end))


def rotation_about(turn: Array) -> Array:
    """Return the rotation matrix (3, 3) about turn (3,), its length the angle [rad]."""
    angle = float(np.linalg.norm(turn))
    if angle == 0.0:
        return np.eye(3)
    return np.asarray(rotations(turn / angle, np.array([angle]))[0])


def _unit(vector: Array) -> Array:
    return np.asarray(vector / np.linalg.norm(vector))


NEAR, AIMED = 0.1, 0.3  # [m] and [rad] from the tool within which the first pose without a clutch must be
FAR = f'pose ignored: without a clutch the first pose must be within {NEAR} m of the tool'
TURNED = f"pose ignored: without a clutch the first pose must be within {AIMED} rad of the tool's orientation"


def distant(goal: Goal, tool: Array, arm: Arm, q: Array) -> str:
    """Return why goal is too far from the tool T (4, 4) at q (n,) for a first pose; empty if it is not.

    A rotation that no joint of the arm can make is ignored. goal: with direction and lateral.
    """
    assert goal.direction is not None
    assert goal.lateral is not None
    if np.linalg.norm(goal.position - tool[:3, 3]) > NEAR:
        return FAR
    turn = 0.0
    if aims(arm):
        turn = _angle(float(goal.direction @ tool[:3, 2]))
    if roll_joint(arm, q) is not None:
        turn = max(turn, abs(math.atan2(goal.lateral @ tool[:3, 1], goal.lateral @ tool[:3, 0])))
    return TURNED if turn > AIMED else ''


def aims(arm: Arm) -> bool:
    """Whether the arm can turn the axis of the tool while the tool point stays."""
    return arm.effective_dof > arm.position_dof


def turns_tool(arm: Arm, q: Array) -> bool:
    """Whether the arm at q (n,) can turn the tool while the tool point stays."""
    return aims(arm) or roll_joint(arm, q) is not None


def angle_between(first: Array, second: Array) -> float:
    """Return the angle [rad] by which the second pose T (4, 4) is turned from the first."""
    return _angle((float(np.trace(first[:3, :3].T @ second[:3, :3])) - 1.0) / 2.0)


def _angle(cosine: float) -> float:
    return math.acos(min(max(cosine, -1.0), 1.0))


POSES = 15  # used by an estimate: 0.3 s at 50 Hz
GAP = 0.1  # [s] between poses: after a longer gap the estimate starts anew; also the longest extrapolation
LEAP = 0.04  # [m, or of a unit vector] from the expected pose: tracking has jumped, the estimate starts anew

# Ratio of noise to speed [s] and to acceleration [s^2] assumed for few poses: 0.4 mm to 0.3 m/s and
# 0.3 m/s^2. It keeps the noise of the first poses from looking like a fast motion.
NOISE = 1.3e-3


class _Value(NamedTuple):
    value: Array
    received: float
    stamp: float | None


class PoseSmoother:
    """A parabola through the newest values (n,) by least squares. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._values: deque[_Value] = deque(maxlen=POSES)
        self._fit, self._last = np.zeros((3, 0)), 0.0

    @property
    def known(self) -> bool:
        """Whether there is any value."""
        return bool(self._values)

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()

    def add(self, value: Array, received: float, stamp: float | None) -> None:
        """Add a value received at a time; stamp: when it was measured, if known."""
        if self._values and not self._continues(value, received, stamp):
            self._values.clear()
        self._values.append(_Value(value, received, stamp))
        times = self._times()
        self._last = float(times[-1])
        rows = np.vander(times - self._last, 3, increasing=True)
        calm = np.diag([0.0, NOISE, 2.0 * NOISE])[1:]
        values = np.array([one.value for one in self._values])
        self._fit = np.linalg.lstsq(
            np.vstack([rows, calm]), np.vstack([values, np.zeros((2, value.size))]), rcond=None
        )[0]

    def _continues(self, value: Array, received: float, stamp: float | None) -> bool:
        last = self._values[-1]
        if not 0.0 < received - last.received <= GAP:
            return False
        if stamp is None or last.stamp is None:
            return stamp is last.stamp and bool(np.abs(self.at(received) - value).max() <= LEAP)
        expected = self.at(self._last + stamp - last.stamp)
        return stamp > last.stamp and bool(np.abs(expected - value).max() <= LEAP)

    def _times(self) -> Array:
        received = np.array([one.received for one in self._values])
        if self._values[-1].stamp is None:
            return received
        return plausible_stamps(np.array([one.stamp for one in self._values], float), received)

    def at(self, time: float) -> Array:
        """Return the value (n,) at a time; constant from GAP after the newest one."""
        ahead = min(time - self._last, GAP)
        place, rate, bend = self._fit
        return np.asarray(place + (rate + bend * ahead) * ahead)


# [m] and [rad] between successive poses: tracking was lost, so operator and tool are related again
JUMP, TURN = 0.25, 1.0
SILENCE = 1.0  # [s] between successive poses: operator or tool may have moved far in the meantime
OPEN = 'the clutch is open, so poses do not move the arm; publish true on ~/enable repeatedly to close it'
DROPPED = (
    'the clutch opened when the arm stopped or was repositioned: publish false, then true, '
    'on ~/enable to close it again'
)


class Clutch:
    """Open until it is enabled. Times are seconds of one clock.

    With the setting clutch: none, and until the first enable, poses are absolute and are accepted from the
    first one that is near the tool. Safe to enable from another thread.
    """

    def __init__(self) -> None:
        self._lock = ordered_lock(Rank.CLUTCH)
        self._used = False
        self._dropped = False  # a true that only repeats the last one does not close it
        self._sends_false = False  # a program sends false too, so its silence does not let go of the button
        # Of the arm, as in Snapshot, when it was last noticed:
        self._interruptions, self._goals = 0, 0
        self._model: ArmModel | None = None
        self._enabled, self._timeout = -math.inf, 0.0
        self._origin: Array | None = None  # T (4, 4) of the operator when the clutch closed
        self._tool = np.eye(4)  # and of the tool
        self._last, self._seen = np.eye(4), -math.inf  # the previous pose, and its time
        self.began = False  # the last goal was the first one since the clutch closed
        self.why = ''  # why the last pose was ignored; empty if it was accepted

    def enable(self, closed: bool, time: float, timeout: float, interruptions: int) -> None:
        """Close it for timeout [s] from time on, or open it. interruptions: of the arm, as in Snapshot."""
        with self._lock:
            if not closed:
                self._origin, self._dropped, self._sends_false = None, False, True
            elif self._released(time):
                self._origin, self._dropped = None, False
            elif interruptions != self._interruptions:
                self.drop()
            elif not self._repeats(time):
                self._origin = None
            self._interruptions, self._used = interruptions, True
            self._enabled, self._timeout = time if closed else -math.inf, timeout

    def notice(self, snapshot: Snapshot) -> None:
        """Open it if the arm was interrupted; reset the clutch reference if a goal has moved the arm."""
        with self._lock:
            if snapshot.interruptions != self._interruptions:
                self._interruptions = snapshot.interruptions
                self.drop()
            if snapshot.goals != self._goals or snapshot.model is not self._model:
                self._goals, self._model, self._origin = snapshot.goals, snapshot.model, None

    def loosen(self) -> None:
        """Reset the clutch reference at the next pose, because something else moves the arm."""
        with self._lock:
            self._origin = None

    def drop(self) -> None:
        """Open it, as after a stop: the operator has to let go, and to close it again."""
        with self._lock:
            self._origin, self._dropped = None, True

    def _released(self, time: float) -> bool:
        """Whether a true at a time is a new press of the button: see the docs on teleoperation."""
        silent = time - self._enabled > self._timeout  # a clock that is set back releases nothing
        return self._enabled == -math.inf or (silent and not self._sends_false)

    def _repeats(self, time: float) -> bool:
        # A clock that is set back must not keep it closed for longer.
        return abs(time - self._enabled) <= self._timeout

    def _closed(self, time: float) -> bool:
        return not self._dropped and self._repeats(time)

    def _absolute(self, settings: ArmSettings) -> bool:
        return settings.clutch == NO_CLUTCH and not self._used

    def engaged(self, time: float, settings: ArmSettings) -> bool:
        """Whether the arm follows the operator: a pose was accepted, and the clutch has not opened since."""
        with self._lock:
            return self._origin is not None and (self._absolute(settings) or self._closed(time))

    def goal(self, pose: Array, snapshot: Snapshot, time: float, settings: ArmSettings) -> Goal | None:
        """Return the goal for pose T (4, 4), of the tip in the base link; None if the pose is ignored."""
        with self._lock:
            self.notice(snapshot)
            return self._goal(pose, snapshot, time, settings)

    def _goal(self, pose: Array, snapshot: Snapshot, time: float, settings: ArmSettings) -> Goal | None:
        self.began, self.why = False, ''
        absolute = self._absolute(settings)
        if not (absolute or self._closed(time)):
            self._origin, self.why = None, DROPPED if self._dropped and self._repeats(time) else OPEN
            return None
        begin = self._origin
        moved = float(np.linalg.norm(pose[:3, 3] - self._last[:3, 3]))
        turned = angle_between(self._last, pose) if turns_tool(snapshot.tool.arm, snapshot.position) else 0.0
        if begin is None or moved > JUMP or turned > TURN or not 0.0 <= time - self._seen <= SILENCE:
            tool = tool_pose(snapshot.tool.arm, snapshot.position)
            self.why = (
                distant(snapshot.tool.pose_goal(pose), tool, snapshot.tool.arm, snapshot.position) if absolute else ''
            )
            if self.why:
                self._origin = None
                return None
            self.began = True
            begin, self._tool = pose.copy(), tool
            self._origin = begin
        self._last, self._seen = pose.copy(), time
        if absolute:
            return snapshot.tool.pose_goal(pose)
        turn = pose[:3, :3] @ begin[:3, :3].T
        position = self._tool[:3, 3] + settings.position_scale * (pose[:3, 3] - begin[:3, 3])
        return Goal(position, turn @ self._tool[:3, 2], turn @ self._tool[:3, 0])


def tool_pose(arm: Arm, q: Array) -> Array:
    """Return the pose T (4, 4) of the tool at q (n,): x its lateral axis, z its axis, at the tool point."""
    point, axis, lateral = arm.frames(q)[-3:]
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = lateral, np.cross(axis, lateral), axis, point
    return T


MAX_PERIODS = 2.0  # of motion per step: after a stall the tool continues without a jump
PAUSE = 0.5  # [s] without commands, after which the next one starts at the present position
FASTEST = 0.95  # share of the velocity limits that an operator may use; the rest serves to catch up
AHEAD = 0.02  # [s] between the poses from which joint velocities and accelerations are computed


class TeleopController:
    """Teleoperates an arm. Times are seconds of one clock; not thread-safe."""

    def __init__(self, controller: ArmController) -> None:
        self._controller = controller
        self.clutch = Clutch()
        self._poses = PoseSmoother()
        self._kinematics: JogKinematics | None = None
        self._stepped = -math.inf  # time of the last step
        self._by_rates = False  # the last command was a velocity: its end is a stop, while a pose is to be reached
        self.ignored = ''  # why the last operator pose was ignored; empty if it was accepted

    @property
    def held_back(self) -> bool:
        """Whether the last step ended at a limit or at the edge of the workspace."""
        return self._kinematics is not None and self._kinematics.held_back

    def enable(self, closed: bool, time: float, settings: ArmSettings) -> None:
        """Take a message of the clutch. Safe to call from another thread."""
        self.clutch.enable(closed, time, settings.clutch_timeout, self._controller.interruptions)

    def ready(self) -> Snapshot:
        """Return the state of the arm. Raises InputError if it does not accept commands."""
        snapshot = self._controller.snapshot()
        if snapshot is not None:
            self.clutch.notice(snapshot)
        if snapshot is None or snapshot.state not in READY:
            raise InputError(self._controller.condition()[1])
        return snapshot

    def end(self) -> None:
        """Bring the arm to rest and end teleoperation."""
        self.ignored = ''
        self._rest()

    def _rest(self) -> None:
        self._kinematics = None
        self._poses.clear()
        self._controller.end_teleoperation(self._by_rates)

    def _begun(self, snapshot: Snapshot, now: float, period: float) -> tuple[JogKinematics, float]:
        """Return the teleoperation of arm and the time since its last step [s]."""
        steered = snapshot.state is State.TELEOPERATED and 0.0 <= now - self._stepped <= PAUSE
        if self._kinematics is None or not steered:
            self._kinematics = JogKinematics(snapshot.tool.solver, snapshot.position)
            self._stepped = now - period
        dt = min(now - self._stepped, MAX_PERIODS * period)
        self._stepped = now
        return self._kinematics, dt

    def twist(self, snapshot: Snapshot, linear: Array, angular: Array, now: float, settings: ArmSettings) -> bool:
        """Move the tool at linear [m/s] and angular [rad/s] velocity, (3,) in the base link, until now.

        Returns whether the arm moves. A twist of zero ends a motion by twists: the operator has let go.
        """
        if not (linear.any() or angular.any()):
            return self._let_go(snapshot)
        self._by_rates = True
        jog, dt = self._begun(snapshot, now, 1.0 / settings.publish_rate)
        if dt <= 0.0:
            return False
        self.clutch.loosen()
        fastest = settings.velocity_share * snapshot.tool.arm.velocity
        return self._controller.steer(jog.twist(linear, angular, dt, fastest), now, since=snapshot.interruptions)

    def jog(self, snapshot: Snapshot, velocities: Array, now: float, settings: ArmSettings) -> bool:
        """Move the joints at velocities (arm.n,) until now. Returns whether the arm moves; zero as in twist."""
        if not velocities.any():
            return self._let_go(snapshot)
        self._by_rates = True
        jog, dt = self._begun(snapshot, now, 1.0 / settings.publish_rate)
        self.clutch.loosen()
        return dt > 0.0 and self._controller.steer(jog.jog(velocities, dt), now, since=snapshot.interruptions)

    def _let_go(self, snapshot: Snapshot) -> bool:
        if self._by_rates and self._kinematics is not None and snapshot.state is State.TELEOPERATED:
            self._rest()
        return False

    def take(
        self, snapshot: Snapshot, pose: Array, received: float, stamp: float | None, settings: ArmSettings
    ) -> None:
        """Take an operator pose T (4, 4) of the tip in the base link, received at a time.

        stamp: when it was measured, None if unknown. A report states when acceptance of poses begins or ends.
        """
        goal = self.clutch.goal(pose, snapshot, received, settings)
        if self.clutch.why != self.ignored:
            self.ignored = self.clutch.why
            level = Level.WARN if self.ignored else Level.OK
            self._controller.announce(level, self.ignored or 'the arm follows the operator')
        if goal is None:
            return
        if self.clutch.began:
            self._kinematics = None
            self._poses.clear()
        self._by_rates = False
        self._poses.add(goal.packed, received, stamp)

    def follow(self, snapshot: Snapshot, now: float, settings: ArmSettings) -> bool:
        """Move to the present operator pose. Returns whether the arm moves."""
        if not (self.clutch.engaged(now, settings) and self._poses.known):
            if snapshot.state is State.TELEOPERATED and self._kinematics is not None:
                self._rest()
            return False
        teleoperation, dt = self._begun(snapshot, now, 1.0 / settings.publish_rate)
        if dt <= 0.0:
            return False
        limits = limits_of_motion(snapshot.model, snapshot.tool.index, settings)
        fastest = FASTEST * limits.velocity
        # A new pose corrects the last estimate: too little room for that would look like a fast motion.
        q = teleoperation.reach(self._goal(now), max(dt, AHEAD), fastest, snapshot.position)
        after = teleoperation.ahead(self._goal(now + AHEAD), q, AHEAD, fastest)
        later = teleoperation.ahead(self._goal(now + 2.0 * AHEAD), after, AHEAD, fastest)
        velocity = np.clip((4.0 * after - 3.0 * q - later) / (2.0 * AHEAD), -fastest, fastest)
        hardest = limits.acceleration
        acceleration = np.clip((later - 2.0 * after + q) / AHEAD**2, -hardest, hardest)
        return self._controller.steer(q, now, (velocity, acceleration), snapshot.interruptions)

    def _goal(self, time: float) -> Goal:
        value = self._poses.at(time)
        direction, lateral = (part / np.linalg.norm(part) for part in (value[3:6], value[6:]))
        return Goal(value[:3], direction, lateral)
