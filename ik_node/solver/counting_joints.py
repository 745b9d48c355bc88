"""The joints of an arm that count for a goal, scaled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.model.arm import RANK_TOLERANCE, Arm
from ik_node.solver.motion_matrices import joint_matrices


@dataclass(frozen=True, eq=False)
class Chain:
    """The joints that count for a goal: axes, points (n, 3), slides (n,), variables (n,): their indices.

    point, axis (3,): of the tool. Points are relative to origin (3,) [m], in units of size [m].
    """

    axes: Array
    points: Array
    slides: NDArray[np.bool_]
    variables: NDArray[np.int_]
    point: Array
    axis: Array
    origin: Array
    size: float

    @property
    def n(self) -> int:
        """The number of joints."""
        return len(self.axes)

    def matrices(self, k: int, inverse: bool = False) -> Array:
        """The three matrices (3, 15, 15) of joint k, see joint_matrices."""
        return joint_matrices(self.axes[k], self.points[k], bool(self.slides[k]), inverse)


def chain_of(arm: Arm, direction: bool) -> Chain | None:
    """Return the joints that count for goals with or without direction; None if there are too many."""
    joints = arm.joints
    if arm.has_cones or not arm.is_plain or not arm.n:
        return None
    counts = ~arm.idle if direction else ~_still(arm)
    n = int(counts.sum())
    if n == 0 or n != (arm.effective_dof if direction else arm.position_dof):
        return None
    points = np.cumsum(joints[:, 3:6], axis=0)
    tool_point = points[-1] + arm.tool[:3]
    points = points[counts]
    origin = points.mean(axis=0)
    size = float(np.linalg.norm(np.vstack([points, tool_point]) - origin, axis=1).max())
    if size == 0.0:  # all in one point: only directions count
        size = 1.0
    return Chain(
        joints[counts, :3],
        (points - origin) / size,
        joints[counts, 6] != 0.0,
        np.flatnonzero(counts),
        (tool_point - origin) / size,
        arm.tool[3:6],
        origin,
        size,
    )


def _still(arm: Arm) -> NDArray[np.bool_]:
    """Which joints (n,) do not move the tool point in any configuration."""
    rng = np.random.default_rng(0)
    moved = [np.abs(arm.jacobian(q)[:3]).max(axis=0) for q in arm.sample(rng, 8)]
    still: NDArray[np.bool_] = np.max(moved, axis=0) <= RANK_TOLERANCE * max(arm.reach, 1e-9)
    return still
