# SPDX-License-Identifier: Apache-2.0
"""MotionCheck: judges what an arm is to do by all of its limits, before any of it is published.

Setpoints, whole trajectories, planned motions and single configurations are all given as States, and
MotionCheck.violation() judges each of them by the same gates: joints, ball joints, tools, self-collision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.model.ball import Ball, Order
from ik_node.model.collision import SelfCollision

from .models import ArmModel, Columns
from .motion import HARD, SPACING, tool_motion
from .paths import MotionLimits, limits_of_motion
from .settings import ArmSettings, Workspace
from .trajectory import JointTrajectory

ROUNDING = 1e-6  # [rad, m, and per second] by which a state may exceed a limit
SWING = 4e-6  # [rad, m] the same, in addition, for the curve between the nodes of a path
CONE_SLACK = 1e-3  # [rad] outside a ball's limits: planned motions are checked without it, at other times
WORKSPACE_SLACK = 1e-3  # [m] outside the workspace, for the same reason
OVERLAP_SLACK = 1e-3  # [m] by which an overlap may grow while links separate
CLEARANCE = 1e-3  # [m] between links during a planned motion
CLEARANCE_EN_ROUTE = 0.5 * CLEARANCE  # [m] during the rest of a motion, when another arm changes its own
TRAJECTORY_SPACING = 0.005  # [s] between the states of a trajectory that are checked

# By how much [rad or m] position, and up to which shares of their limits velocity and acceleration may exceed
# them until a controller joins a plan: only setpoints of its motion are sent.
JOINED = 1e-3, 1.02, 1.2

# Shares of the velocity, acceleration and jerk limits between the points of a trajectory: not all knots of a
# plan are sent, nor all nodes of a path.
RESAMPLED = 1.001, 1.001, 1.02

EXACT = 1.0, 1.0, 1.0


@dataclass(frozen=True, eq=False)
class States:
    """Successive states of all m variables of a robot, to be judged.

    values (k, m) [rad or m] at times (k,) [s]. Commands have rates (k, m), too, and trajectories
    accelerations; both continue from the last published setpoint. A planned motion has positions only,
    because a plan keeps the rates.
    start (m,): a planned motion may exceed a limit as far as this state does; None: it must not.
    joined [s]: of a trajectory, the time until which the controller repeats what it was sent before. braking: it
    only ends an earlier motion, perhaps by a hard stop of which the setpoints are over.
    moving: whether the motion of the arm goes on. clearance [m]: between links of a planned motion.
    path (p, m), p >= k: the values, and those after them while other arms still move.
    """

    times: Array
    values: Array
    rates: Array | None = None
    joined: float | None = None
    accelerations: Array | None = None
    start: Array | None = None
    moving: bool = True
    clearance: float = CLEARANCE
    path: Array | None = None
    braking: bool = False

    @classmethod
    def setpoint(cls, dt: float, values: Array, rates: Array, moving: bool) -> States:
        """Return the setpoint values, rates (m,) to be published dt [s] after the last one."""
        return cls(np.array([dt]), values[None], rates[None], moving=moving)

    @classmethod
    def configuration(cls, values: Array) -> States:
        """Return variables (m,) in which the arm may rest if violation() returns None."""
        return cls(np.zeros(1), values[None])

    @property
    def planned(self) -> bool:
        """Whether these states are not commands yet."""
        return self.rates is None


class Violation(NamedTuple):
    """The first state of several that violates a limit, by its index, and how, as a sentence."""

    state: int
    sentence: str


class Gate(Protocol):
    """One kind of limit. It remembers the last published setpoint."""

    def violation(self, states: States) -> Violation | None:
        """Return the first state that violates the limit; of a setpoint remembers what accept needs."""

    def accept(self, states: States) -> None:
        """Continue from a setpoint, which is published; it is the one that was judged last."""

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised at rest."""


class _Last(NamedTuple):
    """The last setpoint (n,): mean acceleration over the dt [s] before it."""

    position: Array
    velocity: Array
    acceleration: Array
    dt: float


