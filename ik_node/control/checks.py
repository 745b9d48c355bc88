# SPDX-License-Identifier: Apache-2.0
"""Checks that may reject a setpoint, a motion or a trajectory: limits, cones, tool, collision."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.ball import Ball, Order
from ik_node.model.collision import SelfCollision
from ik_node.model.robot import Robot
from ik_node.solver.goal import Goal, Solution

from .models import JointModel
from .motion import JointMotion, JointPlan, tool_motion
from .paths import ToolPath
from .requests import Aim, Level, TargetPlan, filled
from .setpoint import JointTrajectory
from .settings import Workspace

ROUNDING = 1e-6  # [rad, m, and per second] by which a setpoint may exceed a limit
SWING = 4e-6  # [rad, m] the same, in addition, for the curve between the nodes of a path
PLANNED = 0.99  # share of the acceleration limits for motions; the rest is for transitions of controllers

# By how much [rad or m] position, and up to which shares of their limits velocity and acceleration may exceed
# them until a controller joins a plan: only setpoints of its motion are sent.
JOINED = 1e-3, 1.02, 1.2

# Shares of the velocity, acceleration and jerk limits between the points of a trajectory: not all knots of a
# plan are sent, nor all nodes of a path.
RESAMPLED = 1.001, 1.001, 1.02


@dataclass(frozen=True, eq=False)
class _Last:
    """The last setpoint (n,): mean acceleration over the dt [s] before it."""

    position: Array
    velocity: Array
    acceleration: Array
    dt: float

    @property
    def at_rest(self) -> bool:
        return not (self.velocity.any() or self.acceleration.any())


class Gate:
    """Compares each setpoint with the limits and with the previous setpoint.

    lower, upper (n,) [rad or m]: a joint that starts outside may stay there or move back, but not farther
    out.
    """

    def __init__(self, names: tuple[str, ...], lower: Array, upper: Array) -> None:
        self.names = names
        self._lower, self._upper = lower, upper
        self._limits: tuple[Array, Array, Array] = (np.full(len(names), np.inf),) * 3
        self._bounds = self._limits
        self._last: _Last | None = None

    def set_limits(self, velocity: Array, acceleration: Array, jerk: Array) -> None:
        """Set the limits (n,) per second. Lower ones apply once the joints rest; until then joints brake."""
        self._limits = velocity, acceleration, jerk
        before = self._bounds
        self._bounds = (
            np.maximum(before[0], velocity),
            np.maximum(before[1], acceleration),
            np.maximum(before[2], jerk),
        )
        if self._last is None or self._last.at_rest:
            self._bounds = self._limits

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised at rest."""
        self._last = None
        self._bounds = self._limits

    def go_on_from(self, position: Array, velocity: Array, acceleration: Array) -> None:
        """Compare the next setpoint with this state (n,) instead of the last setpoint."""
        self._last = _Last(position, velocity, acceleration, 0.0)

    def reject(self, position: Array, velocity: Array, dt: float) -> str | None:
        """Return why a setpoint (n,), (n,), dt [s] after the last one, must not be published, else None.

        Velocities are compared with those of the two setpoints before: the mean acceleration of a period
        differs from that of the period before by at most jerk times half the time of both.
        """
        mean = self._passed(position, velocity, dt)
        if mean is None:
            zeros = np.zeros(len(self.names))
            last = _Last(position, zeros, zeros, 0.0) if self._last is None else self._last
            found, means = self._compared(last, np.array([dt]), position[None], velocity[None])
            if found is not None:
                return found[1]
            mean = means[0]
        if dt > 0.0 or self._last is None:
            self._last = _Last(position.copy(), velocity.copy(), mean, dt)
        if self._last is None or self._last.at_rest:
            self._bounds = self._limits
        return None

    def _passed(self, position: Array, velocity: Array, dt: float) -> Array | None:
        """Return the mean acceleration (n,) of a setpoint that passes; None if _compared must decide.

        The same comparison in a fifth of the time; almost every setpoint passes.
        """
        last = self._last
        if last is None or dt <= 0.0 or last.dt <= 0.0:
            return None
        fastest, hardest, sharpest = self._bounds
        step, gain = position - last.position, velocity - last.velocity
        mean = gain / dt
        found = np.array([velocity, step, gain, mean - last.acceleration])
        half = (dt + last.dt) / 2
        most = np.array([fastest, fastest * dt, hardest * dt, sharpest * half])
        most += [[ROUNDING], [ROUNDING], [ROUNDING], [ROUNDING + ROUNDING / dt + ROUNDING / last.dt]]
        slack = ROUNDING + SWING
        inside = (position < np.maximum(self._upper, last.position) + slack) & (
            position > np.minimum(self._lower, last.position) - slack
        )
        return mean if inside.all() and (np.abs(found) < most).all() else None

    def reject_ahead(self, times: Array, states: Array, join: float) -> tuple[int, str] | None:
        """Return which setpoint of a trajectory is rejected, and why.

        states (3, k, n): positions, velocities and accelerations at times (k,) [s]. Until the time join [s],
        a controller repeats its previous trajectory: see JOINED. Later setpoints are reported first.
        """
        position, velocity, acceleration = states
        fastest, hardest, _ = self._bounds
        first = int(np.searchsorted(times, join))
        if first + 1 < len(times):
            last = _Last(position[first], velocity[first], acceleration[first], 0.0)
            dts, rows = np.diff(times[first:]), slice(first + 1, None)
            found, _ = self._compared(last, dts, position[rows], velocity[rows], RESAMPLED)
            if found is not None:
                return first + 1 + found[0], found[1]
        low, high = (np.minimum(self._lower, position[0]), np.maximum(self._upper, position[0]))
        for what, values, least, most in (
            ('position', position, low - JOINED[0], high + JOINED[0]),
            ('velocity', velocity, -JOINED[1] * fastest, JOINED[1] * fastest),
            ('acceleration', acceleration, -JOINED[2] * hardest, JOINED[2] * hardest),
        ):
            beyond = (values[:first] < least) | (values[:first] > most)
            if beyond.any():
                k, i = np.argwhere(beyond)[0]
                allowed = f'{least[i]:.6g} to {most[i]:.6g}'
                return int(k), f'joint "{self.names[i]}": {what} {values[k, i]:.6g}, allowed: {allowed}'
        return None

    def _compared(
        self,
        last: _Last,
        dts: Array,
        positions: Array,
        velocities: Array,
        shares: tuple[float, float, float] = (1.0, 1.0, 1.0),
    ) -> tuple[tuple[int, str] | None, Array]:
        """Compare setpoints (k, n), each dts (k,) after the one before.

        Return the first that must not be published, and why, else None, and the mean accelerations (k, n).
        """
        finite = (np.isfinite(positions) & np.isfinite(velocities)).all(axis=1)
        if not finite.all():
            k = int((~finite).argmax())
            row = f'positions {positions[k].tolist()} or velocities {velocities[k].tolist()}'
            return (k, f'{row} are not finite'), positions
        dt, last_dt = dts[:, None], np.append(last.dt, dts[:-1])[:, None]
        before = np.vstack([last.position, positions[:-1]])
        gain = np.diff(velocities, axis=0, prepend=last.velocity[None])
        mean = np.where(dt > 0.0, gain / np.where(dt > 0.0, dt, 1.0), last.acceleration)
        change = np.diff(mean, axis=0, prepend=last.acceleration[None])
        fastest, hardest, sharpest = (x * share for x, share in zip(self._bounds, shares, strict=True))
        # The rounding of a velocity counts more in a short period.
        rounding = sum(ROUNDING / np.where(x > 0.0, x, np.inf) for x in (dt, last_dt))
        checks = (
            ('position', positions, np.maximum(self._upper, before), SWING),
            ('velocity', velocities, fastest, 0.0),
            ('step', positions - before, fastest * dt, 0.0),
            ('change of velocity', gain, hardest * dt, 0.0),
            ('change of acceleration', change, sharpest * (dt + last_dt) / 2, rounding),
        )
        first: tuple[int, str] | None = None
        for what, values, high, more in checks:
            low = np.minimum(self._lower, before) if what == 'position' else -high
            beyond = (values > high + ROUNDING + more) | (values < low - ROUNDING - more)
            if not beyond.any():
                continue
            k, i = np.argwhere(beyond)[0]
            if first is None or k < first[0]:
                least, most = (np.broadcast_to(bound, beyond.shape)[k, i] for bound in (low, high))
                allowed = f'{least:.6g} to {most:.6g}'
                first = int(k), f'joint "{self.names[i]}": {what} {values[k, i]:.6g}, allowed: {allowed}'
        return first, mean


