# SPDX-License-Identifier: Apache-2.0
"""No solve allocates per iteration: what numba's runtime counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np

from benchmarks.arms import ROOT, Task, chosen, solver_for
from benchmarks.tables import Table, heading
from ik_node import Goal

GOALS = 200
SOME, MANY = 1, 64  # descents, within one call of the search kernel


def run(tasks: list[Task], scale: float) -> None:
    """Print allocations per solve and per search."""
    goals = max(1, round(GOALS * scale))
    heading(
        'Allocations',
        f"""Arrays that compiled code allocates (numba NRT statistics): in one solve, least and most
        over {goals} reachable goals, whatever the restarts and iterations that they took; in a random-restart
        search of {SOME} and of {MANY} descents of up to 30 iterations, for a goal that cannot be met.""",
    )
    names = ','.join(task.name for task in tasks)
    done = subprocess.run(
        [sys.executable, '-m', 'benchmarks.allocations', names, str(goals)],
        cwd=ROOT,
        env={**os.environ, 'NUMBA_NRT_STATS': '1'},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f'failed: {done.stderr.strip().splitlines()[-1]}')
        return
    table = Table('arm'.ljust(26), 'solve, least', 'solve, most', f'{SOME} descent', f'{MANY} descents')
    for line in done.stdout.splitlines():
        table.row(*json.loads(line))


def allocated() -> int:
    """Return how many arrays compiled code has allocated so far in this process."""
    from numba.core.runtime import rtsys

    return int(rtsys.get_allocation_stats().alloc)


def count(task: Task, goals: int) -> tuple[str, int, int, int, int]:
    """Return the row of one arm."""
    solver = solver_for(task.arm)
    positions, directions, _ = task.goals(goals)
    solves = []
    for goal in map(Goal, positions, directions):
        before = allocated()
        solver.solve(goal)
        solves.append(allocated() - before)
    far = Goal(positions[0] + [10.0 * task.arm.reach, 0.0, 0.0], directions[0])
    searches = [search(task, descents, far) for descents in (SOME, MANY)]
    return task.name, min(solves), max(solves), *searches


def search(task: Task, descents: int, goal: Goal) -> int:
    """Return the allocations of a search with so many descents, none of which succeeds."""
    annealing = solver_for(task.arm, restarts=descents - 1)._parts.search
    q = np.array(task.arm.middle)
    before = allocated()
    annealing.search(goal, q, 0.0)
    return allocated() - before


if __name__ == '__main__':
    for each in chosen(sys.argv[1]):
        print(json.dumps(count(each, int(sys.argv[2]))))
