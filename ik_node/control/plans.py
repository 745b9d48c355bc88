"""Plans of Ruckig for joints in blocks that do not wait for each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ruckig import ControlInterface, InputParameter, Ruckig, Synchronization, Trajectory

from ik_node.checks import Array
from ik_node.control.demand import Limits
from ik_node.control.goal_stream import JointState
from ik_node.control.pursuit import calculated

ROUNDING = 1e-9  # a plan may exceed the position limits by this much
Columns = NDArray[np.int64]


class Planner:
    """Plans motions of n joints; blocks: indices of joints that wait for each other."""

    def __init__(self, blocks: Sequence[Columns]) -> None:
        self.blocks = tuple(blocks)
        self._ruckigs = [Ruckig(len(columns)) for columns in self.blocks]

    def planned(
        self,
        start: JointState,
        target: Array | None,
        synchronization: Synchronization,
        limits: Limits,
        allowed: tuple[Array, Array],
    ) -> Trajectory | JoinedPlan | None:
        """Return the plan from start to rest at target (n,), None: soon; None if it leaves allowed."""
        parts = []
        for block in range(len(self.blocks)):
            part = self.part(block, start, target, synchronization, limits, allowed)
            if part is None:
                return None
            parts.append(part)
        return parts[0] if len(parts) == 1 else JoinedPlan(self.blocks, parts)

    def part(
        self,
        block: int,
        start: JointState,
        target: Array | None,
        synchronization: Synchronization,
        limits: Limits,
        allowed: tuple[Array, Array],
    ) -> Trajectory | None:
        """Return the same for one block."""
        columns, ruckig = self.blocks[block], self._ruckigs[block]
        position, velocity, acceleration = (x[columns] for x in start)
        request = InputParameter(len(columns))
        request.current_position = position.tolist()
        request.current_velocity = velocity.tolist()
        request.current_acceleration = acceleration.tolist()
        request.max_velocity, request.max_acceleration, request.max_jerk = (
            limit[columns].tolist() for limit in limits
        )
        request.synchronization = synchronization
        if target is None:
            request.control_interface = ControlInterface.Velocity
        else:
            request.target_position = target[columns].tolist()
        plan = calculated(ruckig, request)
        if plan is None:
            return None
        extrema, origin = plan.position_extrema, np.zeros(len(columns))
        if target is None:  # then Ruckig counts 0 among the extrema: let 0 be where the stop begins
            request.current_position = [0.0] * len(columns)
            relative = calculated(ruckig, request)
            if relative is None:
                return None
            extrema, origin = relative.position_extrema, position
        low, high = (bound[columns] for bound in allowed)
        reached_low = origin + np.array([bound.min for bound in extrema])
        reached_high = origin + np.array([bound.max for bound in extrema])
        inside = (reached_low >= low - ROUNDING).all() and (reached_high <= high + ROUNDING).all()
        return plan if inside else None


class JoinedPlan:
    """The plans of several blocks as one, with those members of Ruckig's Trajectory that are used here."""

    def __init__(self, blocks: Sequence[Columns], parts: Sequence[Trajectory]) -> None:
        self._blocks, self._parts = tuple(blocks), tuple(parts)
        self.duration = max(part.duration for part in parts)

    def at_time(self, time: float) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations, each (n,), at a time [s]."""
        n = sum(map(len, self._blocks))
        found = np.empty(n), np.empty(n), np.empty(n)
        for columns, part in zip(self._blocks, self._parts, strict=True):
            for whole, values in zip(found, part.at_time(time)[:3], strict=True):
                whole[columns] = values
        return found

    @property
    def position_extrema(self) -> list[Any]:
        """Ruckig's bounds of the position of each joint."""
        return self._by_joint(lambda part: part.position_extrema)

    @property
    def profiles(self) -> list[list[Any]]:
        """Ruckig's profiles of the joints, of the only section."""
        return [self._by_joint(lambda part: part.profiles[0])]

    def _by_joint(self, rows: Any) -> list[Any]:
        found: dict[int, Any] = {}
        for columns, part in zip(self._blocks, self._parts, strict=True):
            found.update(zip(columns.tolist(), rows(part), strict=True))
        return [found[i] for i in range(len(found))]
