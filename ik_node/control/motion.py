# SPDX-License-Identifier: Apache-2.0
"""JointMotion: moves joints within limits to targets, at rest or moving; ToolPace: limits of the tool."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ruckig import ControlInterface, InputParameter, Ruckig, Synchronization
from ruckig import Trajectory as RuckigTrajectory

from ik_node.checks import Array, finite_array
from ik_node.errors import InputError
from ik_node.kernels import arrays
from ik_node.model.arm import Arm
from ik_node.model.rotations import rotations

from .pursuit import Limits, Pursuit, admissible, admissible_jerk, advanced, calculated
from .trajectory import MotionState, Trajectory


@dataclass(frozen=True, eq=False)
class ToolMotion:
    """Tool point (k, 3) [m] in the base frame, its speed (k,) [m/s], and turn rate of the tip (k,) [rad/s].

    speed_bound, turn_rate_bound (k,): upper bounds, as if the contributions of the joints never cancelled,
    which happens when some joints stop before others.
    """

    point: Array
    speed: Array
    turn_rate: Array
    speed_bound: Array
    turn_rate_bound: Array


def tool_motion(arm: Arm, positions: Array, velocities: Array) -> ToolMotion:
    """Return the motion of the tool at positions and velocities (k, n) of the joints."""
    count = len(positions)
    turn = np.broadcast_to(np.eye(3), (count, 3, 3))
    position = np.zeros((count, 3))
    axes, origins, rates, sliding = [], [], [], []
    for row in arm.joints:
        variable, ratio = int(row[arrays.VARIABLE]), row[arrays.RATIO]
        value = ratio * positions[:, variable] + row[arrays.SHIFT]
        position = position + turn @ row[arrays.OFFSET]
        axis = turn @ row[arrays.AXIS]
        axes.append(axis)
        origins.append(position)
        rates.append(ratio * velocities[:, variable])
        sliding.append(row[arrays.PRISMATIC] != 0)
        if sliding[-1]:
            position = position + value[:, None] * axis
        else:
            turn = turn @ rotations(row[arrays.AXIS], value)
    point = position + turn @ arm.tool[:3]
    linear, angular = np.zeros((count, 3)), np.zeros((count, 3))
    linear_bound, angular_bound = np.zeros(count), np.zeros(count)
    for axis, origin, rate, slides in zip(axes, origins, rates, sliding, strict=True):
        turned = rate[:, None] * axis
        moved = turned if slides else np.cross(turned, point - origin)
        linear += moved
        linear_bound += np.linalg.norm(moved, axis=1)
        if not slides:
            angular += turned
            angular_bound += np.abs(rate)
    speed, turn_rate = np.linalg.norm(linear, axis=1), np.linalg.norm(angular, axis=1)
    return ToolMotion(point, speed, turn_rate, linear_bound, angular_bound)


SPACING = 0.01  # [s] between the times at which the speeds and collisions of a plan are checked
MAX_SAMPLES = 400
SHARE = 0.97  # of the limits, as a margin for times between two checks, and for stops
ROLL_SHARE = 1.0 / 3.0  # of the turn rate, for a joint that only rolls the tool
TRIES = 6  # replans with ever lower joint velocities
SLOWEST = 1e-4  # [rad/s or m/s] for joints that a plan does not move


class ToolPace:
    """Limits the speed of tool points to max_speed [m/s] and the turn rate of tips to max_turn_rate [rad/s].

    Infinite: no limit. tools: arms, with the indices of their joints. rolls: indices of joints that only roll
    a tool, and whose speed limit is at most ROLL_SHARE of max_turn_rate. The other joints of their tools have
    the rest, whether the roll moves or not, so that neither slows the other down.
    """

    def __init__(
        self,
        tools: Sequence[tuple[Arm, NDArray[np.int64]]],
        max_speed: float,
        max_turn_rate: float,
        rolls: Sequence[int] | NDArray[np.int64] = (),
    ) -> None:
        self._tools = tuple(tools)
        self._rolls = np.array(rolls, np.int64)
        self.max_speed, self.max_turn_rate = max_speed, max_turn_rate
        self._turn_rates = [self._turn_rate(arm, np.isin(columns, self._rolls)) for arm, columns in tools]

    def _turn_rate(self, arm: Arm, rolls: NDArray[np.bool_]) -> float:
        """Return what of the turn rate is left for the joints of an arm that are not rolls (arm.n,)."""
        fastest = np.minimum(arm.velocity[rolls], ROLL_SHARE * self.max_turn_rate)
        return self.max_turn_rate - float(fastest.sum())

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return math.isfinite(self.max_speed) or math.isfinite(self.max_turn_rate)

    def equals(self, other: ToolPace) -> bool:
        """Whether the limits are the same, for the same arms."""
        arms, others = ([arm for arm, _ in pace._tools] for pace in (self, other))
        limits = self.max_speed, self.max_turn_rate
        return arms == others and limits == (other.max_speed, other.max_turn_rate)

    def excess(self, positions: Array, velocities: Array) -> float:
        """Return the largest share of a limit that is used at positions and velocities (k, n).

        The contributions of the joints are added as if they never cancelled, so that a stop, in which some
        joints rest before others, makes no tool faster. Rolls do not count.
        """
        shares, counted = [], velocities.copy()
        counted[:, self._rolls] = 0.0
        for (arm, columns), turn_rate in zip(self._tools, self._turn_rates, strict=True):
            motion = tool_motion(arm, positions[:, columns], counted[:, columns])
            shares += [motion.speed_bound / self.max_speed, motion.turn_rate_bound / turn_rate]
        return float(max(share.max() for share in shares))

    def kept(self, plan: JointPlan) -> bool:
        """Whether a plan respects the limits."""
        return self.excess(*sampled(plan, plan.first)) <= SHARE

    def slowed(self, plan: JointPlan, replan: Callable[[Array], JointPlan | None]) -> JointPlan | None:
        """Return plan or a slower one that respects the limits, None if none is found.

        replan plans the same motion within further joint velocity limits (n,), infinite for rolls. Lower
        limits slow the tool down in proportion but for the changed timing of the joints, hence the
        repetition; the last attempt keeps joint velocities at which no configuration exceeds the limits.
        """
        for attempt in range(TRIES + 1):
            positions, velocities = sampled(plan, plan.first)
            excess = self.excess(positions, velocities) / SHARE
            if excess <= 1.0:
                return plan
            peaks = np.maximum(np.abs(velocities).max(axis=0), SLOWEST)
            lower = peaks / excess if attempt < TRIES - 1 else peaks * min(1.0, self._harmless(peaks))
            lower[self._rolls] = np.inf
            slower = replan(0.99 * lower)
            if slower is None:
                return None
            plan = slower
        return None

    def _harmless(self, velocities: Array) -> float:
        """Return the share of velocities (n,) at which no configuration exceeds a limit."""
        counted = velocities.copy()
        counted[self._rolls] = 0.0
        return min(
            self._harmless_to(arm, counted[columns], turn_rate)
            for (arm, columns), turn_rate in zip(self._tools, self._turn_rates, strict=True)
        )

    def _harmless_to(self, arm: Arm, velocities: Array, turn_rate: float) -> float:
        """Return the same for one tool, the velocities (arm.n,) of its joints and their turn rate."""
        turning = ~arm.prismatic
        turn = float(velocities[turning].sum())
        speed = arm.reach * turn + float(velocities[~turning].sum())
        return SHARE * min(self.max_speed / max(speed, SLOWEST), turn_rate / max(turn, SLOWEST))


def sampled(plan: JointPlan, end: float | None = None) -> tuple[Array, Array]:
    """Return positions and velocities (k, n) along a plan, SPACING apart, both ends included.

    end [s]: None: that of the plan.
    """
    end = plan.duration if end is None else end
    count = min(max(math.ceil(end / SPACING), 1), MAX_SAMPLES) + 1
    times = np.linspace(0.0, end, count).tolist()
    rows = plan.at_times(times)
    return rows[:, 0], rows[:, 1]


ROUNDING = 1e-9  # a plan may exceed the position limits by this much
Columns = NDArray[np.int64]


class BlockPlan(NamedTuple):
    """The plan of one block, relative to origin (k,). low, high: least and largest positions, each (k,)."""

    plan: RuckigTrajectory
    origin: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, plan: RuckigTrajectory, origin: Array) -> BlockPlan:
        """Return the plan with its extreme positions."""
        low, high = origin + np.array([(bound.min, bound.max) for bound in plan.position_extrema]).T
        return cls(plan, origin, low, high)


class Planner:
    """Plans motions of n joints; blocks: indices of synchronised joints."""

    def __init__(self, blocks: Sequence[Columns]) -> None:
        self.blocks = tuple(blocks)
        self._ruckigs = [Ruckig(len(columns)) for columns in self.blocks]

    def planned(
        self,
        start: MotionState,
        target: Array | None,
        synchronization: Synchronization,
        limits: Limits,
        allowed: tuple[Array, Array],
    ) -> JointPlan | None:
        """Return the plan from start to rest at target (n,), None: soon; None if it leaves allowed."""
        parts = []
        for block in range(len(self.blocks)):
            part = self.part(block, start, target, synchronization, limits, allowed)
            if part is None:
                return None
            parts.append(part)
        return JointPlan(self.blocks, parts)

    def part(
        self,
        block: int,
        start: MotionState,
        target: Array | None,
        synchronization: Synchronization,
        limits: Limits,
        allowed: tuple[Array, Array],
    ) -> BlockPlan | None:
        """Return the same for one block."""
        columns, ruckig = self.blocks[block], self._ruckigs[block]
        position, velocity, acceleration = (x[columns] for x in start)
        request = InputParameter(len(columns))
        request.current_velocity = velocity.tolist()
        request.current_acceleration = acceleration.tolist()
        request.max_velocity, request.max_acceleration, request.max_jerk = (limit[columns].tolist() for limit in limits)
        request.synchronization = synchronization
        if target is None:
            request.control_interface = ControlInterface.Velocity
            origin = position  # Ruckig then includes 0 in the extrema: let 0 be the start of the stop
        else:
            request.current_position = position.tolist()
            request.target_position = target[columns].tolist()
            origin = np.zeros(len(columns))
        plan = calculated(ruckig, request)
        if plan is None:
            return None
        found = BlockPlan.of(plan, origin)
        low, high = (bound[columns] for bound in allowed)
        inside = (found.low >= low - ROUNDING).all() and (found.high <= high + ROUNDING).all()
        return found if inside else None


class JointPlan:
    """The plans of all blocks as one.

    duration, first [s]: until all joints rest, and until those of the first block do. low, high: least and
    largest positions of the joints, each (n,).
    """

    def __init__(self, blocks: Sequence[Columns], parts: Sequence[BlockPlan]) -> None:
        self._blocks, self._parts = tuple(blocks), tuple(parts)
        self.duration = max(part.plan.duration for part in parts)
        self.first = parts[0].plan.duration
        self.low, self.high = np.empty((2, sum(map(len, blocks))))
        for columns, part in zip(blocks, parts, strict=True):
            self.low[columns], self.high[columns] = part.low, part.high

    def at_time(self, time: float) -> Array:
        """Return positions, velocities and accelerations (3, n) at a time [s]."""
        return np.asarray(self.at_times([time])[0])

    def at_times(self, times: Sequence[float]) -> Array:
        """Return the same at times (k,) [s]: (k, 3, n)."""
        found = np.empty((len(times), 3, self.low.size))
        for columns, part in zip(self._blocks, self._parts, strict=True):
            states = np.array([part.plan.at_time(time)[:3] for time in times])
            states[:, 0] += part.origin
            found[:, :, columns] = states
        return found

    def knots(self) -> list[float]:
        """Return the times [s] at which the jerk of any joint changes, sorted, with the end of the plan."""
        profiles = [profile for part in self._parts for profile in part.plan.profiles[0]]
        phases = [(*profile.brake.t, *profile.t, *profile.accel.t) for profile in profiles]
        return sorted([self.duration, *(knot for row in phases for knot in np.cumsum(row).tolist())])


# JointMotion: from joint targets at rest to setpoints within all limits, one per publish period.
#
# Time-optimal, jerk-limited plans come from Ruckig, which does not support position limits. One invariant
# keeps them: the plan being followed was checked to stay inside them until it rests. A new target changes the
# plan only if a plan for it passes the same check: all joints synchronised, else each as fast as it can,
# else a stop. If none passes, the old plan continues for one more setpoint; every target is reached from
# rest at the latest.

TURN = 2.0 * np.pi
AnyPlan: TypeAlias = JointPlan | Trajectory
RETURN_SPEED = 0.1  # share of the velocity limit at which a joint returns from outside its limits

# At distances where a plan changes its shape, rounding can leave Ruckig without a plan. Round numbers
# (0.1 rad at 5 rad/s^2 and 50 rad/s^3) hit such distances, uneven ones do not.
UNEVEN = 1.0 - 1e-6 * np.pi
HARD = 4.0  # times the jerk limit: a joint that speeds up brakes as hard after a quarter of the time
MOVING = 'the arm is moving: a path begins at rest'
PATH_SLACK = 1e-6  # [rad or m] by which a path may exceed them: setpoints are clipped


def near_turn(target: Array, position: Array, endless: NDArray[np.bool_]) -> Array:
    """Return target (n,), endless joints less than half a turn away from position (n,)."""
    if not endless.any():
        return target
    turn = target - position
    return np.where(endless, position + (turn - TURN * np.round(turn / TURN)), target)


Guard: TypeAlias = Callable[[Array, Array, Callable[[], Array]], bool]
BARELY = 1e-6  # [rad or m] beyond a limit, by rounding


class JointMotion:
    """Moves n joints to targets at rest, and after targets that move, within all limits.

    The limits are those of position, velocity, acceleration and jerk. A joint that starts outside its limits
    first returns to the nearer one, alone, at RETURN_SPEED. From every setpoint of a moving target a plan to
    rest respects the position limits; where there is no such setpoint, the previous plan continues.

    lower, upper: (n,) [rad or m], -inf and inf for joints without limits. position: (n,), at rest. blocks:
    indices of synchronised joints, independent of other blocks; those of the first one arrive together. None:
    all joints are one block.

    limits: of velocity, acceleration and jerk, each (n,). plan: the one being followed, from its beginning to
    rest; None before the first. elapsed: time since its beginning [s].

    guard: whether a plan to rest may stay between low and high (n,), along positions (k, n); None: always.
    tracking: whether the last setpoint followed a moving target; then the plan is only a way to rest.
    """

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        position: ArrayLike,
        blocks: Sequence[NDArray[np.int64]] | None = None,
    ) -> None:
        self.lower = np.array(lower, dtype=np.float64)
        self.upper = np.array(upper, dtype=np.float64)
        self.n = self.lower.size
        if self.n == 0 or self.upper.shape != self.lower.shape or not (self.lower <= self.upper).all():
            raise InputError(
                'lower and upper must have the same length, not 0, and lower <= upper, '
                f'got {self.lower.tolist()} and {self.upper.tolist()}'
            )
        self._endless = np.isinf(self.lower) & np.isinf(self.upper)
        self.set_blocks([np.arange(self.n)] if blocks is None else blocks)
        self.limits: tuple[Array, Array, Array] = (np.ones(self.n), np.ones(self.n), np.ones(self.n))
        self._pace: ToolPace | None = None
        self.keeps: Callable[[Array], bool] | None = None  # whether any plan may move along positions (k, n)
        self.guard: Guard | None = None
        self._resting = self._settled = True  # there is no plan to follow
        self.reset(position)

    def set_blocks(self, blocks: Sequence[NDArray[np.int64]]) -> None:
        """Set which joints are synchronised, from the next plan on."""
        self._planner = Planner(blocks)
        self._pursuits = [Pursuit(len(columns)) for columns in blocks]

    def set_limits(self, velocity: ArrayLike, acceleration: ArrayLike, jerk: ArrayLike) -> None:
        """Set the limits, each (n,) > 0, in rad or m and seconds. Faster joints slow down."""
        limits = tuple(
            finite_array(name, value, self.n)
            for name, value in (('velocity', velocity), ('acceleration', acceleration), ('jerk', jerk))
        )
        if any((limit <= 0.0).any() for limit in limits):
            raise InputError(f'velocity, acceleration and jerk limits must be greater than 0, got {limits}')
        before, self.limits = self.limits, (limits[0], limits[1], UNEVEN * limits[2])
        if not self.on_trajectory:
            self._settled = self._resting
        elif any((new < old).any() for new, old in zip(self.limits, before, strict=True)):
            self.stop()  # a new plan to the target would leave the path

    def set_pace(self, pace: ToolPace) -> None:
        """Slow later plans down to the limits of the tool. Stops use the full joint limits."""
        before, self._pace = self._pace, pace if pace.limited else None
        if (before is None) != (self._pace is None) or (before is not None and not before.equals(pace)):
            self._settled = self._resting

    def reset(self, position: ArrayLike) -> None:
        """Rest at position (n,), inside the limits or not, and forget the target."""
        self.position = finite_array('position', position, self.n)
        self.velocity: Array = np.zeros(self.n)
        self.acceleration: Array = np.zeros(self.n)
        self._target: Array | None = None
        self._paused_target: Array | None = None  # the target of paused joints
        self.plan: AnyPlan | None = None
        self._jerk = self.limits[2]  # of the plan
        self.hard = False  # brake with HARD times the jerk limit
        self._settled = True  # the plan being followed is the one for the target
        self._resting = True
        self._returning = False
        self.elapsed = 0.0
        self._moving_target: tuple[MotionState, float] | None = None  # and the smoothing
        self.tracking = False

    def go_to(self, target: ArrayLike) -> None:
        """Move to target (n,), clipped to the limits; joints without limits take the shorter way.

        Paused joints do so once they resume.
        """
        target = finite_array('target', target, self.n)
        if self._paused_target is not None:
            self._paused_target = target
            return
        nearest = near_turn(target, self.position, self._endless)
        self._target = np.clip(nearest, self.lower, self.upper)
        self.hard = False
        self._settled = False
        self._resting = False
        self._moving_target = None

    def begin_trajectory(self, trajectory: Trajectory) -> None:
        """Follow a trajectory along a path of the tool. Raises InputError unless it starts at the resting joints."""
        if not self._resting:
            raise InputError(MOVING)
        low, high = trajectory.positions.min(axis=0), trajectory.positions.max(axis=0)
        if np.abs(trajectory.positions[0] - self.position).max() > ROUNDING:
            raise InputError('the arm has moved: the path begins elsewhere')
        if (low < self.lower - PATH_SLACK).any() or (high > self.upper + PATH_SLACK).any():
            raise InputError('the path leaves the position limits of the joints')
        self._begin_plan(trajectory, self.limits[2])
        self._target = trajectory.positions[-1].copy()
        self.hard = False
        self._settled, self._resting = True, False
        self._moving_target = None

    def stop(self, hard: bool = False) -> None:
        """Stop as soon as the limits allow, and drop the target. hard: with HARD times the jerk limit."""
        self.hard = hard or (self.hard and self.braking)
        self._target = self._paused_target = None
        self._settled = self._resting
        self._moving_target = None

    def pause(self) -> None:
        """Stop as soon as the limits allow, and keep the target, if there is one, until resume()."""
        if self._target is not None:
            target = self._target
            self.stop()
            self._paused_target = target

    def resume(self) -> None:
        """Move to the target of paused joints, if there is one."""
        if self._paused_target is not None:
            target, self._paused_target = self._paused_target, None
            self.go_to(target)

    @property
    def target(self) -> Array:
        """Target of the joints (n,), also while they are paused; their position if they have none."""
        target = self._target if self._paused_target is None else self._paused_target
        return self.position if target is None else target

    @property
    def moving(self) -> bool:
        """Whether a later setpoint will differ from the last one."""
        return not self._resting

    @property
    def on_trajectory(self) -> bool:
        """Whether a trajectory of begin_trajectory is being followed."""
        return isinstance(self.plan, Trajectory) and self._settled and not self._resting

    @property
    def braking(self) -> bool:
        """Whether there is no target: the joints brake, or have come to rest."""
        return self._target is None

    @property
    def remaining(self) -> float:
        """Time left [s]; NaN before the next setpoint has a plan, and while the target moves."""
        if self._resting or self.plan is None:
            return 0.0 if self._resting else math.nan
        return max(0.0, self.plan.duration - self.elapsed) if self._settled else math.nan

    def planned(self, spacing: float, max_count: int) -> Array:
        """Return at most max_count positions (k, n) of the plan until it rests, spacing [s] apart."""
        if self._resting or self.plan is None:
            return np.empty((0, self.n))
        count = min(max(math.ceil(self.remaining / spacing), 1), max_count)
        times = self.elapsed + spacing * np.arange(1, count + 1)
        rows = self.plan.at_times(np.minimum(times, self.plan.duration).tolist())
        return np.asarray(rows[:, 0])

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which joints (n,) are outside their position limits."""
        return (self.position < self.lower - ROUNDING) | (self.position > self.upper + ROUNDING)

    def advance(self, dt: float) -> None:
        """Advance by dt [s] on the present plan, without regard to the target."""
        if self.plan is None or self._resting:
            return
        self.elapsed += dt
        position, velocity, acceleration = self.plan.at_time(self.elapsed)
        # Only against rounding: the plan was checked, and a joint outside must not jump to its limit.
        low, high = self.allowed()
        self.position = np.clip(position, low, high)
        self.velocity = velocity
        self.acceleration = acceleration
        if self.elapsed >= self.plan.duration:
            self._arrive()

    @property
    def state(self) -> MotionState:
        """Position, velocity and acceleration at the last setpoint."""
        return MotionState(self.position, self.velocity, self.acceleration)

    @state.setter
    def state(self, state: MotionState) -> None:
        self.position, self.velocity, self.acceleration = state

    def _begin_plan(self, plan: AnyPlan, jerk: Array) -> None:
        self.plan = plan
        self._jerk = jerk
        self.elapsed = 0.0

    def _arrive(self) -> None:
        if self._settled and self._target is not None:
            self.position = self._target.copy()  # without the rounding of the plan
        self.velocity = np.zeros(self.n)
        self.acceleration = np.zeros(self.n)
        self._returning = False
        self._resting = self._settled

    def allowed(self) -> tuple[Array, Array]:
        """Return the limits, widened to the present position of joints outside."""
        return np.minimum(self.lower, self.position), np.maximum(self.upper, self.position)

    def _replan(self) -> None:
        """Use the first plan that respects the position limits; without one keep the old plan."""
        outside = self.outside
        returning = bool(outside.any()) and self._target is not None
        jerk = admissible_jerk(self.state, self.limits, self._jerk)
        if self.hard:
            jerk = np.maximum(jerk, HARD * self.limits[2])
        candidates: list[tuple[Array | None, Synchronization]] = [(None, Synchronization.No)]
        if returning:
            inside = np.clip(self.position, self.lower, self.upper)
            candidates.insert(0, (np.where(outside, inside, self.position), Synchronization.No))
        elif self._target is not None and not self._too_fast(jerk):
            candidates[:0] = [(self._target, Synchronization.Time), (self._target, Synchronization.No)]
            if self.keeps is not None:  # it may need straight motions
                candidates.insert(0, (self._target, Synchronization.Phase))
        if self.hard:  # together: else the tool speeds up where one joint rests before another
            candidates.insert(0, (None, Synchronization.Phase))
        for target, synchronization in candidates:
            plan = self._planned(target, synchronization, RETURN_SPEED if returning else 1.0, jerk, self.allowed())
            if plan is None:
                continue
            if target is None and synchronization is Synchronization.Phase and not self._guarded(plan):
                continue  # joints go farther than in the stop that was checked
            self._begin_plan(plan, jerk)
            self._settled = target is self._target
            self._returning = returning and target is not None
            return

    def _guarded(self, plan: JointPlan) -> bool:
        return self.guard is None or self.guard(plan.low, plan.high, lambda: sampled(plan)[0])

    def _too_fast(self, jerk: Array) -> bool:
        """Whether even a stop exceeds the limits of the tool: a plan to a target would, too."""
        if self._pace is None:
            return False
        stop = self._planned(None, Synchronization.No, 1.0, jerk, self.allowed())
        return stop is not None and not self._pace.kept(stop)

    def _planned(
        self,
        target: Array | None,
        synchronization: Synchronization,
        share: float,
        jerk: Array,
        allowed: tuple[Array, Array],
    ) -> JointPlan | None:
        """Return the plan from the last setpoint to rest at target, None: soon. None if it leaves allowed."""

        def within(velocity: Array) -> JointPlan | None:
            limits = np.minimum(velocity, share * self.limits[0]), self.limits[1], jerk
            plan = self._planner.planned(self.state, target, synchronization, limits, allowed)
            return plan if plan is None or self.keeps is None or self.keeps(sampled(plan)[0]) else None

        plan = within(share * self.limits[0])
        if plan is None or target is None or self._pace is None:
            return plan
        return self._pace.slowed(plan, within)

    def track(self, target: MotionState, smoothing: float) -> None:
        """Follow a moving target; target: its state at the time of the next setpoint. Call before each one.

        smoothing: time constant [s] with which errors vanish. Joints outside their limits return first.
        """
        self.go_to(target.position)
        if self.outside.any():
            return
        nearest = near_turn(target.position, self.position, self._endless)
        clipped = np.abs(self.target - nearest) > 0.0
        velocity, acceleration = (np.where(clipped, 0.0, x) for x in target[1:])
        self._moving_target = MotionState(self.target, velocity, acceleration), smoothing

    def twin(self) -> JointMotion:
        """Return a copy in the same state, for simulation; it shares the arrays, which are never written."""
        other = copy.copy(self)
        other.set_blocks(self._planner.blocks)
        return other

    def step(self, dt: float) -> tuple[Array, Array]:
        """Advance by dt [s] and return position and velocity, each (n,).

        A target given since the last setpoint takes effect from that setpoint, so that the next setpoint
        already moves.
        """
        if not self._resting and dt > 0.0:
            self.tracking = self._moving_target is not None and self._track_for(dt)
            if not self.tracking:
                if not self._settled and not (self._returning and self._target is not None):
                    self._replan()
                self.advance(dt)
        return self.position, self.velocity

    def _track_for(self, dt: float) -> bool:
        """Advance by dt [s] after the moving target; False if the arm could not, or not come to rest from there."""
        assert self._moving_target is not None
        target, smoothing = self._moving_target
        self._moving_target = None
        if (admissible_jerk(self.state, self.limits, self._jerk) > (1.0 + ROUNDING) * self.limits[2]).any():
            return False  # by the jerk limit it would become too fast: after a hard stop, or with lower limits
        low, high = self.allowed()
        after = self._pursued(target, smoothing, dt, (low, high))
        before, self.state = self.state, after
        jerk = admissible_jerk(self.state, self.limits, self._jerk)
        plan = self._planned(None, Synchronization.No, 1.0, jerk, (low, high))
        if plan is None or (self._pace is not None and not self._pace.kept(plan)):
            self.state = before
            return False
        if not self._guarded(plan):
            # brake on the previous plan
            self.state, self._target, self._settled = before, None, True
            return False
        self.position = np.clip(self.position, low, high)  # against rounding only, as in advance
        self._begin_plan(plan, jerk)
        return True

    def _pursued(self, target: MotionState, smoothing: float, dt: float, allowed: tuple[Array, Array]) -> MotionState:
        """Return the state dt [s] after this one.

        A later block without a plan to rest from there continues its previous plan.
        """
        after = MotionState(*np.empty((3, self.n)))
        for block, pursuit in enumerate(self._pursuits):
            columns = self._planner.blocks[block]
            if not self.tracking:
                pursuit.restart()
            velocity, acceleration, jerk = (limit[columns] for limit in self.limits)
            now, goal = (MotionState(*(x[columns] for x in state)) for state in (self.state, target))
            found = pursuit.step(now, goal, (velocity, acceleration, jerk), smoothing, dt)
            for whole, part in zip(after, found, strict=True):
                whole[columns] = part
            if block and self.tracking and self.plan is not None:
                stop = None, Synchronization.No, self.limits, allowed
                if self._planner.part(block, after, *stop) is None:
                    pursuit.restart()
                    for whole, part in zip(after, self.plan.at_time(self.elapsed + dt), strict=True):
                        whole[columns] = part[columns]
        return after

    def continue_from(self, state: MotionState) -> bool:
        """Continue from another state; False, without a change, if no plan leads to rest."""
        before, plan, target = self.state, self.plan, self._moving_target
        if self.on_trajectory:
            return False
        self.state, self.plan, self._moving_target = admissible(state, self.limits), None, None
        self._replan()
        if self.plan is None:
            self.state, self.plan, self._moving_target = before, plan, target
            return False
        self.tracking = self._resting = False
        return True

    def ahead(self) -> RestOfMotion:
        """Return the rest of the motion; after a moving target it first continues for the time COAST."""
        if self.plan is None or not self.moving:
            return RestOfMotion(self.state, None)
        coasting = self.coasting(COAST)
        if coasting is None:
            return RestOfMotion(self.state, self.plan, -self.elapsed)
        now, jerk, stop = coasting
        return RestOfMotion(now, stop, COAST, jerk)

    def coasting(self, duration: float) -> tuple[MotionState, Array, JointPlan] | None:
        """Return how the joints continue after a moving target for a time [s], and then come to rest.

        The present state, the jerk (n,) that ends the acceleration in that time, and the plan from then on.
        None if no moving target was followed, or if the limits forbid it.
        """
        now, (velocity, _, jerkiest) = self.state, self.limits
        jerk = -now.acceleration / duration
        end = advanced(now, jerk, duration)
        if not self.tracking or (np.abs(jerk) > jerkiest).any() or (np.abs(end.velocity) > velocity).any():
            return None
        low, high = self.allowed()
        extremes = _turns(now, jerk, duration)
        if (extremes < low - BARELY).any() or (extremes > high + BARELY).any():
            return None
        self.state = MotionState(end.position, end.velocity, np.zeros(self.n))
        plan = self._planned(None, Synchronization.No, 1.0, jerkiest, (low, high))
        self.state = now
        if plan is None or (self.guard is None and self._pace is None):
            return None if plan is None else (now, jerk, plan)
        coast = [advanced(now, jerk, t) for t in np.arange(0.0, duration, SPACING)]
        rows = [np.vstack([x, y]) for x, y in zip(list(zip(*coast, strict=True))[:2], sampled(plan), strict=True)]
        slow = self._pace is None or self._pace.excess(*rows) <= SHARE
        free = self.guard is None or self.guard(rows[0].min(axis=0), rows[0].max(axis=0), lambda: rows[0])
        return (now, jerk, plan) if slow and free else None


