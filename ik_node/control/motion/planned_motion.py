# SPDX-License-Identifier: Apache-2.0
"""PlannedMotion: from joint targets at rest to setpoints within all limits, one per publish period.

Time-optimal, jerk-limited plans come from Ruckig, which does not support position limits. One invariant keeps
them: the plan being followed was checked to stay inside them until it rests. A new target changes the plan
only if a plan for it passes the same check: all joints synchronised, else each as fast as it can, else a
stop. If none passes, the old plan continues for one more setpoint; every target is reached from rest at the
latest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ruckig import Synchronization

from ik_node.checks import Array, finite_array
from ik_node.control.motion.motion_state import MotionState
from ik_node.control.motion.plans import ROUNDING, JointPlan, Planner
from ik_node.control.motion.pursuit import admissible_jerk
from ik_node.control.motion.tool_pace import ToolPace, places
from ik_node.control.motion.trajectory import Trajectory as TimedPath
from ik_node.errors import InputError

TURN = 2.0 * np.pi
Plan: TypeAlias = JointPlan | TimedPath
RETURN_SPEED = 0.1  # share of the velocity limit at which a joint returns from outside its limits
# At distances where a plan changes its shape, rounding can leave Ruckig without a plan. Round numbers
# (0.1 rad at 5 rad/s^2 and 50 rad/s^3) hit such distances, uneven ones do not.
UNEVEN = 1.0 - 1e-6 * np.pi
MOVING = 'the arm is moving: a path begins at rest'
PATH_SLACK = 1e-6  # [rad or m] by which a path may exceed them: setpoints are clipped


class PlannedMotion:
    """Moves n joints towards the newest target within position, velocity, acceleration and jerk limits.

    A joint that starts outside its limits first returns to the nearer one, alone, at RETURN_SPEED.
    lower, upper: (n,) [rad or m], -inf and inf for joints without limits. position: (n,), at rest. blocks:
    indices of synchronised joints, independent of other blocks; those of the first one arrive together. None:
    all joints are one block.

    limits: of velocity, acceleration and jerk, each (n,). plan: the one being followed, from its beginning to
    rest; None before the first. elapsed: time since its beginning [s].
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
        self._resting = self._settled = True  # there is no plan to follow
        self.reset(position)

    def set_blocks(self, blocks: Sequence[NDArray[np.int64]]) -> None:
        """Set which joints are synchronised, from the next plan on."""
        self._planner = Planner(blocks)

    def set_limits(self, velocity: ArrayLike, acceleration: ArrayLike, jerk: ArrayLike) -> None:
        """Set the limits, each (n,) > 0, in rad or m and seconds. Faster joints slow down."""
        limits = tuple(
            finite_array(name, value, self.n)
            for name, value in (('velocity', velocity), ('acceleration', acceleration), ('jerk', jerk))
        )
        if any((limit <= 0.0).any() for limit in limits):
            raise InputError(f'velocity, acceleration and jerk limits must be greater than 0, got {limits}')
        before, self.limits = self.limits, (limits[0], limits[1], UNEVEN * limits[2])
        if not self.on_path:
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
        self.plan: Plan | None = None
        self._jerk = self.limits[2]  # of the plan
        self._settled = True  # the plan being followed is the one for the target
        self._resting = True
        self._returning = False
        self.elapsed = 0.0

    def go_to(self, target: ArrayLike) -> None:
        """Move to target (n,), clipped to the limits; joints without limits take the shorter way."""
        wanted = near_turn(finite_array('target', target, self.n), self.position, self._endless)
        self._target = np.clip(wanted, self.lower, self.upper)
        self._settled = False
        self._resting = False

    def follow_path(self, path: TimedPath) -> None:
        """Follow a timed path. Raises InputError unless it starts at the resting joints."""
        if not self._resting:
            raise InputError(MOVING)
        low, high = path.positions.min(axis=0), path.positions.max(axis=0)
        if np.abs(path.positions[0] - self.position).max() > ROUNDING:
            raise InputError('the arm has moved: the path begins elsewhere')
        if (low < self.lower - PATH_SLACK).any() or (high > self.upper + PATH_SLACK).any():
            raise InputError('the path leaves the position limits of the joints')
        self._use(path, self.limits[2])
        self._target = path.positions[-1].copy()
        self._settled, self._resting = True, False

    def stop(self) -> None:
        """Stop as soon as the limits allow, and drop the target."""
        self._target = None
        self._settled = self._resting

    @property
    def target(self) -> Array:
        """Target of the joints (n,); their position if they have none."""
        return self.position if self._target is None else self._target

    @property
    def moving(self) -> bool:
        """Whether a later setpoint will differ from the last one."""
        return not self._resting

    @property
    def on_path(self) -> bool:
        """Whether a timed path is being followed."""
        return isinstance(self.plan, TimedPath) and self._settled and not self._resting

    @property
    def braking(self) -> bool:
        """Whether there is no target: the joints are only braking."""
        return self._target is None

    @property
    def remaining(self) -> float:
        """Time left [s]; NaN before the next setpoint has a plan, and while the target moves."""
        if self._resting or self.plan is None:
            return 0.0 if self._resting else math.nan
        return max(0.0, self.plan.duration - self.elapsed) if self._settled else math.nan

    def planned(self, spacing: float, most: int) -> Array:
        """Return the next most positions (k, n), or fewer, of the plan until it rests, spacing [s] apart."""
        if self._resting or self.plan is None:
            return np.empty((0, self.n))
        count = min(max(math.ceil(self.remaining / spacing), 1), most)
        times = self.elapsed + spacing * np.arange(1, count + 1)
        rows = self.plan.at_times(np.minimum(times, self.plan.duration).tolist())
        return np.asarray(rows[:, 0])

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which joints (n,) are outside their position limits."""
        return (self.position < self.lower - ROUNDING) | (self.position > self.upper + ROUNDING)

    def step(self, dt: float) -> tuple[Array, Array]:
        """Advance by dt [s] and return position and velocity, each (n,).

        A target given since the last setpoint takes effect from that setpoint, so that the next setpoint
        already moves.
        """
        if not self._resting and dt > 0.0:
            if not self._settled and not (self._returning and self._target is not None):
                self._replan()
            self.carry_on(dt)
        return self.position, self.velocity

    def carry_on(self, dt: float) -> None:
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

    def _use(self, plan: Plan, jerk: Array) -> None:
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
        candidates: list[tuple[Array | None, Synchronization]] = [(None, Synchronization.No)]
        if returning:
            inside = np.clip(self.position, self.lower, self.upper)
            candidates.insert(0, (np.where(outside, inside, self.position), Synchronization.No))
        elif self._target is not None and not self._too_fast(jerk):
            candidates[:0] = [(self._target, Synchronization.Time), (self._target, Synchronization.No)]
            if self.keeps is not None:  # it may need straight motions
                candidates.insert(0, (self._target, Synchronization.Phase))
        for target, synchronization in candidates:
            plan = self._planned(
                target, synchronization, RETURN_SPEED if returning else 1.0, jerk, self.allowed()
            )
            if plan is not None:
                self._use(plan, jerk)
                self._settled = target is self._target
                self._returning = returning and target is not None
                return

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
            return plan if plan is None or self.keeps is None or self.keeps(places(plan)[0]) else None

        plan = within(share * self.limits[0])
        if plan is None or target is None or self._pace is None:
            return plan
        return self._pace.slowed(plan, within)


def near_turn(target: Array, position: Array, endless: NDArray[np.bool_]) -> Array:
    """Return target (n,), endless joints less than half a turn away from position (n,)."""
    if not endless.any():
        return target
    turn = target - position
    return np.where(endless, position + (turn - TURN * np.round(turn / TURN)), target)
