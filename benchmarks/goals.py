# SPDX-License-Identifier: Apache-2.0
"""The kinds of goals that make compare asks every method to meet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from oracles.arms import Task
from oracles.chain import Array

BEYOND = 1.05  # times the largest reach there can be


@dataclass
class Goals:
    """Goals (N, 3) m, (N, 3) unit, and the seeds (N, n) to start from."""

    positions: Array
    directions: Array
    seeds: Array


def reachable(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """Goals that random joints within the limits reach, seed mid-range."""
    q = task.arm.sample(rng, count)
    return Goals(*task.chain.fk(q), np.tile(task.arm.middle, (count, 1)))


def at_limits(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """As reachable, with each joint at one of its limits every other time."""
    arm = task.arm
    q = arm.sample(rng, count)
    ends = np.where(rng.random(q.shape) < 0.5, arm.lower, arm.upper)
    q = np.where((rng.random(q.shape) < 0.5) & ~arm.continuous, ends, q)
    return Goals(*task.chain.fk(q), np.tile(arm.middle, (count, 1)))


def singular(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """Goals at poses where the task Jacobian loses rank as far as single joints can make it."""
    q = np.array([most_singular(task, start) for start in task.arm.sample(rng, count)])
    return Goals(*task.chain.fk(q), np.tile(task.arm.middle, (count, 1)))


def from_singular(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """Reachable goals, started from such a pose."""
    goals = reachable(task, rng, count)
    goals.seeds = np.array([most_singular(task, start) for start in task.arm.sample(rng, count)])
    return goals


def most_singular(task: Task, q: Array) -> Array:
    """Turn one joint after another to where the last singular value of the scaled Jacobian is least."""
    arm = task.arm
    scale = np.where(np.arange(6) < 3, 1 / arm.reach, 1.0)[:, None]
    lower, upper = np.where(arm.continuous, -np.pi, arm.lower), np.where(arm.continuous, np.pi, arm.upper)

    def sharpness(q: Array) -> float:
        values = np.linalg.svd(arm.jacobian(q) * scale, compute_uv=False)
        return float(values[min(arm.effective_dof, arm.n) - 1] / values[0])

    width = upper - lower
    for share in (1.0, 0.05, 0.0025):
        # From the middle outwards: elbows make more singular poses than bases.
        for j in sorted(range(arm.n), key=lambda j: abs(j - arm.n // 2)):
            tries = np.tile(q, (21, 1))
            tries[:, j] = np.clip(q[j] + np.linspace(-0.5, 0.5, 21) * share * width[j], lower[j], upper[j])
            q = min(tries, key=sharpness)
    return q


def out_of_reach(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """Goals a little further than the sum of all lengths, in any direction."""
    away, directions = (v / np.linalg.norm(v, axis=1)[:, None] for v in rng.normal(size=(2, count, 3)))
    positions = task.arm.joints[0, 3:6] + BEYOND * task.arm.reach * away
    return Goals(positions, directions, np.tile(task.arm.middle, (count, 1)))


def tied(task: Task, rng: np.random.Generator, count: int) -> Goals:
    """Reachable positions with random directions: out of reach where the position ties the direction."""
    goals = reachable(task, rng, count)
    goals.directions = rng.normal(size=(count, 3))
    goals.directions /= np.linalg.norm(goals.directions, axis=1)[:, None]
    return goals


KINDS = {
    'reachable': reachable,
    'coarse': reachable,
    'limits': at_limits,
    'singular': singular,
    'from singular': from_singular,
    'out of reach': out_of_reach,
    'tied': tied,
}