def _turns(now: MotionState, jerk: Array, duration: float) -> Array:
    """Return the positions (2, n) at which joints turn that move with a constant jerk (n,) for a time [s].

    Those of joints that do not turn are on their way.
    """
    with np.errstate(divide='ignore', invalid='ignore'):
        root = np.sqrt(now.acceleration**2 - 2.0 * jerk * now.velocity)
        times = (-now.acceleration + np.outer([-1.0, 1.0], root)) / jerk
    times = np.nan_to_num(np.clip(times, 0.0, duration))
    return advanced(now, jerk, times).position


LONGEST = 3000  # positions of a motion that are known ahead


def positions_to_rest(motion: JointMotion, spacing: float = SPACING) -> Array:
    """Return positions (k, n) of a motion until it rests, spacing [s] apart; steps the motion to its plan."""
    rows = [motion.position]
    while motion.moving and len(rows) < LONGEST:
        if not math.isnan(motion.remaining):  # it has the plan to its end
            return np.vstack([rows, motion.planned(spacing, LONGEST - len(rows))])
        rows.append(motion.step(spacing)[0])
    return np.array(rows)


COAST = 0.15  # [s] for which a controller continues a moving target without a newer trajectory
POINT_GAP = 1e-4  # [s] minimum time between two points of a trajectory