# The final check of a trajectory that is sent as a whole, by the gates that check every setpoint.
#
# A controller interpolates the plan to the same setpoints, so all limits hold. Before that it repeats the
# last setpoints, which were checked; where it continues a plan that it did not receive, JOINED applies.

TRAJECTORY_SPACING = 0.005  # [s] between two checks
Rejection = tuple[int, str] | None  # which of several setpoints is rejected, and why


def reject_trajectory(
    trajectory: JointTrajectory,
    gates: Sequence[Gate],
    checks: Sequence[Callable[[Mapping[str, Array]], Rejection]],
) -> str | None:
    """Return why a trajectory must not be sent, else None.

    checks: further ones, of positions, velocities and accelerations (3, k) by joint name.
    """
    motion, join = trajectory.motion, trajectory.joined
    if not all(np.isfinite(row).all() for row in (motion.times, *trajectory.rows)):
        return f'its points are not finite: {trajectory.positions.tolist()}'
    times = _looks(join, trajectory.duration)
    states = motion.sampled(times)[:3]
    by_name = dict(zip(trajectory.names, np.moveaxis(states, 2, 0), strict=True))
    known = {name for gate in gates for name in gate.names}
    found: list[tuple[int, str]] = []
    for name in by_name.keys() - known:
        if by_name[name][1].any():
            found.append((int(by_name[name][1].argmax()), f'joint "{name}" must not move'))
    for gate in gates:
        rows = [by_name[name] for name in gate.names if name in by_name]
        if len(rows) == len(gate.names):
            rejection = gate.reject_ahead(times, np.moveaxis(np.array(rows), 0, 2), join)
            found += [rejection] if rejection is not None else []
    for check in checks:
        rejection = check(by_name)
        found += [rejection] if rejection is not None else []
    if not found:
        return None
    k, why = min(found)
    pairs = zip(trajectory.names, states[0, k].tolist(), strict=True)
    places = ', '.join(f'{name} {value:.6g}' for name, value in pairs)
    return f'{times[k]:.3f} s after its start, {why}; positions there: {places}'


