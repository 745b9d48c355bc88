# SPDX-License-Identifier: Apache-2.0
"""The task joints of an arm: those that move the tool, scaled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays.layout import AXIS, OFFSET, PRISMATIC, RATIO, SHIFT, VARIABLE
from ik_node.model.arm import Arm
from ik_node.model.degrees_of_freedom import RANK_TOLERANCE
from ik_node.solver.elimination.motion_matrices import joint_matrices

SAMPLES = 8  # configurations in which joints are examined


@dataclass(frozen=True, eq=False)
class TaskChain:
    """The task joints: axes, points (n, 3), slides (n,).

    variables (n,): their indices. numbers (n,): their places in the chain, from 1, mimic joints counted.
    point, axis (3,): of the tool. Points are relative to origin (3,) [m], in units of size [m].
    """

    axes: Array
    points: Array
    slides: NDArray[np.bool_]
    variables: NDArray[np.int_]
    numbers: NDArray[np.int_]
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


def chain_of(arm: Arm, direction: bool) -> TaskChain | None:
    """Return the task joints for goals with or without direction; None if there are too many.

    A mimic joint is treated as an independent one, with an index beyond those of the arm's variables.
    """
    if arm.has_cones or not arm.n:
        return None
    joints, tool, variables = arm.joints, arm.tool, np.arange(arm.n)
    numbers = variables + 1
    needed = ~arm.idle if direction else ~_still(arm)
    counts, dof = needed, arm.effective_dof if direction else arm.position_dof
    if not arm.is_plain:
        joints, tool, variables, numbers = _freed(arm)
        counts, dof = _mobility(joints, tool, 6 if direction else 3)
    n = int(counts.sum())
    if n == 0 or n != dof or not set(np.flatnonzero(needed)) <= set(variables[counts]):
        return None
    points = np.cumsum(joints[:, OFFSET], axis=0)
    tool_point = points[-1] + tool[:3]
    points = points[counts]
    origin = points.mean(axis=0)
    size = float(np.linalg.norm(np.vstack([points, tool_point]) - origin, axis=1).max())
    if size == 0.0:  # all in one point: only directions count
        size = 1.0
    return TaskChain(
        joints[counts, AXIS],
        (points - origin) / size,
        joints[counts, PRISMATIC] != 0.0,
        variables[counts],
        numbers[counts],
        (tool_point - origin) / size,
        tool[3:6],
        origin,
        size,
    )


def _freed(arm: Arm) -> tuple[Array, Array, NDArray[np.int_], NDArray[np.int_]]:
    """Return joints, tool, variables and numbers (k,) of an arm whose mimic joints move on their own.

    Joints that turn one after the other about the same line are one. A joint that the arm moves alone keeps
    its index, others have one from arm.n on: forward kinematics then checks whether the arm can move them so.
    """
    points = np.cumsum(arm.joints[:, OFFSET], axis=0)
    kept: list[int] = []
    variables: list[int] = []
    for i, row in enumerate(arm.joints):
        if kept and _on_one_line(arm.joints[kept[-1]], row, points[i] - points[kept[-1]]):
            variables[-1] = arm.n + i
            continue
        kept.append(i)
        variables.append(int(row[VARIABLE]) if row[RATIO] == 1.0 and row[SHIFT] == 0.0 else arm.n + i)
    joints = arm.joints[kept].copy()
    joints[:, OFFSET] = np.diff(points[kept], axis=0, prepend=np.zeros((1, 3)))
    joints[:, VARIABLE], joints[:, RATIO], joints[:, SHIFT] = np.arange(len(kept)), 1.0, 0.0
    tool = arm.tool.copy()
    tool[:3] += points[-1] - points[kept[-1]]
    return joints, tool, np.array(variables), np.array(kept) + 1


def _on_one_line(first: Array, second: Array, between: Array) -> bool:
    """Whether two joints, rows of joints, turn about the same line; between (3,): from one to the other."""
    if first[PRISMATIC] != 0.0 or second[PRISMATIC] != 0.0:
        return False
    off = [np.cross(first[AXIS], second[AXIS]), np.cross(first[AXIS], between)]
    return float(first[AXIS] @ second[AXIS]) > 0.0 and not np.any(off)


def _mobility(joints: Array, tool: Array, rows: int) -> tuple[NDArray[np.bool_], int]:
    """Return which joints (k,) move the tool, and the rank of their motions; rows: 3 for its point alone."""
    rng, size = np.random.default_rng(0), float(np.abs(joints[:, OFFSET]).sum() + np.abs(tool[:3]).sum())
    columns = np.empty((SAMPLES, len(joints), 6))
    for column in columns:
        frames = np.empty((2 * len(joints) + 3, 3))
        kernels.forward(joints, tool, rng.uniform(-np.pi, np.pi, len(joints)), frames)
        kernels.jacobian(joints, frames, column)
    columns[:, :, :3] /= max(size, 1e-9)
    moves = columns[:, :, :rows]
    rank = int(np.linalg.matrix_rank(moves, tol=RANK_TOLERANCE).max())
    return np.abs(moves).max(axis=(0, 2)) > RANK_TOLERANCE, rank


def _still(arm: Arm) -> NDArray[np.bool_]:
    """Which joints (n,) do not move the tool point in any configuration."""
    rng = np.random.default_rng(0)
    moved = [np.abs(arm.jacobian(q)[:3]).max(axis=0) for q in arm.sample(rng, SAMPLES)]
    still: NDArray[np.bool_] = np.max(moved, axis=0) <= RANK_TOLERANCE * max(arm.reach, 1e-9)
    return still
