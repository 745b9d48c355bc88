# SPDX-License-Identifier: Apache-2.0
"""Arms that nearly or exactly have special geometry: goals solved at once, without restarts."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.arms import TOLERANCE, Task, solver_for
from benchmarks.chain import Array
from benchmarks.complete import SAME, apart, idle_joints
from benchmarks.general import groups, times
from benchmarks.special_arms import near
from benchmarks.tables import Table, heading, percent
from ik_node import Solution

GOALS = 100_000
EVERY = 20  # one goal in so many is also asked for all solutions


def run(tasks: list[Task], scale: float) -> None:
    """Print how many goals are solved, and how exact all solutions of some of them are."""
    arms = [*near().items(), *groups(tasks, min(scale, 1.0))]
    count = max(2, math.ceil(GOALS * scale / sum(len(group) for _, group in arms)))
    heading(
        'Degenerate arms, no restarts',
        f"""{count} reachable goals per arm, solve with restarts=0, seed mid-range, tolerances of
        {TOLERANCE:g} m and rad. Every solution: solve_all for one goal in {EVERY}, at least one per arm;
        without: goals where the joints that the goal was made of are not among them. Residual: the larger
        of the errors of any solution [m, rad], by the FK of this benchmark. Times: microseconds of processor
        time.""",
    )
    table = Table(
        'arms'.ljust(28), 'number', 'goals', 'solved', 'median', 'p99', 'all of', 'without', 'residual'
    )
    total, worst = np.zeros(4, dtype=int), 0.0
    for name, group in arms:
        parts = [judge(task, count) for task in group]
        solved, spent = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        asked, without = (sum(part[k] for part in parts) for k in (2, 3))
        residuals = np.concatenate([part[4] for part in parts])
        largest = residuals.max(initial=0.0)
        figures = [f'{1e6 * value:.1f}' for value in np.quantile(spent, (0.5, 0.99))]
        table.row(name, len(group), len(solved), percent(solved), *figures, asked, without, f'{largest:.1e}')
        total += [len(solved), np.count_nonzero(~solved), asked, without]
        worst = max(worst, largest)
    print(
        f'\n{total[1]} of {total[0]} goals not solved; {total[3]} of {total[2]} goals without the known '
        f'solution; worst residual {worst:.1e}'
    )


def judge(task: Task, count: int) -> tuple[Array, Array, int, int, Array]:
    """Return solved (count,), times [s], goals asked for all, those without the known one, residuals."""
    positions, directions, q = task.goals(count, seed=14)
    solver = solver_for(task.arm, restarts=0)
    found: list[Solution] = []
    solver.solve_all(
        task.goal(positions[0], directions[0]), time_budget=np.inf
    )  # derives the constants of the arm
    spent = times(solver.solve, task, positions, directions, found)
    solved = task.good(np.array([solution.q for solution in found]), positions, directions)
    for k in np.flatnonzero(~solved):
        print(f'  not solved: {task.name} {positions[k].tolist()} {directions[k].tolist()}: {q[k].tolist()}')
    kept, without, residuals = ~idle_joints(task), 0, []
    asked = range(0, count, EVERY)
    for k in asked:
        every = solver.solve_all(task.goal(positions[k], directions[k]), time_budget=np.inf)
        rows = np.array([solution.q for solution in every]).reshape(-1, task.arm.n)
        position, direction, _ = task.errors(rows, positions[k], directions[k])
        residuals += np.maximum(position, 0.0 if task.position_only else direction).tolist()
        if not len(rows) or apart(task, rows * kept, q[k] * kept).min() > SAME:
            without += 1
            claim = ', called complete' if getattr(every, 'complete', False) else ''
            goal = f'{positions[k].tolist()} {directions[k].tolist()}'
            print(f'  without{claim}: {task.name} {goal}: {q[k].tolist()}')
    return solved, spent, len(asked), without, np.array(residuals)
