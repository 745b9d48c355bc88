# SPDX-License-Identifier: Apache-2.0
"""JointMotion: from joint targets to samples within all limits, one per publish period."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ruckig import Synchronization

from ik_node.checks import Array, finite_array
from ik_node.control.motion.goal_stream import MotionState
from ik_node.control.motion.plans import ROUNDING, JointPlan, Planner
from ik_node.control.motion.pursuit import Pursuit, admissible, advanced
from ik_node.control.motion.tool_pace import SHARE, SPACING, ToolPace, places
from ik_node.control.motion.trajectory import Trajectory as TimedPath
from ik_node.errors import InputError

TURN = 2.0 * np.pi
Plan: TypeAlias = JointPlan | TimedPath
Guard: TypeAlias = Callable[[Array, Array, Callable[[], Array]], bool]
RETURN_SPEED = 0.1  # share of the velocity limit at which a joint returns from outside its limits
# At distances where a plan changes its shape, rounding can leave Ruckig without a plan. Round numbers
# (0.1 rad at 5 rad/s^2 and 50 rad/s^3) hit such distances, uneven ones do not.
UNEVEN = 1.0 - 1e-6 * np.pi
MOVING = 'the arm is moving: a path begins at rest'
PATH_SLACK = 1e-6  # [rad or m] by which a path may exceed them: samples are clipped


class JointMotion:
    """Moves n joints towards the newest target within position, velocity, acceleration and jerk limits.

    Time-optimal, jerk-limited plans come from Ruckig, which does not support position limits. One
    invariant keeps them: the plan being followed was checked to stay inside them until it rests. A new
    target changes the plan only if a plan for it passes the same check: all joints synchronised, else
    each as fast as it can, else a stop. If none passes, the old plan continues for one more sample, so
    that every target is reached at the latest from rest.

    A moving target is followed a sample at a time; every sample is one from which a plan to rest passes the
    same check, and that plan is continued where none is.

    A joint that starts outside its limits first returns to the nearer one, alone, at RETURN_SPEED.
    lower, upper: (n,) [rad or m], -inf and inf for joints without limits. position: (n,), at rest. blocks:
    indices of joints that wait for each other, without any for those of other blocks; those of the first one
    arrive together. None: all joints are one block.
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
                'lower and upper must be as long as each other, not empty, and lower <= upper, '
                f'got {self.lower.tolist()} and {self.upper.tolist()}'
            )
        self._endless = np.isinf(self.lower) & np.isinf(self.upper)
        self.set_blocks([np.arange(self.n)] if blocks is None else blocks)
        self._limits: tuple[Array, Array, Array] = (np.ones(self.n), np.ones(self.n), np.ones(self.n))
        self._pace: ToolPace | None = None
        self.guard: Guard | None = None  # whether a pursuit may end between low and high (n,), along places
        self.keeps: Callable[[Array], bool] | None = None  # whether any plan may lead along places (k, n)
        self._resting = self._settled = True  # there is no plan to follow
        self.reset(position)

    def set_blocks(self, blocks: Sequence[NDArray[np.int64]]) -> None:
        """Set which joints wait for each other, from the next plan on."""
        self._planner = Planner(blocks)
        self._pursuits = [Pursuit(len(columns)) for columns in blocks]

    def set_limits(self, velocity: ArrayLike, acceleration: ArrayLike, jerk: ArrayLike) -> None:
        """Set the limits, each (n,) > 0, in rad or m and seconds. A joint that is faster slows down."""
        limits = tuple(
            finite_array(name, value, self.n)
            for name, value in (('velocity', velocity), ('acceleration', acceleration), ('jerk', jerk))
        )
        if any((limit <= 0.0).any() for limit in limits):
            raise InputError(f'velocity, acceleration and jerk limits must be greater than 0, got {limits}')
        before, self._limits = self._limits, (limits[0], limits[1], UNEVEN * limits[2])
        if not self.on_path:
            self._settled = self._resting
        elif any((new < old).any() for new, old in zip(self._limits, before, strict=True)):
            self.stop()  # a new plan to the target would leave the path

    def set_pace(self, pace: ToolPace) -> None:
        """Slow later plans down to the limits of the tool. Stops are as fast as the joint limits allow."""
        before, self._pace = self._pace, pace if pace.limited else None
        if (before is None) != (self._pace is None) or (before is not None and not before.equals(pace)):
            self._settled = self._resting

    def reset(self, position: ArrayLike) -> None:
        """Stand still at position (n,), inside the limits or not, and forget the target."""
        self.position = finite_array('position', position, self.n)
        self.velocity: Array = np.zeros(self.n)
        self.acceleration: Array = np.zeros(self.n)
        self._target: Array | None = None
        self._moving_target: tuple[MotionState, float] | None = None  # and the smoothing
        self._plan: Plan | None = None
        self._jerk = self._limits[2]  # of the plan
        self._settled = True  # the plan being followed is the one for the target
        self._resting = True
        self._returning = False
        self.follows = False  # the last sample was one after a moving target: the plan only ends that
        self._elapsed = 0.0

    def go_to(self, target: ArrayLike) -> None:
        """Move to target (n,), clipped to the limits; joints without limits take the shorter way."""
        wanted = self._near_turn(finite_array('target', target, self.n))
        self._target = np.clip(wanted, self.lower, self.upper)
        self._moving_target = None
        self._settled = False
        self._resting = False

    def follow(self, target: MotionState, smoothing: float) -> None:
        """Follow a moving target with the next sample; target: at the time of that. Call before each sample.

        smoothing: time constant [s] with which errors vanish. Joints outside their limits return first.
        """
        self.go_to(target.position)
        if self.outside.any():
            return
        clipped = np.abs(self.target - self._near_turn(target.position)) > 0.0
        velocity, acceleration = (np.where(clipped, 0.0, x) for x in target[1:])
        self._moving_target = MotionState(self.target, velocity, acceleration), smoothing

    def follow_path(self, path: TimedPath) -> None:
        """Follow a timed path. Raises InputError unless it begins where the joints rest."""
        if not self._resting:
            raise InputError(MOVING)
        low, high = path.positions.min(axis=0), path.positions.max(axis=0)
        if np.abs(path.positions[0] - self.position).max() > ROUNDING:
            raise InputError('the arm has moved: the path begins elsewhere')
        if (low < self.lower - PATH_SLACK).any() or (high > self.upper + PATH_SLACK).any():
            raise InputError('the path leaves the position limits of the joints')
        self._use(path, self._limits[2])
        self._target, self._moving_target = path.positions[-1].copy(), None
        self._settled, self._resting = True, False

    def twin(self) -> JointMotion:
        """Return a copy in the same state, to see where it leads; it shares the arrays: none is written."""
        other = copy.copy(self)
        other.set_blocks(self._planner.blocks)
        return other

    def stop(self) -> None:
        """Stop as soon as the limits allow, and drop the target."""
        self._target = self._moving_target = None
        self._settled = self._resting

    def _near_turn(self, target: Array) -> Array:
        """Return target (n,), joints without limits less than half a turn away."""
        if not self._endless.any():
            return target
        turn = target - self.position
        return np.where(self._endless, self.position + (turn - TURN * np.round(turn / TURN)), target)

    @property
    def target(self) -> Array:
        """Target of the joints (n,); their position if they have none."""
        return self.position if self._target is None else self._target

    @property
    def moving(self) -> bool:
        """Whether a later sample will differ from the last one."""
        return not self._resting

    @property
    def limits(self) -> tuple[Array, Array, Array]:
        """Velocity, acceleration and jerk limits, each (n,)."""
        return self._limits

    @property
    def plan(self) -> Plan | None:
        """The plan being followed, from its beginning to rest; None before the first."""
        return self._plan

    @property
    def on_path(self) -> bool:
        """Whether a timed path is being followed."""
        return isinstance(self._plan, TimedPath) and self._settled and not self._resting

    @property
    def elapsed(self) -> float:
        """Time since the beginning of the plan [s]."""
        return self._elapsed

    @property
    def braking(self) -> bool:
        """Whether there is no target: the joints only come to rest."""
        return self._target is None

    @property
    def remaining(self) -> float:
        """Time left [s]; NaN before the next sample has a plan, and while the target moves."""
        if self._resting or self._plan is None:
            return 0.0 if self._resting else math.nan
        return max(0.0, self._plan.duration - self._elapsed) if self._settled else math.nan

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which joints (n,) are outside their position limits."""
        return (self.position < self.lower - ROUNDING) | (self.position > self.upper + ROUNDING)

    def step(self, dt: float) -> tuple[Array, Array]:
        """Advance by dt [s] and return position and velocity, each (n,).

        A target given since the last sample takes effect from that sample, so that the next sample
        already moves.
        """
        if self._resting or dt <= 0.0:
            return self.position, self.velocity
        self.follows = self._moving_target is not None and self._followed(dt)
        if self.follows:
            return self.position, self.velocity
        if not self._settled and not (self._returning and self._target is not None):
            self._replan()
        self.carry_on(dt)
        return self.position, self.velocity

    def carry_on(self, dt: float) -> None:
        """Advance by dt [s] on the present plan, whatever the target is."""
        if self._plan is None or self._resting:
            return
        self._elapsed += dt
        position, velocity, acceleration = self._plan.at_time(self._elapsed)
        # Against rounding only: the plan was checked, and a joint outside must not jump to its limit.
        low, high = self._allowed()
        self.position = np.clip(position, low, high)
        self.velocity = velocity
        self.acceleration = acceleration
        if self._elapsed >= self._plan.duration:
            self._arrive()

    def _followed(self, dt: float) -> bool:
        """Advance by dt [s] after the moving target; False if the arm could not come to rest from there."""
        assert self._moving_target is not None
        target, smoothing = self._moving_target
        self._moving_target = None
        low, high = self._allowed()
        after = self._pursued(target, smoothing, dt, (low, high))
        before, self._state = self._state, after
        jerk = self._jerk_now()
        plan = self._planned(None, Synchronization.No, 1.0, jerk, (low, high))
        if plan is None or (self._pace is not None and not self._pace.kept(plan)):
            self._state = before
            return False
        if self.guard is not None and not self.guard(plan.low, plan.high, lambda: places(plan)[0]):
            # brake on the plan before
            self._state, self._target, self._settled = before, None, True
            return False
        self.position = np.clip(self.position, low, high)  # against rounding only, as in step
        self._use(plan, jerk)
        return True

    def _pursued(
        self, target: MotionState, smoothing: float, dt: float, allowed: tuple[Array, Array]
    ) -> MotionState:
        """Return the state dt [s] after this one.

        A later block that could not rest from there goes on as it was planned before.
        """
        after = MotionState(*np.empty((3, self.n)))
        for block, pursuit in enumerate(self._pursuits):
            columns = self._planner.blocks[block]
            if not self.follows:
                pursuit.restart()
            velocity, acceleration, jerk = (limit[columns] for limit in self._limits)
            now, goal = (MotionState(*(x[columns] for x in state)) for state in (self._state, target))
            found = pursuit.step(now, goal, (velocity, acceleration, jerk), smoothing, dt)
            for whole, part in zip(after, found, strict=True):
                whole[columns] = part
            if block and self.follows and self._plan is not None:
                stop = None, Synchronization.No, self._limits, allowed
                if self._planner.part(block, after, *stop) is None:
                    pursuit.restart()
                    for whole, part in zip(after, self._plan.at_time(self._elapsed + dt), strict=True):
                        whole[columns] = part[columns]
        return after

    def go_on_from(self, state: MotionState) -> bool:
        """Go on from another state; False, and nothing changes, if no plan leads to rest."""
        before, plan, target = self._state, self._plan, self._moving_target
        if self.on_path:
            return False
        self._state, self._plan, self._moving_target = admissible(state, self._limits), None, None
        self._replan()
        if self._plan is None:
            self._state, self._plan, self._moving_target = before, plan, target
            return False
        self.follows = self._resting = False
        return True

    def coasting(self, duration: float) -> tuple[MotionState, Array, JointPlan] | None:
        """Return how the joints go on after a moving target for a while [s], and then rest.

        That is the state now, the jerk (n,) that ends the acceleration meanwhile, and the plan from then on.
        None if no moving target was followed, or if the limits forbid it.
        """
        now, (velocity, _, jerkiest) = self._state, self._limits
        jerk = -now.acceleration / duration
        end = advanced(now, jerk, duration)
        if not self.follows or (np.abs(jerk) > jerkiest).any() or (np.abs(end.velocity) > velocity).any():
            return None
        low, high = self._allowed()
        self._state = MotionState(end.position, end.velocity, np.zeros(self.n))
        plan = self._planned(None, Synchronization.No, 1.0, jerkiest, (low, high))
        self._state = now
        if plan is None or (self.guard is None and self._pace is None):
            return None if plan is None else (now, jerk, plan)
        coast = [advanced(now, jerk, t) for t in np.arange(0.0, duration, SPACING)]
        rows = [
            np.vstack([x, y]) for x, y in zip(list(zip(*coast, strict=True))[:2], places(plan), strict=True)
        ]
        slow = self._pace is None or self._pace.excess(*rows) <= SHARE
        free = self.guard is None or self.guard(rows[0].min(axis=0), rows[0].max(axis=0), lambda: rows[0])
        return (now, jerk, plan) if slow and free else None

    @property
    def _state(self) -> MotionState:
        return MotionState(self.position, self.velocity, self.acceleration)

    @_state.setter
    def _state(self, state: MotionState) -> None:
        self.position, self.velocity, self.acceleration = state

    def _use(self, plan: Plan, jerk: Array) -> None:
        self._plan = plan
        self._jerk = jerk
        self._elapsed = 0.0

    def _arrive(self) -> None:
        if self._settled and self._target is not None:
            self.position = self._target.copy()  # without the rounding of the plan
        self.velocity = np.zeros(self.n)
        self.acceleration = np.zeros(self.n)
        self._returning = False
        self._resting = self._settled

    def _allowed(self) -> tuple[Array, Array]:
        """Return the limits, widened to where a joint outside them is now."""
        return np.minimum(self.lower, self.position), np.maximum(self.upper, self.position)

    def _replan(self) -> None:
        """Use the first plan that keeps the position limits; without one keep the old plan."""
        outside = self.outside
        returning = bool(outside.any()) and self._target is not None
        candidates: list[tuple[Array | None, Synchronization]] = [(None, Synchronization.No)]
        if returning:
            inside = np.clip(self.position, self.lower, self.upper)
            candidates.insert(0, (np.where(outside, inside, self.position), Synchronization.No))
        elif self._target is not None:
            candidates[:0] = [(self._target, Synchronization.Time), (self._target, Synchronization.No)]
            if self.keeps is not None:  # it may need straight motions
                candidates.insert(0, (self._target, Synchronization.Phase))
        jerk = self._jerk_now()
        for target, synchronization in candidates:
            plan = self._planned(
                target, synchronization, RETURN_SPEED if returning else 1.0, jerk, self._allowed()
            )
            if plan is not None:
                self._use(plan, jerk)
                self._settled = target is self._target
                self._returning = returning and target is not None
                return

    def _jerk_now(self) -> Array:
        """Return the jerk limits, raised where a joint speeds up too hard to end that within its speed limit.

        Ending an acceleration a takes the speed towards a up by a^2 / (2 jerk). So a jerk limit that was
        lowered in mid-motion is kept as soon as the speed limit allows, and at once otherwise.
        """
        velocity, _, jerk = self._limits
        gain = self.acceleration**2 / 2.0
        room = np.maximum(velocity - np.sign(self.acceleration) * self.velocity, gain / self._jerk)
        return np.maximum(jerk, np.divide(gain, room, out=np.zeros(self.n), where=gain > 0.0))

    def _planned(
        self,
        target: Array | None,
        synchronization: Synchronization,
        share: float,
        jerk: Array,
        allowed: tuple[Array, Array],
    ) -> JointPlan | None:
        """Return the plan from the last sample to rest at target (None: soon); None if it leaves allowed."""

        def within(velocity: Array) -> JointPlan | None:
            limits = velocity, self._limits[1], jerk
            plan = self._planner.planned(self._state, target, synchronization, limits, allowed)
            return plan if plan is None or self.keeps is None or self.keeps(places(plan)[0]) else None

        plan = within(share * self._limits[0])
        if plan is None or target is None or self._pace is None:
            return plan
        return self._pace.slowed(plan, within)