class JointGate:
    """Position, velocity, acceleration and jerk limits of the joints called names, at index among variables.

    A joint that starts outside its position limits may stay there or move back, but not farther out.
    Velocities are compared with those of the two setpoints before: the mean acceleration of a period differs
    from that of the period before by at most jerk times half the time of both.
    """

    def __init__(self, names: tuple[str, ...], index: Columns, limits: MotionLimits) -> None:
        self.names, self.index = names, index
        self._lower, self._upper = limits.lower, limits.upper
        self._last: _Last | None = None
        self.set_limits(limits.velocity, limits.acceleration, limits.jerk)

    def set_limits(self, velocity: Array, acceleration: Array, jerk: Array) -> None:
        """Set the limits (n,) per second. Lower ones apply once the joints rest; until then joints brake."""
        self._limits = velocity, acceleration, jerk
        if self._last is None or self._at_rest:
            self._bounds = self._limits
        else:
            before = self._bounds
            self._bounds = (
                np.maximum(before[0], velocity),
                np.maximum(before[1], acceleration),
                np.maximum(before[2], jerk),
            )

    def allow_hard_stop(self) -> None:
        """Allow HARD times the jerk limit until the joints rest."""
        velocity, acceleration, jerk = self._bounds
        self._bounds = velocity, acceleration, np.maximum(jerk, HARD * self._limits[2])

    @property
    def _at_rest(self) -> bool:
        return self._last is not None and not (self._last.velocity.any() or self._last.acceleration.any())

    def restart(self) -> None:
        self._last = None
        self._bounds = self._limits

    def continue_from(self, position: Array, velocity: Array, acceleration: Array) -> None:
        """Compare the next setpoint with this state (n,) instead of the last setpoint."""
        self._last = _Last(position, velocity, acceleration, 0.0)

    def accept(self, states: States) -> None:
        assert states.rates is not None
        position, velocity, dt = (
            states.values[-1, self.index],
            states.rates[-1, self.index],
            float(states.times[-1]),
        )
        if dt > 0.0 or self._last is None:
            gain = velocity if self._last is None else velocity - self._last.velocity
            self._last = _Last(position, velocity, gain / dt if dt > 0.0 else np.zeros(len(gain)), dt)
        if self._at_rest:
            self._bounds = self._limits

    def violation(self, states: States) -> Violation | None:
        position = states.values[:, self.index]
        if states.rates is None:
            low, high = self._lower, self._upper
            if states.start is not None:
                start = states.start[self.index]
                low, high = np.minimum(low, start), np.maximum(high, start)
            slack = ROUNDING + SWING
            return self._beyond('position', position, low - slack, high + slack, (low, high))
        velocity = states.rates[:, self.index]
        if states.joined is not None:
            return self._along(states, position, velocity)
        if self._passes(position[0], velocity[0], float(states.times[0])):
            return None
        rest = np.zeros(len(self.names))
        last = _Last(position[0], rest, rest, 0.0) if self._last is None else self._last
        return self._compared(last, states.times, position, velocity)

    def _passes(self, position: Array, velocity: Array, dt: float) -> bool:
        """Whether a setpoint passes for certain; _compared() decides on the others.

        The same comparison in a fifth of the time; almost every setpoint passes.
        """
        last = self._last
        if last is None or dt <= 0.0 or last.dt <= 0.0:
            return False
        fastest, hardest, sharpest = self._bounds
        step, gain = position - last.position, velocity - last.velocity
        found = np.array([velocity, step, gain, gain / dt - last.acceleration])
        half = (dt + last.dt) / 2
        allowed = np.array([fastest, fastest * dt, hardest * dt, sharpest * half])
        allowed += [[ROUNDING], [ROUNDING], [ROUNDING], [ROUNDING + ROUNDING / dt + ROUNDING / last.dt]]
        slack = ROUNDING + SWING
        inside = (position < np.maximum(self._upper, last.position) + slack) & (
            position > np.minimum(self._lower, last.position) - slack
        )
        return bool(inside.all() and (np.abs(found) < allowed).all())

    def _along(self, states: States, position: Array, velocity: Array) -> Violation | None:
        """Judge a trajectory. Until it is joined JOINED applies; later states are reported first."""
        assert states.joined is not None
        assert states.accelerations is not None
        acceleration, times = states.accelerations[:, self.index], states.times
        first = int(np.searchsorted(times, states.joined))
        shares = (*RESAMPLED[:2], HARD * RESAMPLED[2]) if states.braking else RESAMPLED
        if first + 1 < len(times):
            last = _Last(position[first], velocity[first], acceleration[first], 0.0)
            rows = slice(first + 1, None)
            found = self._compared(last, np.diff(times[first:]), position[rows], velocity[rows], shares)
            if found is not None:
                return found._replace(state=first + 1 + found.state)
        fastest, hardest, _ = self._bounds
        low, high = np.minimum(self._lower, position[0]), np.maximum(self._upper, position[0])
        for what, values, lowest, highest in (
            ('position', position, low - JOINED[0], high + JOINED[0]),
            ('velocity', velocity, -JOINED[1] * fastest, JOINED[1] * fastest),
            ('acceleration', acceleration, -JOINED[2] * hardest, JOINED[2] * hardest),
        ):
            found = self._beyond(what, values[:first], lowest, highest, (lowest, highest))
            if found is not None:
                return found
        return None

    def _compared(
        self,
        last: _Last,
        dts: Array,
        positions: Array,
        velocities: Array,
        shares: tuple[float, float, float] = EXACT,
    ) -> Violation | None:
        """Compare states (k, n), each dts (k,) [s] after the one before, with shares of the limits."""
        finite = (np.isfinite(positions) & np.isfinite(velocities)).all(axis=1)
        if not finite.all():
            k = int((~finite).argmax())
            row = f'positions {positions[k].tolist()} or velocities {velocities[k].tolist()}'
            return Violation(k, f'{row} are not finite')
        dt, last_dt = dts[:, None], np.append(last.dt, dts[:-1])[:, None]
        before = np.vstack([last.position, positions[:-1]])
        gain = np.diff(velocities, axis=0, prepend=last.velocity[None])
        mean = np.where(dt > 0.0, gain / np.where(dt > 0.0, dt, 1.0), last.acceleration)
        change = np.diff(mean, axis=0, prepend=last.acceleration[None])
        fastest, hardest, sharpest = (x * share for x, share in zip(self._bounds, shares, strict=True))
        # The rounding of a velocity counts more in a short period.
        rounding = sum(ROUNDING / np.where(x > 0.0, x, np.inf) for x in (dt, last_dt))
        found = []
        for what, values, high, slack in (
            ('position', positions, np.maximum(self._upper, before), ROUNDING + SWING),
            ('velocity', velocities, fastest, ROUNDING),
            ('step', positions - before, fastest * dt, ROUNDING),
            ('change of velocity', gain, hardest * dt, ROUNDING),
            ('change of acceleration', change, sharpest * (dt + last_dt) / 2, ROUNDING + rounding),
        ):
            low = np.minimum(self._lower, before) if what == 'position' else -high
            found.append(self._beyond(what, values, low - slack, high + slack, (low, high)))
        return earliest(found)

    def _beyond(
        self, what: str, values: Array, lowest: Array, highest: Array, allowed: tuple[Array, Array]
    ) -> Violation | None:
        """Return the first of values (k, n) beyond lowest or highest; allowed: the same without slack."""
        beyond = ~((values >= lowest) & (values <= highest))  # true for NaN
        if not beyond.any():
            return None
        k, i = np.argwhere(beyond)[0]
        low, high = (np.broadcast_to(bound, beyond.shape)[k, i] for bound in allowed)
        name, value = self.names[i], values[k, i]
        return Violation(int(k), f'joint "{name}": {what} {value:.6g}, allowed: {low:.6g} to {high:.6g}')