@dataclass(frozen=True, eq=False)
class RestOfMotion:
    """The rest of the motion of one group, from the last setpoint to rest: a plan from begin [s] on.

    Before that, if begin is positive, the joints move from the state now with a constant jerk (n,). begin is
    negative where a plan has already begun. plan: None at rest.
    """

    now: MotionState
    plan: AnyPlan | None
    begin: float = 0.0
    jerk: Array | None = None

    @property
    def duration(self) -> float:
        """Time until all joints rest [s]."""
        return 0.0 if self.plan is None else max(self.plan.duration + self.begin, 0.0)

    def knots(self) -> list[float]:
        """Return times [s] between which every joint moves by a quintic."""
        if self.plan is None:
            return []
        knots = [knot + self.begin for knot in self.plan.knots()]
        return knots if self.jerk is None else [self.begin, *knots]

    def at_times(self, times: Sequence[float]) -> Array:
        """Return position, velocity and acceleration (k, 3, n) at times (k,) [s] after the last setpoint."""
        if self.plan is None:
            rest = np.array([self.now.position, *np.zeros((2, len(self.now.position)))])
            return np.broadcast_to(rest, (len(times), *rest.shape))
        rows = self.plan.at_times([min(max(t - self.begin, 0.0), self.plan.duration) for t in times])
        if self.jerk is not None:
            for k, t in enumerate(times):
                if t < self.begin:
                    rows[k] = advanced(self.now, self.jerk, t)
        return rows


