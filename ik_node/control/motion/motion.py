# SPDX-License-Identifier: Apache-2.0
"""JointMotion: to targets at rest, and after targets that move."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ruckig import Synchronization

from ik_node.checks import Array
from ik_node.control.motion.motion_state import MotionState
from ik_node.control.motion.planned_motion import PlannedMotion, near_turn
from ik_node.control.motion.plans import JointPlan
from ik_node.control.motion.pursuit import Pursuit, admissible, admissible_jerk, advanced
from ik_node.control.motion.tool_pace import SHARE, SPACING, places
from ik_node.control.motion.trajectory import Trajectory as TimedPath

Guard: TypeAlias = Callable[[Array, Array, Callable[[], Array]], bool]
BARELY = 1e-6  # [rad or m] beyond a limit, by rounding


class JointMotion(PlannedMotion):
    """Follows a moving target step by step, and moves to targets at rest like PlannedMotion.

    From every setpoint of a moving target a plan to rest respects the position limits; where there is no such
    setpoint, the previous plan continues.

    guard: whether such a plan may stay between low and high (n,), along positions (k, n); None: always.
    follows: whether the last setpoint followed a moving target; then the plan is only a way to rest.
    """

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        position: ArrayLike,
        blocks: Sequence[NDArray[np.int64]] | None = None,
    ) -> None:
        """Arguments as of PlannedMotion."""
        super().__init__(lower, upper, position, blocks)
        self.guard: Guard | None = None

    def set_blocks(self, blocks: Sequence[NDArray[np.int64]]) -> None:
        """Set which joints are synchronised, from the next setpoint on."""
        super().set_blocks(blocks)
        self._pursuits = [Pursuit(len(columns)) for columns in blocks]

    def reset(self, position: ArrayLike) -> None:
        """Rest at position (n,), inside the limits or not, and forget the target."""
        super().reset(position)
        self._moving_target: tuple[MotionState, float] | None = None  # and the smoothing
        self.follows = False

    def go_to(self, target: ArrayLike) -> None:
        """Move to target (n,), clipped to the limits; joints without limits take the shorter way."""
        super().go_to(target)
        self._moving_target = None

    def follow_path(self, path: TimedPath) -> None:
        """Follow a timed path. Raises InputError unless it starts at the resting joints."""
        super().follow_path(path)
        self._moving_target = None

    def stop(self) -> None:
        """Stop as soon as the limits allow, and drop the target."""
        super().stop()
        self._moving_target = None

    def follow(self, target: MotionState, smoothing: float) -> None:
        """Follow a moving target; target: its state at the time of the next setpoint. Call before each one.

        smoothing: time constant [s] with which errors vanish. Joints outside their limits return first.
        """
        self.go_to(target.position)
        if self.outside.any():
            return
        wanted = near_turn(target.position, self.position, self._endless)
        clipped = np.abs(self.target - wanted) > 0.0
        velocity, acceleration = (np.where(clipped, 0.0, x) for x in target[1:])
        self._moving_target = MotionState(self.target, velocity, acceleration), smoothing

    def twin(self) -> JointMotion:
        """Return a copy in the same state, for simulation; it shares the arrays, which are never written."""
        other = copy.copy(self)
        other.set_blocks(self._planner.blocks)
        return other

    def step(self, dt: float) -> tuple[Array, Array]:
        """Advance by dt [s] and return position and velocity, each (n,); see PlannedMotion."""
        if self._resting or dt <= 0.0:
            return self.position, self.velocity
        self.follows = self._moving_target is not None and self._followed(dt)
        return (self.position, self.velocity) if self.follows else super().step(dt)

    def _followed(self, dt: float) -> bool:
        """Advance by dt [s] after the moving target; False if the arm could not come to rest from there."""
        assert self._moving_target is not None
        target, smoothing = self._moving_target
        self._moving_target = None
        low, high = self.allowed()
        after = self._pursued(target, smoothing, dt, (low, high))
        before, self.state = self.state, after
        jerk = admissible_jerk(self.state, self.limits, self._jerk)
        plan = self._planned(None, Synchronization.No, 1.0, jerk, (low, high))
        if plan is None or (self._pace is not None and not self._pace.kept(plan)):
            self.state = before
            return False
        if self.guard is not None and not self.guard(plan.low, plan.high, lambda: places(plan)[0]):
            # brake on the previous plan
            self.state, self._target, self._settled = before, None, True
            return False
        self.position = np.clip(self.position, low, high)  # against rounding only, as in step
        self._use(plan, jerk)
        return True

    def _pursued(
        self, target: MotionState, smoothing: float, dt: float, allowed: tuple[Array, Array]
    ) -> MotionState:
        """Return the state dt [s] after this one.

        A later block without a plan to rest from there continues its previous plan.
        """
        after = MotionState(*np.empty((3, self.n)))
        for block, pursuit in enumerate(self._pursuits):
            columns = self._planner.blocks[block]
            if not self.follows:
                pursuit.restart()
            velocity, acceleration, jerk = (limit[columns] for limit in self.limits)
            now, goal = (MotionState(*(x[columns] for x in state)) for state in (self.state, target))
            found = pursuit.step(now, goal, (velocity, acceleration, jerk), smoothing, dt)
            for whole, part in zip(after, found, strict=True):
                whole[columns] = part
            if block and self.follows and self.plan is not None:
                stop = None, Synchronization.No, self.limits, allowed
                if self._planner.part(block, after, *stop) is None:
                    pursuit.restart()
                    for whole, part in zip(after, self.plan.at_time(self.elapsed + dt), strict=True):
                        whole[columns] = part[columns]
        return after

    def go_on_from(self, state: MotionState) -> bool:
        """Continue from another state; False, without a change, if no plan leads to rest."""
        before, plan, target = self.state, self.plan, self._moving_target
        if self.on_path:
            return False
        self.state, self.plan, self._moving_target = admissible(state, self.limits), None, None
        self._replan()
        if self.plan is None:
            self.state, self.plan, self._moving_target = before, plan, target
            return False
        self.follows = self._resting = False
        return True

    def coasting(self, duration: float) -> tuple[MotionState, Array, JointPlan] | None:
        """Return how the joints continue after a moving target for a time [s], and then come to rest.

        The present state, the jerk (n,) that ends the acceleration in that time, and the plan from then on.
        None if no moving target was followed, or if the limits forbid it.
        """
        now, (velocity, _, jerkiest) = self.state, self.limits
        jerk = -now.acceleration / duration
        end = advanced(now, jerk, duration)
        if not self.follows or (np.abs(jerk) > jerkiest).any() or (np.abs(end.velocity) > velocity).any():
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
        rows = [
            np.vstack([x, y]) for x, y in zip(list(zip(*coast, strict=True))[:2], places(plan), strict=True)
        ]
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