def earliest(found: Sequence[Violation | None]) -> Violation | None:
    """Return the violation of the earliest state; of the same state, the first in the list."""
    return min((one for one in found if one is not None), key=lambda one: one.state, default=None)


class BallGate:
    """Cones and twist limits of ball joints. balls: with the indices (3,) of their joints among variables.

    A ball joint that starts outside may stay there or move back, but not farther out.
    """

    def __init__(self, balls: Sequence[tuple[Ball, Columns]]) -> None:
        self._balls = balls
        self.restart()

    def restart(self) -> None:
        self._allowed = math.inf  # excess of the last setpoint [rad], until there is one

    def accept(self, states: States) -> None:
        excess = max(float(_excess(ball, states.values[-1:, columns])[0]) for ball, columns in self._balls)
        self._allowed = min(self._allowed, excess)

    def violation(self, states: States) -> Violation | None:
        found = []
        for ball, columns in self._balls:
            values = states.values[:, columns]
            excess = _excess(ball, values)
            allowed, slack = self._allowed, CONE_SLACK
            if states.planned:
                allowed, slack = 0.0, ROUNDING
                if states.start is not None:
                    allowed = float(_excess(ball, states.start[None, columns])[0])
            elif states.joined is not None:
                allowed = max(float(excess[0]), allowed if math.isfinite(allowed) else 0.0)
            outside = ~(excess <= allowed + slack)  # true for NaN
            if outside.any():
                k = int(outside.argmax())
                found.append(Violation(k, _ball_sentence(ball, values[k])))
        return earliest(found)