class MotionAhead(NamedTuple):
    """Points of the rest of a motion: states (k, 3, n) at times (k,) [s] after the last setpoint, to rest.

    limits (3, n): of velocity, acceleration and jerk. braking: the motion only ends an earlier one.
    """

    names: tuple[str, ...]
    times: Array
    states: Array
    limits: Array
    braking: bool = False


def motion_ahead(groups: Sequence[tuple[tuple[str, ...], JointMotion]]) -> MotionAhead:
    """Return the rest of the motion of all groups (names, motion)."""
    names = tuple(name for joints, _ in groups for name in joints)
    rests = [motion.ahead() for _, motion in groups]
    knots = sorted({knot for rest in rests for knot in rest.knots() if knot > 0.0})
    times = point_times(knots, max(rest.duration for rest in rests))
    states = np.concatenate([rest.at_times(times) for rest in rests], axis=2)
    limits = np.concatenate([motion.limits for _, motion in groups], axis=1)
    braking = all(motion.braking or not motion.moving for _, motion in groups)
    return MotionAhead(names, np.array(times), states, limits, braking)


def point_times(knots: Sequence[float], end: float) -> list[float]:
    """Return the times [s] of the points of a motion with these knots, from 0 to its end.

    Of knots that are nearer than POINT_GAP, that next to the longer piece stays: an acceleration that ends at
    the other one would count for as long as that piece lasts.
    """
    times = [0.0]
    for knot, after in itertools.pairwise([*knots, end]):
        if times[-1] + POINT_GAP <= knot <= end - POINT_GAP:
            times.append(knot)
        elif times[-1] < knot <= end - POINT_GAP and len(times) > 1 and after - knot > times[-1] - times[-2]:
            times[-1] = knot
    return [*(time for time in times if time <= end - POINT_GAP), end]


