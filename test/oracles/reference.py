# SPDX-License-Identifier: Apache-2.0
"""A numeric reference that shares nothing with ik_node: many bounded descents over link frames."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit

from oracles.arms import TOLERANCE, Task
from oracles.chain import Array, within

PATIENT = (
    60,
    1e-9,
    8,
)  # most iterations; a descent ends after so many steps in a row that gain less than this
ROOT = 1e-9  # m and rad: where errors stay larger they only dip below the tolerance, beside no solution
FINISHED, ROUNDS = 20, 5  # descents of the position alone that are carried on, and how often
HASTY = (30, 1e-3, 4)  # for brute force, where the next start is better than a slow descent
# Of the direction against the position, relative to the reach: a falling penalty finds the least
# position error first and then the least direction error that it leaves.
WEIGHTS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
POSITION_SLACK = 1e-9  # [m] by which it may exceed the least found: 3e-9 m buy a stretched arm 1e-3 rad

compiled = njit(cache=True, error_model='numpy', nogil=True)


class Reference:
    """Brute force for one arm."""

    def __init__(self, task: Task) -> None:
        chain, arm = task.chain, task.arm
        self.chain, self.position_only = chain, task.position_only
        self.model = (
            np.ascontiguousarray(chain.mounts[:, :3, :]),
            chain.axes,
            chain.slides.astype(np.float64),
            chain.driver,
            chain.ratio.astype(np.float64),
            chain.shift.astype(np.float64),
            np.vstack([chain.tool_point, chain.tool_axis]),
        )
        self.limits = np.array([arm.lower, arm.upper])
        self.scale = float(np.linalg.norm(chain.mounts[:, :3, 3], axis=1).sum() + np.linalg.norm(chain.tool_point))

    def starts(self, count: int, seed: int) -> Array:
        """Return random configurations (count, n) within the limits, endless joints within a turn."""
        lower, upper = np.nan_to_num(self.limits, neginf=-math.pi, posinf=math.pi)
        return np.random.default_rng(seed).uniform(lower, upper, (count, len(lower)))

    def solutions(self, position: Array, direction: Array, restarts: int, seed: int = 0) -> Array:
        """Return the configurations (k, n) at which descents met the goal, near duplicates included."""
        q = self.starts(restarts, seed)
        target = np.concatenate([position, direction])
        weights = np.array([0.0 if self.position_only else 0.3 * self.scale])
        counted = slice(1 if self.position_only else 2)
        errors = descend_all(*self.model, self.limits, target, weights, HASTY, q)
        q = q[within(errors[:, counted], TOLERANCE).all(axis=1)]
        _, first = np.unique(q.round(3), axis=0, return_index=True)
        q = q[first]
        errors = descend_all(*self.model, self.limits, target, weights, PATIENT, q)
        return q[within(errors[:, counted], ROOT).all(axis=1)]

    def follow(self, start: Array, positions: Array, directions: Array) -> tuple[Array, float]:
        """Descend from goal to goal (N, 3), (N, 3); return where it ends (n,) and the largest joint step."""
        q, largest = start[None].copy(), 0.0
        weights = np.array([0.3 * self.scale])
        for target in np.hstack([positions, directions]):
            before = q.copy()
            descend_all(*self.model, self.limits, target, weights, PATIENT, q)
            largest = max(largest, float(np.abs(q - before).max()))
        return q[0], largest

    def along(self, start: Array, positions: Array, directions: Array, weight: float) -> Array:
        """Return the joints (N, n) of descents from goal to goal, each begun where the last two point."""
        rows, before = np.empty((len(positions), len(start))), start
        now, weights = start, np.array([weight])
        for k, target in enumerate(np.hstack([positions, directions])):
            q = np.clip(2.0 * now - before, *self.limits)[None]
            descend_all(*self.model, self.limits, target, weights, PATIENT, q)
            before, now = now, q[0]
            rows[k] = now
        return rows

    def best_effort(
        self, position: Array, direction: Array, restarts: int, seed: int = 0
    ) -> tuple[float, float, Array]:
        """Return the least position error [m], the least direction error [rad] that it leaves, and q (n,)."""
        q = self.starts(restarts, seed)
        target = np.concatenate([position, direction])
        weights = 0.3 * self.scale * np.array(WEIGHTS)
        errors = descend_all(*self.model, self.limits, target, weights, PATIENT, q)
        least = errors[:, 0].min()
        chords = np.where(errors[:, 0] <= least + POSITION_SLACK, errors[:, 1], np.inf)
        best = chords.argmin()
        return float(least), 2.0 * math.asin(min(1.0, chords[best] / 2.0)), q[best]

    def least_position_error(self, position: Array, restarts: int, seed: int = 0) -> float:
        """Return the least position error [m] of so many descents of the position alone."""
        q = self.starts(restarts, seed)
        target, alone = np.concatenate([position, [0.0, 0.0, 1.0]]), np.zeros(1)
        errors = descend_all(*self.model, self.limits, target, alone, HASTY, q)
        q = q[np.argsort(errors[:, 0], kind='stable')[:FINISHED]]
        for _ in range(ROUNDS):  # next to a goal out of reach the steps of this method shrink slowly
            errors = descend_all(*self.model, self.limits, target, alone, PATIENT, q)
        return float(errors[:, 0].min())


def in_threads(function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
    """Map over all cores; the descents release the GIL."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, *arguments))