def _excess(ball: Ball, values: Array) -> NDArray[np.float64]:
    """Return by how much [rad] a ball at values (k, 3) of its joints is outside its limits, 0 inside."""
    if ball.order is Order.PROPER:
        twist = values[:, 0] + ball.hand * values[:, 2]
        return np.maximum(np.maximum(twist - ball.twist[1], ball.twist[0] - twist), 0.0)
    a, b = values[:, :2].T if ball.order is Order.TWIST_LAST else values[:, 1:].T
    half = np.sin(a / 2) ** 2 + np.cos(a) * np.sin(b / 2) ** 2
    return np.maximum(2.0 * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))) - ball.swing, 0.0)


def _ball_sentence(ball: Ball, values: Array) -> str:
    swing_x, swing_y, twist = ball.swing_twist((float(values[0]), float(values[1]), float(values[2])))
    joints = ', '.join(ball.joints)
    if ball.order is Order.PROPER:
        return f'ball joint {joints}: twist {twist:.6g} rad, allowed: {ball.twist[0]:.6g} to {ball.twist[1]:.6g}'
    swing = math.hypot(swing_x, swing_y)
    return f'ball joint {joints}: swing {swing:.6g} rad, allowed: {ball.swing:.6g}'


class ToolGate:
    """Workspace, speed and turn rate of a tool. columns: of the joints of its arm among variables.

    An arm that starts outside the workspace may move in the smallest box around both until it rests inside.
    """

    def __init__(self, arm: Arm, columns: Columns) -> None:
        self.arm, self._columns = arm, columns
        self.workspace = self._allowed = Workspace(np.full(3, -np.inf), np.full(3, np.inf), given=False)
        self._limits = self._bounds = math.inf, math.inf
        self._last: Array | None = None  # frames of the arm at the last setpoint, see Arm.frames
        self._judged: Array | None = None  # the same at the setpoint that was judged last

    def set_limits(self, workspace: Workspace, max_speed: float, max_turn_rate: float) -> None:
        """Set the limits [m, m/s, rad/s]. Tighter ones apply once the joints rest, as in JointGate."""
        self.workspace, self._allowed = workspace, self._allowed.around(workspace)
        self._limits = max_speed, max_turn_rate
        self._bounds = max(self._bounds[0], max_speed), max(self._bounds[1], max_turn_rate)
        if self._last is None:
            self.restart()

    def restart(self) -> None:
        self._last = None
        self._allowed, self._bounds = self.workspace, self._limits

    def continue_from(self, values: Array) -> None:
        """Compare the next setpoint with these variables (m,) instead of the last setpoint."""
        self._last = self.arm.frames(values[self._columns])

    def accept(self, states: States) -> None:
        assert self._judged is not None
        point = self._judged[-3]
        if self._last is None:
            self._allowed = self.workspace.reaching(point)
        self._last = self._judged
        if not states.moving:
            self._bounds, self._allowed = self._limits, self.workspace.reaching(point)

    def violation(self, states: States) -> Violation | None:
        if not states.planned and states.joined is None:
            return self._of_setpoint(states.values[0, self._columns], float(states.times[0]))
        if states.planned and not self.workspace.given:
            return None  # no plan leaves the reach of the arm
        positions = states.values[:, self._columns]
        rates = np.zeros_like(positions) if states.rates is None else states.rates[:, self._columns]
        motion = tool_motion(self.arm, positions, rates)
        allowed, slack = self._allowed, WORKSPACE_SLACK
        if states.planned:
            allowed, slack = self.workspace, ROUNDING
            if states.start is not None:
                allowed = allowed.reaching(self.arm.frames(states.start[self._columns])[-3])
        elif self._last is None:
            allowed = self.workspace.reaching(motion.point[0])
        inside = (motion.point >= allowed.low - slack) & (motion.point <= allowed.high + slack)
        found = []
        if not inside.all():
            k = int((~inside.all(axis=1)).argmax())
            leaves = 'would leave' if states.planned else 'leaves'
            outside = allowed.outside(motion.point[k], slack)
            found.append(Violation(k, f'the tool point {leaves} the workspace: {outside}'))
        for what, unit, values, limit in (
            ('speed', 'm/s', motion.speed, self._bounds[0]),
            ('turn rate', 'rad/s', motion.turn_rate, self._bounds[1]),
        ):
            beyond = ~(values <= limit * (1.0 + ROUNDING) + ROUNDING)
            if beyond.any():
                k = int(beyond.argmax())
                found.append(Violation(k, f'tool {what} {values[k]:.6g} {unit}, allowed: {limit:.6g}'))
        return earliest(found)

    def _of_setpoint(self, position: Array, dt: float) -> Violation | None:
        """Judge a setpoint (n,) by the way of the tool in the dt [s] since the last one."""
        frames = self._judged = self.arm.frames(position)
        point, last = frames[-3], self._last
        allowed = self.workspace.reaching(point) if last is None else self._allowed
        outside = allowed.outside(point, WORKSPACE_SLACK)
        if outside is not None:
            return Violation(0, f'the tool point leaves the workspace: {outside}')
        if last is None or not min(self._bounds) < math.inf:
            return None
        step = float(np.linalg.norm(point - last[-3]))
        # Two frames that differ by a turn by t differ by 2 sqrt(2) sin(t / 2) in all axes together.
        chord = float(np.linalg.norm(_axes(frames) - _axes(last)))
        turn = 2.0 * math.asin(min(1.0, chord / math.sqrt(8.0)))
        for what, unit, value, limit in (
            ('speed', 'm/s', step, self._bounds[0]),
            ('turn rate', 'rad/s', turn, self._bounds[1]),
        ):
            if value > limit * dt + ROUNDING:
                rate = value / dt if dt > 0.0 else math.inf
                return Violation(0, f'tool {what} {rate:.6g} {unit}, allowed: {limit:.6g}')
        return None