def halt(state: MotionState, stops: Array, limits: Array) -> tuple[Array, Array] | None:
    """Return the motion from a state of joints (n,) to rest at stops (n,), NaN: as soon as possible.

    Times (k,) [s] and states (k, 3, n) of its points. limits: of velocity, acceleration and jerk (3, n). Each
    joint moves as fast as it can, so none passes the stop that the plan was checked for. None if there is no
    such motion.
    """
    fastest, hardest, jerkiest = limits
    start = admissible(state, (fastest, hardest, jerkiest))
    anywhere = np.isnan(stops)
    request = InputParameter(stops.size)
    request.current_position, request.current_velocity, request.current_acceleration = (row.tolist() for row in start)
    request.max_velocity, request.max_acceleration, request.max_jerk = limits.tolist()
    request.target_position = np.where(anywhere, start.position, stops).tolist()
    request.per_dof_control_interface = [
        ControlInterface.Velocity if free else ControlInterface.Position for free in anywhere
    ]
    request.synchronization = Synchronization.No
    found = calculated(Ruckig(stops.size), request)
    if found is None:
        return None
    plan = JointPlan([np.arange(stops.size)], [BlockPlan.of(found, np.zeros(stops.size))])
    times = point_times(plan.knots(), plan.duration)
    return np.array(times), plan.at_times(times)
