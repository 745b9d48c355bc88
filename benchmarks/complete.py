# SPDX-License-Identifier: Apache-2.0
"""What solve_all and brute force find of the same goals."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from time import thread_time

import numpy as np
from oracles.arms import Task
from oracles.chain import SLACK, Array
from oracles.reference import Reference, in_threads

from ik_node import IkSolver

RESTARTS = 20_000
SAME = 1e-3  # configurations closer than this in every joint are one solution


@dataclass(frozen=True)
class Compared:
    """Solutions of brute force and of solve_all, and the times of solve_all [s].

    found, shown: per goal, how many, and whether solve_all shows that they are all. missed: goal and
    configuration of each that brute force alone finds.
    """

    expected: int
    found: list[int]
    shown: list[bool]
    missed: list[tuple[int, Array]]
    more: int
    wrong: int
    times: Array


def isolated(task: Task) -> bool:
    """Whether the solutions of a goal are isolated, but for joints that move nothing."""
    dof = task.arm.position_dof if task.position_only else task.arm.effective_dof
    return task.arm.n - idle_joints(task).sum() == dof


def compared(task: Task, solver: IkSolver, positions: Array, directions: Array, restarts: int = RESTARTS) -> Compared:
    """Return what brute force and solve_all find for goals (N, 3), (N, 3)."""
    kept = ~idle_joints(task)
    brute = functools.partial(Reference(task).solutions, restarts=restarts)
    expected = [with_turns(task, distinct(task, q, kept), kept) for q in in_threads(brute, positions, directions)]
    found, shown, wrong, times = [], [], 0, []
    solver.solve_all(
        task.goal(positions[0], directions[0]), time_budget=np.inf
    )  # the constants of the arm are no part of a goal
    for position, direction in zip(positions, directions, strict=True):
        goal = task.goal(position, direction)
        start = thread_time()
        solutions = solver.solve_all(goal, time_budget=np.inf)
        times.append(thread_time() - start)
        shown.append(getattr(solutions, 'complete', False))
        q = np.array([solution.q for solution in solutions]).reshape(-1, task.arm.n)
        wrong += np.count_nonzero(~task.good(q, position, direction))
        found.append(distinct(task, q, kept))
    pairs = list(zip(expected, found, strict=True))
    missed = [(k, q) for k, (more, less) in enumerate(pairs) for q in lacking(task, more, less)]
    more = sum(len(lacking(task, more, less)) for less, more in pairs)
    counts = list(map(len, found))
    return Compared(sum(map(len, expected)), counts, shown, missed, more, wrong, np.array(times))


def idle_joints(task: Task) -> Array:
    """Whether a joint moves nothing of the goal, at any configuration (n,)."""
    q = task.arm.sample(np.random.default_rng(3), 20)
    idle = []
    for joint in range(task.arm.n):
        moved = q.copy()
        moved[:, joint] += 1.0
        change = np.abs(np.subtract(task.chain.fk(q), task.chain.fk(moved)))
        idle.append(change[: 1 if task.position_only else 2].max() < 1e-7)
    return np.array(idle)


def apart(task: Task, a: Array, b: Array) -> Array:
    """Largest joint difference between rows of a (..., k) and b (..., k), endless joints modulo a turn."""
    difference = a - b
    endless = np.resize(task.arm.continuous, difference.shape)
    turned = np.remainder(difference + math.pi, 2 * math.pi) - math.pi
    return np.abs(np.where(endless, turned, difference)).max(-1, initial=0.0)


def distinct(task: Task, q: Array, kept: Array) -> Array:
    """Return one row for each group of rows of q (N, n) that are the same, idle joints set to zero."""
    rest, rows = q * kept, []
    while len(rest):
        rows.append(rest[0])
        rest = rest[apart(task, rest, rest[0]) > SAME]
    return np.array(rows).reshape(-1, q.shape[1])


def with_turns(task: Task, rows: Array, kept: Array) -> Array:
    """Add to rows (N, n) what whole turns of a hinge make of them within the limits."""
    arm, turned = task.arm, []
    hinge = kept & ~task.arm.prismatic & ~task.arm.continuous
    for row in rows:
        choices = []
        for value, low, high, turns in zip(row, arm.lower - SLACK, arm.upper + SLACK, hinge, strict=True):
            first, last = (low - value) / (2 * math.pi), (high - value) / (2 * math.pi)
            whole = np.arange(math.ceil(first), math.floor(last) + 1) if turns else np.zeros(1)
            choices.append(value + 2 * math.pi * whole)
        turned += itertools.product(*choices)
    return distinct(task, np.array(turned).reshape(-1, arm.n), kept)


def lacking(task: Task, more: Array, less: Array) -> Array:
    """Return the rows of more (N, n) that have no partner in less (M, n)."""
    if not len(more) or not len(less):
        return more
    return more[apart(task, more[:, None], less[None]).min(axis=1) > SAME]