def _axes(frames: Array) -> Array:
    """Return the axes (3, 3) of the tip in frames of the arm."""
    return np.vstack([frames[-2:], np.cross(frames[-2], frames[-1])])


class CollisionGate:
    """Self-collision: parts of the robot that overlap at the start may come apart.

    Distances are computed only if earlier ones do not rule a collision out, so most setpoints cost little.
    """

    def __init__(self, collision: SelfCollision) -> None:
        self.collision = collision
        self.restart()

    def restart(self) -> None:
        self._last: Array | None = None
        self._allowed = 0.0  # allowed distance [m]
        self._distance = math.inf  # at the setpoint that was judged last [m]

    def accept(self, states: States) -> None:
        distance = self._distance
        if self._last is None:
            self._allowed = distance - OVERLAP_SLACK if distance < 0.0 else 0.0
        elif self._allowed < 0.0:
            self._allowed = 0.0 if distance > 0.0 else max(self._allowed, distance - OVERLAP_SLACK)
        self._last = states.values[-1].copy()

    def violation(self, states: States) -> Violation | None:
        path = states.values if states.path is None else states.path
        if not states.planned and states.joined is None:
            return self._of_setpoint(path[0])
        if not states.planned and not np.abs(np.diff(path, axis=0)).max(initial=0.0) > 0.0:
            return None
        clearance = states.clearance if states.planned else self._allowed
        hit = self.collision.along(path, clearance)
        return None if hit is None else Violation(hit[0], _overlap(hit[1], hit[2], states.planned))

    def _of_setpoint(self, values: Array) -> Violation | None:
        if self._last is not None and np.array_equal(values, self._last):
            return None
        if self.collision.clear(values, values, 0.0):
            self._distance = math.inf
            return None
        distances, pairs = self.collision.look(values)
        nearest = int(distances.argmin())
        self._distance = float(distances[nearest])
        if self._last is None or self._distance >= self._allowed:
            return None
        sentence = _overlap(self._distance, pairs[nearest])
        return Violation(0, f'{sentence}, allowed: {-self._allowed:.4f}')


