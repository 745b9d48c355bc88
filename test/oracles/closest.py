# SPDX-License-Identifier: Apache-2.0
"""Goals that cannot be met, what ik_node answers, and the best that descents of a reference do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ik_node import Goal, IkSolver
from oracles.arms import Task
from oracles.chain import Array, angle_between
from oracles.random_arms import unit
from oracles.reference import WEIGHTS, Reference

SETTLING = 5  # descents


def goals(task: Task, most: int = 400) -> Iterator[tuple[Array, Array]]:
    """Yield positions and directions, by turns at a reachable position, anywhere nearer, and far off."""
    rng = np.random.default_rng(11)
    reach = max(Reference(task).scale, 1e-3)
    for k in range(most):
        if k % 3 == 0:
            position = task.chain.fk(task.arm.sample(rng, 1))[0][0]
        elif k % 3 == 1:
            position = task.chain.first + 1.1 * reach * rng.uniform() ** (1 / 3) * unit(rng)
        else:
            position = task.chain.first + reach * rng.uniform(0.8, 2.0) * unit(rng)
        yield position, unit(rng)


def answers(
    task: Task, solver: IkSolver, position: Array, direction: Array, seeds: Array
) -> tuple[Array, Array, Array]:
    """Return position errors of all answers [m], direction errors of those with a direction [rad], by FK.

    And the position errors as told.
    """
    q, told = [], []
    for goal in (Goal(position, direction), Goal(position)):
        for seed in seeds:
            solution = solver.solve(goal, seed)
            q.append(solution.q)
            told.append(solution.position_error)
    points, axes = task.chain.fk(np.array(q))
    angles = angle_between(axes[: len(seeds)], direction)
    return np.linalg.norm(points - position, axis=1), angles, np.array(told)


def best_efforts(reference: Reference, position: Array, direction: Array, q: Array) -> Iterator[tuple[float, float]]:
    """Yield the errors [m, rad] of the best effort q (n,), chosen with slack, and after descents."""
    goals = np.tile(position, (SETTLING, 1)), np.tile(direction, (SETTLING, 1))
    settled = reference.along(q, *goals, 0.3 * reference.scale * WEIGHTS[-1])[-1]
    for each in (q, settled):
        point, axis = reference.chain.fk(each)
        yield float(np.linalg.norm(point[0] - position)), float(angle_between(axis[0], direction))
