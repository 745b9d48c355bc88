# SPDX-License-Identifier: Apache-2.0
"""How long solve_all takes at most where solutions nearly coincide, with its default time budget."""

from __future__ import annotations

import math
from time import perf_counter, thread_time

import numpy as np

from benchmarks.arms import Task, solver_for
from benchmarks.chain import Array
from benchmarks.goals import most_singular
from benchmarks.special_arms import with_random
from benchmarks.tables import Table, heading
from ik_node.solver.solver import LISTING_BUDGET

GOALS = 100_000
EACH = 10  # goals around a singular configuration
OFFSETS = (-9, -2)  # powers of 10 [rad or m]: how far from it


def run(tasks: list[Task], scale: float) -> None:
    """Print the longest calls, by kind of arm."""
    groups = with_random(tasks, scale)
    arms = sum(len(group) for group in groups.values())
    around = max(1, math.ceil(GOALS * scale / arms / EACH))
    heading(
        'The time of solve_all near degeneracy',
        f"""{around} configurations per arm whose Jacobian loses rank as far as single joints can make it, and
        {EACH} goals around each, 1e{OFFSETS[0]} to 1e{OFFSETS[1]} rad or m away. solve_all with its default
        time budget of {LISTING_BUDGET:g} s, seed mid-range, after one call that derives the constants of the
        arm. Complete: lists that are shown to be. Empty: those of them without any solution. Most: solutions
        in a list. Times in milliseconds: of the processor, and of the clock, which counts other programs
        too and which the budget is measured by.""",
    )
    table = Table(
        'arms'.ljust(28), 'calls', 'complete', 'empty', 'most', 'median', 'p99', 'longest', 'by the clock'
    )
    parts = []
    for name, group in groups.items():
        rows = np.vstack([judge(task, around) for task in group])
        table.row(name, *cells(rows))
        parts.append(rows)
    table.row('all', *cells(np.vstack(parts)))


def judge(task: Task, around: int) -> Array:
    """Return per goal: complete, empty, number of solutions, time of the processor and by the clock [s]."""
    arm, rng, rows = task.arm, np.random.default_rng(41), []
    solver = solver_for(arm)
    lower, upper = np.where(arm.continuous, -np.inf, arm.lower), np.where(arm.continuous, np.inf, arm.upper)
    positions, directions, _ = task.goals(1)
    solver.solve_all(task.goal(positions[0], directions[0]))
    for start in arm.sample(rng, around):
        singular = most_singular(task, start)
        for _ in range(EACH):
            offset = 10.0 ** rng.uniform(*OFFSETS) * rng.normal(size=arm.n)
            q = np.clip(singular + offset, lower, upper)
            position, direction = (poses[0] for poses in task.chain.fk(q[None]))
            goal = task.goal(position, direction)
            clock, spent = perf_counter(), thread_time()
            found = solver.solve_all(goal)
            spent, clock = thread_time() - spent, perf_counter() - clock
            rows.append((found.complete, found.complete and not found, len(found), spent, clock))
            if spent > 1.2 * LISTING_BUDGET or rows[-1][1]:
                given = f'{position.tolist()} {direction.tolist()}: {q.tolist()}'
                print(f'  {1e3 * spent:.0f} ms, {1e3 * clock:.0f} by the clock: {task.name} {given}')
    return np.array(rows, dtype=float)


def cells(rows: Array) -> list[object]:
    """Return calls, complete and empty lists, most solutions, and times [ms]."""
    spent, clock = 1e3 * rows[:, 3:].T
    figures = [np.median(spent), np.quantile(spent, 0.99), spent.max(), clock.max()]
    return [
        len(rows),
        *(int(count) for count in rows[:, :2].sum(axis=0)),
        int(rows[:, 2].max()),
        *(f'{value:.1f}' for value in figures),
    ]
