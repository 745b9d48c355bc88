# SPDX-License-Identifier: Apache-2.0
"""Plans of Ruckig for independent blocks of joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ruckig import ControlInterface, InputParameter, Ruckig, Synchronization, Trajectory

from ik_node.checks import Array
from ik_node.control.motion.motion_state import MotionState
from ik_node.control.motion.pursuit import Limits, calculated

ROUNDING = 1e-9  # a plan may exceed the position limits by this much
Columns = NDArray[np.int64]


class BlockPlan(NamedTuple):
    """The plan of one block, relative to origin (k,). low, high: least and largest positions, each (k,)."""

    plan: Trajectory
    origin: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, plan: Trajectory, origin: Array) -> BlockPlan:
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
        request.max_velocity, request.max_acceleration, request.max_jerk = (
            limit[columns].tolist() for limit in limits
        )
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

    @property
    def profiles(self) -> list[Any]:
        """Ruckig's profiles of the joints of each block in turn."""
        return [profile for part in self._parts for profile in part.plan.profiles[0]]