@compiled
def forward(mounts, axes, slides, driver, ratio, shift, tool, q, world, tip):
    """Write joint axes and points (m, 6) and the tip's point and axis (6,) at q (n,), frame by frame."""
    turn = np.eye(3)
    place = np.zeros(3)
    next_turn = np.empty((3, 3))
    m = axes.shape[0]
    for i in range(m + 1):
        for r in range(3):
            place[r] += turn[r, 0] * mounts[i, 0, 3] + turn[r, 1] * mounts[i, 1, 3] + turn[r, 2] * mounts[i, 2, 3]
        multiply(turn, mounts[i], next_turn)
        turn[:] = next_turn
        if i == m:
            break
        x, y, z = axes[i, 0], axes[i, 1], axes[i, 2]
        for r in range(3):
            world[i, r] = turn[r, 0] * x + turn[r, 1] * y + turn[r, 2] * z
            world[i, 3 + r] = place[r]
        value = ratio[i] * q[driver[i]] + shift[i]
        if slides[i] != 0.0:
            for r in range(3):
                place[r] += world[i, r] * value
            continue
        # Each row of the rotation turned about the joint's axis by minus the angle: row R = R^T row.
        c, s = math.cos(value), math.sin(value)
        for r in range(3):
            a, b, d = turn[r, 0], turn[r, 1], turn[r, 2]
            along = (a * x + b * y + d * z) * (1.0 - c)
            turn[r, 0] = a * c - s * (y * d - z * b) + along * x
            turn[r, 1] = b * c - s * (z * a - x * d) + along * y
            turn[r, 2] = d * c - s * (x * b - y * a) + along * z
    for r in range(3):
        tip[r] = place[r] + turn[r, 0] * tool[0, 0] + turn[r, 1] * tool[0, 1] + turn[r, 2] * tool[0, 2]
        tip[3 + r] = turn[r, 0] * tool[1, 0] + turn[r, 1] * tool[1, 1] + turn[r, 2] * tool[1, 2]


@compiled
def multiply(a, b, out):
    """Write the product of a (3, 3) and the first three columns of b into out (3, 3)."""
    for r in range(3):
        for k in range(3):
            out[r, k] = a[r, 0] * b[0, k] + a[r, 1] * b[1, k] + a[r, 2] * b[2, k]


@compiled
def residual(tip, target, weight, error):
    """Write the weighted error (6,) and return its square."""
    total = 0.0
    for r in range(6):
        error[r] = (target[r] - tip[r]) * (1.0 if r < 3 else weight)
        total += error[r] * error[r]
    return total


