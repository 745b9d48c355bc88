# SPDX-License-Identifier: Apache-2.0
"""The least sum of squared misses of several tools that a numeric reference finds, by thousands of descents.

It shares nothing with ik_node: link frames of chain.py, Newton's method with the exact second derivatives of
the positions, a damping that rises where the system is not positive or a step gains nothing, joints that push
against a limit held.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.chain import Array, Chain
from benchmarks.reference import compiled, forward

ITERATIONS = 200
GAIN, IDLE = 1e-13, 3  # a descent ends after so many steps in a row that gain less than this share


class TreeReference:
    """Brute force for the tools of one robot; revolute joints only."""

    def __init__(self, chains: list[Chain], columns: list[Array], limits: Array) -> None:
        """columns: by tool, where its joints are among the n of the robot. limits (2, n)."""
        if any(chain.slides.any() for chain in chains):
            raise ValueError('prismatic joints are not supported')
        self.limits = np.ascontiguousarray(limits)
        self.mounts = np.array([chain.mounts[:, :3, :] for chain in chains])
        self.axes = np.array([chain.axes for chain in chains])
        self.tools = np.array([np.vstack([chain.tool_point, chain.tool_axis]) for chain in chains])
        self.columns = np.array(columns)

    def least(self, targets: Array, starts: Array) -> float:
        """Return the least sum of squared misses [m^2] of targets (K, 3) by descents from starts (N, n)."""
        q = starts.copy()
        costs = descend_positions(
            self.mounts, self.axes, self.tools, self.columns, self.limits, np.ascontiguousarray(targets), q
        )
        return float(costs.min())


@compiled
def squared_misses(mounts, axes, tools, columns, targets, q, world, tips):
    """Write joint axes and points (K, m, 6) and tips (K, 6) at q (n,); return the sum of squared misses."""
    total = 0.0
    m = axes.shape[1]
    slides, shift, ratio = np.zeros(m), np.zeros(m), np.ones(m)
    for k in range(targets.shape[0]):
        forward(mounts[k], axes[k], slides, columns[k], ratio, shift, tools[k], q, world[k], tips[k])
        for r in range(3):
            total += (tips[k, r] - targets[k, r]) ** 2
    return total


@compiled
def newton_equations(columns, targets, world, tips, gradient, hessian):
    """Write half the gradient (n,) and half the Hessian (n, n) of the sum of squared misses.

    A joint with axis a moves the tip by a x (tip - point); of two joints, the one nearer to the base turns
    that of the other: the second derivative is a_i x (a_j x (tip - point_j)) for i before j.
    """
    gradient[:] = 0.0
    hessian[:] = 0.0
    m = columns.shape[1]
    move = np.empty((m, 3))
    for k in range(targets.shape[0]):
        ex, ey, ez = tips[k, 0] - targets[k, 0], tips[k, 1] - targets[k, 1], tips[k, 2] - targets[k, 2]
        for j in range(m):
            a, b, c = world[k, j, 0], world[k, j, 1], world[k, j, 2]
            x, y, z = tips[k, 0] - world[k, j, 3], tips[k, 1] - world[k, j, 4], tips[k, 2] - world[k, j, 5]
            move[j, 0], move[j, 1], move[j, 2] = b * z - c * y, c * x - a * z, a * y - b * x
            gradient[columns[k, j]] += move[j, 0] * ex + move[j, 1] * ey + move[j, 2] * ez
        for j in range(m):
            x, y, z = move[j, 0], move[j, 1], move[j, 2]
            for i in range(j + 1):
                a, b, c = world[k, i, 0], world[k, i, 1], world[k, i, 2]
                curved = (b * z - c * y) * ex + (c * x - a * z) * ey + (a * y - b * x) * ez
                term = move[i, 0] * x + move[i, 1] * y + move[i, 2] * z + curved
                hessian[columns[k, j], columns[k, i]] += term
                if i != j:
                    hessian[columns[k, i], columns[k, j]] += term


@compiled
def damped_newton_step(hessian, gradient, held, damping, factor, step):
    """Solve (H + damping I) step = -gradient without the held joints; whether the matrix is positive."""
    n = gradient.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0 if held[i] or held[j] else hessian[i, j]
            if i == j:
                total += 1.0 if held[i] else damping
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                factor[i, i] = math.sqrt(total)
            else:
                factor[i, j] = total / factor[j, j]
    for i in range(n):
        total = 0.0 if held[i] else -gradient[i]
        for k in range(i):
            total -= factor[i, k] * step[k]
        step[i] = total / factor[i, i]
    for i in range(n - 1, -1, -1):
        total = step[i]
        for k in range(i + 1, n):
            total -= factor[k, i] * step[k]
        step[i] = total / factor[i, i]
    return True


@compiled
def descend_positions(mounts, axes, tools, columns, limits, targets, q):
    """Descend from every row of q (N, n), in place; return the sums of squared misses (N,)."""
    count, n = q.shape
    tool_count, m = columns.shape
    world, tips = np.empty((tool_count, m, 6)), np.empty((tool_count, 6))
    gradient, step, trial = np.empty(n), np.empty(n), np.empty(n)
    hessian, factor, held = np.empty((n, n)), np.empty((n, n)), np.empty(n, dtype=np.bool_)
    costs = np.empty(count)
    for row in range(count):
        damping, idle = 1e-2, 0
        cost = squared_misses(mounts, axes, tools, columns, targets, q[row], world, tips)
        for _ in range(ITERATIONS):
            newton_equations(columns, targets, world, tips, gradient, hessian)
            for i in range(n):
                held[i] = (q[row, i] <= limits[0, i] and gradient[i] > 0.0) or (
                    q[row, i] >= limits[1, i] and gradient[i] < 0.0
                )
            new = math.inf
            while damping < 1e9:
                if damped_newton_step(hessian, gradient, held, damping, factor, step):
                    for i in range(n):
                        trial[i] = min(max(q[row, i] + step[i], limits[0, i]), limits[1, i])
                    new = squared_misses(mounts, axes, tools, columns, targets, trial, world, tips)
                    if new < cost:
                        break
                damping = max(4.0 * damping, 1e-9)
            if not new < cost:
                break
            idle = idle + 1 if new > cost * (1.0 - GAIN) else 0
            cost = new
            q[row] = trial
            damping *= 0.1
            if idle == IDLE:
                break
        costs[row] = cost
    return costs