def _looks(join: float, end: float) -> Array:
    """Return times [s] from 0 to end, SPACING apart or less; the join and the end are among them."""
    spans = ((0.0, join), (join, end)) if end > join else ((0.0, end),)
    rows = [np.linspace(a, b, math.ceil((b - a) / TRAJECTORY_SPACING) + 1)[:-1] for a, b in spans]
    return np.concatenate([*rows, [end]])


CONE_SLACK = 1e-3  # [rad] by which a setpoint may: motions are checked at other times


class ConeGate:
    """Compares joint positions with the cones and twist limits of ball joints.

    A ball joint that starts outside may stay there or move back, but not farther out.
    """

    def __init__(self, balls: Sequence[Ball], joint_names: Sequence[str]) -> None:
        """balls: the ball joints with limits of their own."""
        self._balls = [(ball, np.array([joint_names.index(name) for name in ball.joints])) for ball in balls]
        self._allowed = math.inf  # excess of the last setpoint, until there is one

    @classmethod
    def of(cls, robot: Robot, joint_names: Sequence[str]) -> ConeGate | None:
        """Return the gate of these joints of a robot, None if no ball joint has limits of its own."""
        balls = [ball for ball in robot.balls if ball.limited and set(ball.joints) <= set(joint_names)]
        return cls(balls, joint_names) if balls else None

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised at rest."""
        self._allowed = math.inf

    def keeps(self, places: Array) -> bool:
        """Whether a motion along positions (k, n) respects the limits."""
        return self.rejection(places) is None

    def rejection(
        self, places: Array, slack: float = ROUNDING, allowed: float = 0.0
    ) -> tuple[int, str] | None:
        """Return the first of positions (k, n) that is farther outside than the initial one, and why.

        slack [rad]: more than that. allowed [rad]: excess that is allowed in any case.
        """
        first: tuple[int, str] | None = None
        for ball, columns in self._balls:
            values = places[:, columns]
            beyond = _excess(ball, values)
            outside = beyond > max(float(beyond[0]), allowed) + slack
            if outside.any():
                k = int(outside.argmax())
                if first is None or k < first[0]:
                    first = k, _sentence(ball, values[k])
        return first

    def outside(self, q: Array) -> str | None:
        """Return why positions q (n,) are not allowed as a target, None if they are."""
        for ball, columns in self._balls:
            if _excess(ball, q[None, columns])[0] > ROUNDING:
                return _sentence(ball, q[columns])
        return None

    def reject(self, q: Array) -> str | None:
        """Return why a setpoint q (n,) must not be published, else None."""
        excess = max(float(_excess(ball, q[None, columns])[0]) for ball, columns in self._balls)
        if excess > max(self._allowed, 0.0) + CONE_SLACK:
            return self.outside(q)
        self._allowed = max(min(self._allowed, excess), 0.0)
        return None

    def reject_ahead(self, places: Array) -> tuple[int, str] | None:
        """Return which of the setpoints (k, n) of a trajectory is rejected, and why."""
        return self.rejection(places, CONE_SLACK, self._allowed if math.isfinite(self._allowed) else 0.0)


def _excess(ball: Ball, values: Array) -> NDArray[np.float64]:
    """Return by how much [rad] a ball at values (k, 3) of its joints is outside its limits, 0 inside."""
    if ball.order is Order.PROPER:
        twist = values[:, 0] + ball.hand * values[:, 2]
        return np.maximum(np.maximum(twist - ball.twist[1], ball.twist[0] - twist), 0.0)
    a, b = values[:, :2].T if ball.order is Order.TWIST_LAST else values[:, 1:].T
    half = np.sin(a / 2) ** 2 + np.cos(a) * np.sin(b / 2) ** 2
    return np.maximum(2.0 * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))) - ball.swing, 0.0)


def _sentence(ball: Ball, values: Array) -> str:
    swing_x, swing_y, twist = ball.swing_twist((float(values[0]), float(values[1]), float(values[2])))
    joints = ', '.join(ball.joints)
    if ball.order is Order.PROPER:
        return (
            f'ball joint {joints}: twist {twist:.6g} rad, allowed: {ball.twist[0]:.6g} to {ball.twist[1]:.6g}'
        )
    swing = math.hypot(swing_x, swing_y)
    return f'ball joint {joints}: swing {swing:.6g} rad, allowed: {ball.swing:.6g}'


OVERLAP_SLACK = 1e-3  # [m] by which the overlap may grow while links separate


class CollisionGate:
    """Rejects setpoints in which parts of the robot overlap; parts that overlap at the start may come apart.

    Distances are computed only if earlier ones do not rule a collision out, so most setpoints cost little.
    """

    def __init__(self, collision: SelfCollision) -> None:
        self.collision = collision
        self.restart()

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised."""
        self._last: Array | None = None
        self._least = 0.0  # allowed distance

    def reject(self, values: Array) -> str | None:
        """Return why a setpoint with these variables (n,) must not be published, else None."""
        if self._last is not None and np.array_equal(values, self._last):
            return None
        if self.collision.clear(values, values, 0.0):
            self._last, self._least = values.copy(), 0.0
            return None
        distances, pairs = self.collision.look(values)
        nearest = int(distances.argmin())
        distance, pair = float(distances[nearest]), pairs[nearest]
        if self._last is None:
            self._least = distance - OVERLAP_SLACK if distance < 0.0 else 0.0
        if distance < self._least:
            allowed = f'allowed: {-self._least:.4f}'
            return f'link "{pair[0]}" and link "{pair[1]}" overlap by {-distance:.4f} m, {allowed}'
        if self._least < 0.0:
            self._least = 0.0 if distance > 0.0 else max(self._least, distance - OVERLAP_SLACK)
        self._last = values.copy()
        return None

    def reject_ahead(self, path: Array) -> tuple[int, str] | None:
        """Return which of the setpoints of all variables (k, n) must not follow the last one, and why."""
        if not np.abs(np.diff(path, axis=0)).max(initial=0.0) > 0.0:
            return None
        hit = self.collision.along(path, self._least)
        if hit is None:
            return None
        k, distance, (one, other) = hit
        return k, f'link "{one}" and link "{other}" overlap by {-distance:.4f} m'