@compiled
def descend_all(mounts, axes, slides, driver, ratio, shift, tool, limits, target, weights, patience, q):
    """Descend from every row of q (N, n), in place, with one weight after another.

    Levenberg-Marquardt with clipped steps, joints that push against a limit held. Returns position
    error and direction chord (N, 2).
    """
    iterations, stall, most_idle = patience
    count, n = q.shape
    m = axes.shape[0]
    world, tip, error = np.empty((m, 6)), np.empty(6), np.empty(6)
    jac, system, trial = np.empty((6, n)), np.empty((n, n + 1)), np.empty(n)
    gradient, held = np.empty(n), np.empty(n, dtype=np.bool_)
    errors = np.empty((count, 2))
    for row in range(count):
        for weight in weights:
            damping = 1e-3
            idle = 0
            forward(mounts, axes, slides, driver, ratio, shift, tool, q[row], world, tip)
            cost = residual(tip, target, weight, error)
            for _ in range(iterations):
                if cost < 1e-26:
                    break
                jac[:] = 0.0
                for i in range(m):
                    k = driver[i]
                    a, b, c = world[i, 0] * ratio[i], world[i, 1] * ratio[i], world[i, 2] * ratio[i]
                    if slides[i] != 0.0:
                        jac[0, k] += a
                        jac[1, k] += b
                        jac[2, k] += c
                        continue
                    x, y, z = tip[0] - world[i, 3], tip[1] - world[i, 4], tip[2] - world[i, 5]
                    jac[0, k] += b * z - c * y
                    jac[1, k] += c * x - a * z
                    jac[2, k] += a * y - b * x
                    jac[3, k] += weight * (b * tip[5] - c * tip[4])
                    jac[4, k] += weight * (c * tip[3] - a * tip[5])
                    jac[5, k] += weight * (a * tip[4] - b * tip[3])
                for i in range(n):
                    gradient[i] = 0.0
                    for r in range(6):
                        gradient[i] += jac[r, i] * error[r]
                    held[i] = (q[row, i] <= limits[0, i] and gradient[i] < 0.0) or (
                        q[row, i] >= limits[1, i] and gradient[i] > 0.0
                    )
                solve_damped(jac, gradient, held, damping, system)
                for i in range(n):
                    trial[i] = min(max(q[row, i] + system[i, n], limits[0, i]), limits[1, i])
                forward(mounts, axes, slides, driver, ratio, shift, tool, trial, world, tip)
                new = residual(tip, target, weight, error)
                if new < cost:
                    idle = idle + 1 if new > cost * (1.0 - stall) else 0
                    cost = new
                    q[row] = trial
                    damping = max(damping * 0.2, 1e-12)
                else:
                    idle += 1
                    damping = damping * 6.0
                    forward(mounts, axes, slides, driver, ratio, shift, tool, q[row], world, tip)
                    residual(tip, target, weight, error)
                if idle == most_idle:
                    break
        forward(mounts, axes, slides, driver, ratio, shift, tool, q[row], world, tip)
        residual(tip, target, 1.0, error)
        errors[row, 0] = math.sqrt(error[0] ** 2 + error[1] ** 2 + error[2] ** 2)
        errors[row, 1] = math.sqrt(error[3] ** 2 + error[4] ** 2 + error[5] ** 2)
    return errors


@compiled
def solve_damped(jac, gradient, held, damping, system):
    """Solve (J'J + damping (diag J'J + tiny)) x = gradient by elimination; x is left in system[:, n]."""
    n = gradient.shape[0]
    for i in range(n):
        for j in range(n):
            total = 0.0
            if not (held[i] or held[j]):
                for r in range(6):
                    total += jac[r, i] * jac[r, j]
            system[i, j] = total
        system[i, n] = 0.0 if held[i] else gradient[i]
        system[i, i] += damping * system[i, i] + (1.0 if held[i] else 1e-18)
    # Symmetric and positive: no pivoting needed.
    for i in range(n):
        for j in range(i + 1, n):
            factor = system[j, i] / system[i, i]
            for k in range(i, n + 1):
                system[j, k] -= factor * system[i, k]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            system[i, n] -= system[i, k] * system[k, n]
        system[i, n] /= system[i, i]