def _overlap(distance: float, links: tuple[str, str], planned: bool = False) -> str:
    gap = f'overlap by {-distance:.4f} m' if distance < 0.0 else f'come as near as {distance:.4f} m'
    return f'link "{links[0]}" and link "{links[1]}" {"would " if planned else ""}{gap}'


def no_others(spacing: float) -> Mapping[str, Array]:  # noqa: ARG001
    """Return that no other arm of the robot moves."""
    return {}


class MotionCheck:
    """Judges what an arm is to do by all of its limits. joints: the gates of its joints, and of others.

    others: future positions by variable of other arms, for a spacing [s]; see JointArbiter.ahead.
    """

    def __init__(
        self,
        model: ArmModel,
        settings: ArmSettings,
        others: Callable[[float], Mapping[str, Array]] = no_others,
    ) -> None:
        self._others = others
        limits = limits_of_motion(model, model.index, settings)
        self.joints = [JointGate(model.joint_names, model.index, limits)]
        self._use(model)
        self.take(model, settings)

    def _use(self, model: ArmModel) -> None:
        self._model = model
        self._tools = [ToolGate(tool.arm, tool.index) for tool in model.tools.values()]
        names = model.joint_names
        balls = [ball for ball in model.robot.balls if ball.limited and set(ball.joints) <= set(names)]
        columns = [model.joints.indices(ball.joints) for ball in balls]
        self._balls = BallGate(list(zip(balls, columns, strict=True))) if balls else None
        self._collision = None if model.collision is None else CollisionGate(model.collision)

    def take(self, model: ArmModel, settings: ArmSettings) -> None:
        """Use the limits of settings, and another model of the same joints; what both share is kept.

        The limits of joints are set by their gates.
        """
        if [gate.arm for gate in self._tools] != [tool.arm for tool in model.tools.values()]:
            self._use(model)
        elif self._collision is None or self._collision.collision is not model.collision:
            self._collision = None if model.collision is None else CollisionGate(model.collision)
        self._model = model
        for gate in self._tools:
            gate.set_limits(Workspace.of(gate.arm, settings.workspace), *settings.tool_rates())

    @property
    def needed(self) -> bool:
        """Whether a planned motion could violate any limit."""
        return bool(self._collision or self._balls or any(gate.workspace.given for gate in self._tools))

    @property
    def _gates(self) -> list[Gate]:
        optional: list[Gate] = [gate for gate in (self._balls, self._collision) if gate is not None]
        return [*self.joints, *self._tools, *optional]

    def violation(self, states: States) -> Violation | None:
        """Return the first of some states that violates a limit, and how; None if the arm may do all of it.

        Every setpoint and trajectory passes it before it is sent, and so does the motion to a goal before the
        goal is accepted. Nothing counts as published before accept.
        """
        found: list[Violation | None] = []
        for gate in self._gates:
            one = gate.violation(states)
            if one is not None and one.state == 0:  # none is earlier; what is not finite meets no collision library
                return one
            found.append(one)
        return earliest(found)

    def accept(self, setpoint: States) -> None:
        """Continue from a setpoint that was judged last and is published now."""
        for gate in self._gates:
            gate.accept(setpoint)

    def planned_violation(self, positions: Array, values: Array, clearance: float = CLEARANCE) -> str | None:
        """Return why the arm must not move along positions (k, n), SPACING apart, as a sentence, else None.

        Limits that the first position exceeds may be exceeded as far on the way. values: all variables (m,).
        clearance [m]: between links.
        """
        rows = np.tile(values, (len(positions), 1))
        rows[:, self._model.index] = positions
        own = dict(zip(self._model.joint_names, positions.T, strict=True))
        path = self._with_others(values, own, SPACING)
        times = np.linspace(0.0, SPACING * (len(rows) - 1), len(rows))
        found = self.violation(States(times, rows, start=rows[0], clearance=clearance, path=path))
        if found is None:
            return None
        end = len(rows if path is None else path) - 1
        when = 'at the end' if found.state >= end else f'{found.state * SPACING:.2f} s after the start'
        return f'{when} of the motion, {found.sentence}'

    def trajectory_violation(self, trajectory: JointTrajectory, values: Array) -> str | None:
        """Return why a trajectory must not be sent, as a sentence, else None.

        values: all variables (m,), for those that do not move. A controller interpolates the points to the
        setpoints, so all limits hold. Before that it repeats the last setpoints, which were checked; where it
        continues a plan that it did not receive, JOINED applies.
        """
        if not all(np.isfinite(row).all() for row in (trajectory.times, *trajectory.rows)):
            return f'its points are not finite: {trajectory.positions.tolist()}'
        times = _checked_times(trajectory.joined, trajectory.duration)
        motion = trajectory.motion.sampled(times)[:3]
        rows = np.zeros((3, len(times), len(values)))
        rows[0] = values
        found: list[Violation | None] = []
        own: dict[str, Array] = {}
        index = {name: i for gate in self.joints for name, i in zip(gate.names, gate.index, strict=True)}
        for name, states in zip(trajectory.names, np.moveaxis(motion, 2, 0), strict=True):
            if name in index:
                rows[:, :, index[name]], own[name] = states, states[0]
            elif states[1].any():
                found.append(Violation(int(states[1].argmax()), f'joint "{name}" must not move'))
        path = self._with_others(values, own, TRAJECTORY_SPACING)
        commands = States(times, rows[0], rows[1], trajectory.joined, rows[2], path=path, braking=trajectory.braking)
        violation = earliest([*found, self.violation(commands)])
        if violation is None:
            return None
        k = min(violation.state, len(times) - 1)
        pairs = zip(trajectory.names, motion[0, k].tolist(), strict=True)
        there = ', '.join(f'{name} {value:.6g}' for name, value in pairs)
        return f'{times[k]:.3f} s after its start, {violation.sentence}; positions there: {there}'

    def _with_others(self, values: Array, own: Mapping[str, Array], spacing: float) -> Array | None:
        """Return the path (p, m) of all variables; None if there are no parts that could collide."""
        return None if self._collision is None else self._model.path(values, {**self._others(spacing), **own})

    def ball_violation(self, values: Array, start: Array | None = None) -> str | None:
        """Return why the balls forbid variables (k, m), else None. start: as in States."""
        if self._balls is None:
            return None
        found = self._balls.violation(States(np.zeros(len(values)), values, start=start))
        return None if found is None else found.sentence

    @property
    def has_balls(self) -> bool:
        """Whether any ball joint has limits of its own."""
        return self._balls is not None

    def keeps_balls(self, positions: Array) -> bool:
        """Whether a motion along positions (k, n) of the arm respects the limits of its balls."""
        values = np.zeros((len(positions), self._model.joints.n))
        values[:, self._model.index] = positions
        return self.ball_violation(values, values[0]) is None

    def is_clear(self, low: Array, high: Array, values: Array) -> bool:
        """Whether all planned motions of the arm between low and high (n,) are known to be allowed.

        Much faster than planned_violation. values: all variables (m,). False is not a verdict.
        """
        if self._balls is not None or any(gate.workspace.given for gate in self._tools):
            return False
        if self._collision is None:
            return True
        if self._others(SPACING):
            return False
        lowest, highest = values.copy(), values.copy()
        lowest[self._model.index], highest[self._model.index] = low, high
        return self._collision.collision.clear(lowest, highest, CLEARANCE)

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised at rest."""
        for gate in self._gates:
            gate.restart()

    def continue_from(self, position: Array) -> None:
        """Let the tools continue from a position (n,) of the arm instead of the last setpoint."""
        values = np.zeros(self._model.joints.n)
        values[self._model.index] = position
        for gate in self._tools:
            gate.continue_from(values)


def _checked_times(join: float, end: float) -> Array:
    """Return times [s] from 0 to end, at most TRAJECTORY_SPACING apart, with the join and the end."""
    spans = ((0.0, join), (join, end)) if end > join else ((0.0, end),)
    rows = [np.linspace(a, b, math.ceil((b - a) / TRAJECTORY_SPACING) + 1)[:-1] for a, b in spans]
    return np.concatenate([*rows, [end]])