WORKSPACE_SLACK = 1e-3  # [m] outside the workspace: goals and motions are checked without it, at other times


class ToolGate:
    """Compares the tool pose of each setpoint with the workspace and with the previous setpoint.

    An arm that starts outside the workspace may move in the smallest box around both until it rests inside.
    """

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self._workspace = self._allowed = Workspace(np.full(3, -np.inf), np.full(3, np.inf), given=False)
        self._limits = self._bounds = math.inf, math.inf
        self._last: Array | None = None  # frames of the arm at the last setpoint, see Arm.frames

    def set_limits(self, workspace: Workspace, max_speed: float, max_turn_rate: float) -> None:
        """Set the limits [m, m/s, rad/s]. Tighter ones apply once the joints rest, as in Gate."""
        self._workspace, self._allowed = workspace, self._allowed.around(workspace)
        self._limits = max_speed, max_turn_rate
        self._bounds = max(self._bounds[0], max_speed), max(self._bounds[1], max_turn_rate)
        if self._last is None:
            self.restart()

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised at rest."""
        self._last = None
        self._allowed, self._bounds = self._workspace, self._limits

    def go_on_from(self, position: Array) -> None:
        """Compare the next setpoint with this one (n,) instead of the last one."""
        self._last = self.arm.frames(position)

    def reject(self, position: Array, moving: bool, dt: float) -> str | None:
        """Return why a setpoint (n,), dt [s] after the last one, must not be published, else None."""
        frames = self.arm.frames(position)
        point = frames[-3]
        if self._last is None:
            self._last = frames
            self._allowed = self._workspace.reaching(point)
        outside = self._allowed.outside(point, WORKSPACE_SLACK)
        if outside is not None:
            return f'the tool point leaves the workspace: {outside}'
        if min(self._bounds) < math.inf and (rejection := self._too_fast(frames, self._last, dt)) is not None:
            return rejection
        self._last = frames
        if not moving:
            self._bounds, self._allowed = self._limits, self._workspace.reaching(point)
        return None

    def _too_fast(self, frames: Array, last: Array, dt: float) -> str | None:
        """Return why the tool must not move from the last frames to these in dt [s], else None."""
        step = float(np.linalg.norm(frames[-3] - last[-3]))
        # Two frames that differ by a turn by t differ by 2 sqrt(2) sin(t / 2) in all axes together.
        chord = float(np.linalg.norm(_axes(frames) - _axes(last)))
        turn = 2.0 * math.asin(min(1.0, chord / math.sqrt(8.0)))
        for what, unit, value, limit in (
            ('speed', 'm/s', step, self._bounds[0]),
            ('turn rate', 'rad/s', turn, self._bounds[1]),
        ):
            if value > limit * dt + ROUNDING:
                rate = value / dt if dt > 0.0 else math.inf
                return f'tool {what} {rate:.6g} {unit}, allowed: {limit:.6g}'
        return None

    def reject_ahead(self, positions: Array, velocities: Array) -> tuple[int, str] | None:
        """Return which of the setpoints (k, n) of a trajectory is rejected, and why."""
        motion = tool_motion(self.arm, positions, velocities)
        allowed = self._allowed if self._last is not None else self._workspace.reaching(motion.point[0])
        outside = (motion.point < allowed.low - WORKSPACE_SLACK) | (
            motion.point > allowed.high + WORKSPACE_SLACK
        )
        limits = ('speed', 'm/s', motion.speed, 0), ('turn rate', 'rad/s', motion.turn_rate, 1)
        beyond = [values > self._bounds[i] * (1.0 + ROUNDING) + ROUNDING for _, _, values, i in limits]
        rejected = outside.any(axis=1) | beyond[0] | beyond[1]
        if not rejected.any():
            return None
        k = int(rejected.argmax())
        for (what, unit, values, i), over in zip(limits, beyond, strict=True):
            if over[k]:
                return k, f'tool {what} {values[k]:.6g} {unit}, allowed: {self._bounds[i]:.6g}'
        return k, f'the tool point leaves the workspace: {allowed.outside(motion.point[k], WORKSPACE_SLACK)}'


def _axes(frames: Array) -> Array:
    """Return the axes (3, 3) of the tip in frames of the arm."""
    return np.vstack([frames[-2:], np.cross(frames[-2], frames[-1])])


SPACING = 0.01  # [s] between two checked positions; joints move in straight lines between them
LONGEST = 3000  # positions: the rest of a longer motion is checked by the gate only
CLEARANCE = 1e-3  # [m] between links during a motion
CLEARANCE_EN_ROUTE = 0.5 * CLEARANCE  # [m] during the rest of a motion, when another arm changes its own
ALTERNATIVES = 8  # number of other solutions to try

Preview = Callable[[Array], JointMotion]  # a copy of the motion to these targets
Others = Callable[[float], Mapping[str, Array]]  # future positions of other arms, see JointArbiter.ahead


class MotionCheck:
    """Checks the motions of an arm. workspaces: the boxes of its tool points."""

    def __init__(self, model: JointModel, workspaces: Sequence[Workspace], others: Others) -> None:
        self._model, self._others = model, others
        self._collision, self._cones = model.collision, ConeGate.of(model.robot, model.joint_names)
        self._bounded = [
            (tool.arm, columns, workspace)
            for (tool, columns), workspace in zip(model.tools(), workspaces, strict=True)
            if workspace.given
        ]

    def check_goal(self, wanted: Aim, tool: str) -> None:
        """Raise InputError for a goal of a tool in another unit, or outside a workspace set by the user."""
        arm = self._model.of(tool)[0].arm
        points = wanted.points if isinstance(wanted, ToolPath) else ()
        for point in (wanted.position,) if isinstance(wanted, Goal) else points:
            if doubt := arm.too_far(point):
                raise InputError(f'the goal is {doubt}')
        for workspace in [box for bounded, _, box in self._bounded if bounded is arm]:
            outside = workspace.outside(wanted.position) if isinstance(wanted, Goal) else None
            if outside is not None:
                raise InputError(f'the goal is outside the workspace: {outside}')

    def choose(
        self, plan: TargetPlan, tool: str, values: Array, preview: Preview, follows: bool = False
    ) -> TargetPlan:
        """Return plan if its motion is allowed, else one with another solution whose motion is.

        values: all variables (n,) now. follows: the arm follows a moving goal, and each of its steps is
        checked. If there is none, raises InputError with the position and the reason.
        """
        free = self._collision is None and self._cones is None and not self._bounded
        if plan.joints is None or free:
            return plan
        if plan.path is not None:  # there is no alternative to a path
            self._check_places(plan.path.places(SPACING), values)
            return plan
        if follows and self._is_clear_to(plan.joints, values):
            return plan
        try:
            self._check(plan.joints, values, preview)
            return plan
        except InputError as error:
            reason = error
        if plan.goal is not None and plan.solution is not None and plan.solution.solved:
            seed = values[self._model.index]
            others = self._model.alternatives(tool, plan.goal, seed)
            for q, other in islice(others, ALTERNATIVES):
                try:
                    self._check(q, values, preview)
                except InputError:
                    continue
                return _instead(plan, q, other, reason)
        raise reason

    def _check(self, joints: Array, values: Array, preview: Preview) -> None:
        """Raise InputError if the motion to joints (k,) leaves the workspace or a cone, or collides."""
        if self._cones is not None:
            outside = self._cones.outside(filled(joints, values[self._model.index]))
            if outside is not None:
                raise InputError(f'the joints cannot move there: {outside}')
        if not self._clear(preview(joints), values):
            self._check_places(places_of(preview(joints)), values)

    def _check_places(self, places: Array, values: Array) -> None:
        reason = self.rejection(places, values)
        if reason is not None:
            raise InputError(reason)

    def _is_clear_to(self, joints: Array, values: Array) -> bool:
        """Whether a monotonic motion to joints (k,) is known to be allowed."""
        now = values[self._model.index]
        end = filled(joints, now)
        return self.is_clear(np.minimum(now, end), np.maximum(now, end), values)

    def _clear(self, motion: JointMotion, values: Array) -> bool:
        """Whether a motion is known to be free of collisions, without simulating it; modifies it."""
        begin = motion.position
        motion.step(SPACING)
        plan = motion.plan
        if math.isnan(motion.remaining) or not isinstance(plan, JointPlan):
            return False
        return self.is_clear(np.minimum(begin, plan.low), np.maximum(begin, plan.high), values)

    def is_clear(self, low: Array, high: Array, values: Array) -> bool:
        """Whether all motions of the arm between low and high (n,) are known to be allowed.

        Much faster than rejection. values: all variables.
        """
        if self._bounded or self._cones is not None or self._others(SPACING):
            return False
        if self._collision is None:
            return True
        least, most = values.copy(), values.copy()
        least[self._model.index], most[self._model.index] = low, high
        return self._collision.clear(least, most, CLEARANCE)

    def rejection(self, places: Array, values: Array, clearance: float = CLEARANCE) -> str | None:
        """Return why the arm must not move along positions (k, n), SPACING apart; values: all variables.

        clearance [m]: between links.
        """
        for arm, columns, workspace in self._bounded:
            points = tool_motion(arm, places[:, columns], np.zeros((len(places), arm.n))).point
            allowed = workspace.reaching(points[0])
            for k, point in enumerate(points):
                outside = allowed.outside(point)
                if outside is not None:
                    return f'the tool point would leave the workspace after {k * SPACING:.2f} s: {outside}'
        beyond = None if self._cones is None else self._cones.rejection(places)
        if beyond is not None:
            return f'{beyond[1]}, {beyond[0] * SPACING:.2f} s after the start'
        if self._collision is not None:
            own = dict(zip(self._model.joint_names, places.T, strict=True))
            path = self._model.path(values, {**self._others(SPACING), **own})
            hit = self._collision.along(path, clearance)
            if hit is not None:
                index, distance, (one, other) = hit
                gap = (
                    f'overlap by {-distance:.4f} m' if distance < 0.0 else f'come as near as {distance:.4f} m'
                )
                when = 'at the end' if index >= len(path) - 1 else f'after {index * SPACING:.2f} s'
                return f'link "{one}" and link "{other}" would {gap} {when} of the motion'
        return None


def _instead(plan: TargetPlan, joints: Array, solution: Solution, reason: InputError) -> TargetPlan:
    said = f'solved with a farther solution (with the nearest one, {reason}); moving to the goal'
    return replace(plan, joints=joints, solution=solution, message=said, level=Level.WARN)


def places_of(motion: JointMotion, spacing: float = SPACING) -> Array:
    """Return positions (k, n) of a motion until it rests, spacing [s] apart; steps the motion to its plan."""
    places = [motion.position]
    while motion.moving and len(places) < LONGEST:
        if not math.isnan(motion.remaining):  # it has the plan to its end
            return np.vstack([places, motion.planned(spacing, LONGEST - len(places))])
        places.append(motion.step(spacing)[0])
    return np.array(places)


class ArmGates:
    """Checks tools, ball joints and self-collision. cones: the gate of the ball joints, or None."""

    def __init__(self, model: JointModel) -> None:
        self._begin(model)

    def _begin(self, model: JointModel) -> None:
        self._model = model
        self._tools = [(ToolGate(tool.arm), columns) for tool, columns in model.tools()]
        self.cones = ConeGate.of(model.robot, model.joint_names)
        self._collision = None if model.collision is None else CollisionGate(model.collision)

    def take(self, model: JointModel) -> None:
        """Change to another model of the same joints; state that both models share is kept."""
        if [gate.arm for gate, _ in self._tools] != [tool.arm for tool, _ in model.tools()]:
            self._begin(model)
            return
        found, self._model = model.collision, model
        if found is None or self._collision is None or self._collision.collision is not found:
            self._collision = None if found is None else CollisionGate(found)

    def set_limits(self, workspaces: Sequence[Workspace], max_speed: float, max_turn_rate: float) -> None:
        """Set the limits of the tools, a workspace for each; see ToolGate."""
        for (gate, _), workspace in zip(self._tools, workspaces, strict=True):
            gate.set_limits(workspace, max_speed, max_turn_rate)

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised at rest."""
        for tool_gate, _ in self._tools:
            tool_gate.restart()
        for gate in (self.cones, self._collision):
            if gate is not None:
                gate.restart()

    def go_on_from(self, position: Array) -> None:
        """Compare the next setpoint with this one (k,) instead of the last one."""
        for gate, columns in self._tools:
            gate.go_on_from(position[columns])

    def reject(self, motion: JointMotion, dt: float, values: Array) -> str | None:
        """Return why the setpoint after dt [s], with all variables at values (n,), must not be published."""
        for gate, columns in self._tools:
            rejection = gate.reject(motion.position[columns], motion.moving, dt)
            if rejection is not None:
                return rejection
        rejection = None if self.cones is None else self.cones.reject(motion.position)
        if rejection is None and self._collision is not None:
            rejection = self._collision.reject(values)
        return rejection

    def checks(self, values: Array, others: Others) -> list[Callable[[Mapping[str, Array]], Rejection]]:
        """Return the checks of a trajectory, see reject_trajectory.

        values: all variables (n,), for those that do not move. others: where other arms will be.
        """

        def reject_tool(by_name: Mapping[str, Array]) -> Rejection:
            rows = np.moveaxis(np.array([by_name[name] for name in self._model.joint_names]), 0, 2)
            rejection = None if self.cones is None else self.cones.reject_ahead(rows[0])
            if rejection is not None:
                return rejection
            found = [gate.reject_ahead(rows[0][:, c], rows[1][:, c]) for gate, c in self._tools]
            return min((one for one in found if one is not None), default=None)

        def reject_collision(by_name: Mapping[str, Array]) -> Rejection:
            assert self._collision is not None
            own = {name: rows[0] for name, rows in by_name.items()}
            count = len(own[self._model.joint_names[0]])
            path = self._model.path(values, {**others(TRAJECTORY_SPACING), **own})
            hit = self._collision.reject_ahead(path)
            return None if hit is None else (min(hit[0], count - 1), hit[1])

        return [reject_tool] if self._collision is None else [reject_tool, reject_collision]
