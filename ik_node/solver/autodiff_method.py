# SPDX-License-Identifier: Apache-2.0
"""L-BFGS-B on a gradient by automatic differentiation: inverse kinematics as a differentiable program."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import (
    AXIS,
    DIRECTION,
    ITERATIONS,
    OFFSET,
    PRISMATIC,
    RATIO,
    SHIFT,
    VARIABLE,
    WEIGHT,
)
from ik_node.model.rotations import hat

PRECISION = 1e-14  # a descent ends when the gradient of the squared error is below this
FARTHEST = 1e50  # m; the square of more overflows


@dataclass(slots=True, eq=False)
class Dual:
    """An array and its derivatives by n variables, carried through every operation (forward mode).

    value: (...). slope: (n, ...).
    """

    value: Array
    slope: Array

    def __add__(self, other: Dual | Array) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.slope + other.slope)
        return Dual(self.value + other, self.slope)

    def __mul__(self, factor: Dual | Array | float) -> Dual:
        if isinstance(factor, Dual):  # a single number
            slope = self.slope * factor.value + factor.slope[(..., *[None] * self.value.ndim)] * self.value
            return Dual(self.value * factor.value, slope)
        return Dual(self.value * factor, self.slope * factor)

    def __matmul__(self, matrix: Array) -> Dual:
        return Dual(self.value @ matrix, self.slope @ matrix)

    def __getitem__(self, i: int | NDArray[np.intp]) -> Dual:
        return Dual(self.value[i], self.slope[:, i])

    def sin(self) -> Dual:
        return Dual(np.sin(self.value), np.cos(self.value) * self.slope)

    def cos(self) -> Dual:
        return Dual(np.cos(self.value), -np.sin(self.value) * self.slope)

    def squared(self) -> Dual:
        """The squared length of this vector."""
        return Dual(self.value @ self.value, 2.0 * (self.slope @ self.value))


def variables(q: Array) -> Dual:
    """The variables q (n,) themselves."""
    return Dual(q, np.eye(len(q)))


def constant(value: Array, n: int) -> Dual:
    """An array (...) on which none of n variables has an effect."""
    return Dual(value, np.zeros((n, *value.shape)))


def tool_pose(joints: Array, tool: Array, q: Dual) -> Dual:
    """Tool point and tool axis (2, 3) at the variables q, from the tool to the base."""
    n = len(q.value)
    pose, shift = constant(tool[:6].reshape(2, 3), n), np.zeros((2, 3))
    moves = q[joints[:, VARIABLE].astype(np.intp)] * joints[:, RATIO] + joints[:, SHIFT]
    sines, versines = moves.sin(), moves.cos() * -1.0 + np.ones(len(joints))
    crosses = hat(-joints[:, AXIS])  # for rows v: v hat(-k) = k x v
    for i in range(len(joints) - 1, -1, -1):
        shift[0] = joints[i, OFFSET]
        if joints[i, PRISMATIC]:
            pose = pose + constant(np.array([joints[i, AXIS], np.zeros(3)]), n) * moves[i]
        else:  # Rodrigues' formula: v + sin k x v + (1 - cos) k x (k x v)
            turned = pose @ crosses[i]
            pose = pose + turned * sines[i] + turned @ crosses[i] * versines[i]
        pose = pose + shift
    return pose


def squared_error(joints: Array, tool: Array, goal: Array, weight: float, q: Array) -> Dual:
    """|position error|^2 + weight^2 |direction chord|^2 at q (n,), with its gradient as slope (n,)."""
    pose = tool_pose(joints, tool, variables(q))
    error = (pose[0] + -goal[:3]).squared()
    if np.isnan(goal[DIRECTION]):
        return error
    return error + (pose[1] + -goal[3:6]).squared() * weight**2


def descend(
    joints: Array,
    tool: Array,
    limits: Array,
    goal: Array,
    options: Array,
    q: Array,
    frames: Array,
    _: Array,
) -> int:
    """One descent by L-BFGS-B from q (n,), in place.

    As kernels.local_lm: within the limits, frames at the returned q. Returns the number of iterations.
    """
    kernels.clip(q, limits)
    weight, scale = float(options[WEIGHT]), 1.0

    def cost(values: Array) -> tuple[float, Array]:
        error = squared_error(joints, tool, goal, weight, values)
        return float(error.value) / scale, error.slope / scale

    iterations = 0
    if np.abs(goal[:3]).max() < FARTHEST:
        scale = max(cost(q)[0], 1e-12)  # L-BFGS-B takes a first step of length one
        result = minimize(
            cost,
            q,
            jac=True,
            method='L-BFGS-B',
            bounds=limits.T,
            options={'maxiter': int(options[ITERATIONS]), 'ftol': 0.0, 'gtol': PRECISION},
        )
        q[:], iterations = result.x, result.nit
        kernels.clip(q, limits)
    kernels.forward(joints, tool, q, frames)
    return int(iterations)
