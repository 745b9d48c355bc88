# SPDX-License-Identifier: Apache-2.0
"""Same build, same inputs, same bits."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import numpy as np

from benchmarks.arms import ROOT, Task, chosen, solver_for
from benchmarks.chain import Array
from benchmarks.tables import Table, heading
from benchmarks.tracking import smooth_motion
from ik_node import Goal, IkSolver

GOALS = 100
UNLIKE = 'unlike within one process'
CALLS = ('solve', 'solve_all', 'solve_batch', 'solve_path')


def run(tasks: list[Task], scale: float) -> None:
    """Print whether two processes return the same bits."""
    count = max(1, round(GOALS * scale))
    heading(
        'Determinism',
        f"""SHA-256 of all answers (joints, errors, status) to {count} goals per arm, reachable or not, from
        two processes, and of solve_batch with one thread and with three: "same" if all bits agree.""",
    )
    first, second = (child(tasks, count) for _ in range(2))
    table = Table('arm'.ljust(26), *(call.ljust(14) for call in CALLS))
    for task in tasks:
        table.row(task.name, *(verdict(first, second, task.name, call) for call in CALLS))


def child(tasks: list[Task], count: int) -> dict[str, dict[str, str]]:
    """Return the digests per arm and call from a process of its own."""
    names = ','.join(task.name for task in tasks)
    command = [sys.executable, '-m', 'benchmarks.determinism', names, str(count)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def verdict(first: dict[str, dict[str, str]], second: dict[str, dict[str, str]], arm: str, call: str) -> str:
    """Say whether two digests are the same."""
    same = first[arm][call] == second[arm][call] != UNLIKE
    return 'same' if same else 'DIFFERENT'


def digests(task: Task, count: int) -> dict[str, str]:
    """Return a digest of the answers of every call that there is."""
    solver = solver_for(task.arm, restarts=100)
    positions, directions, _ = task.goals(count, seed=9)
    directions[::5] = directions[::-1][::5]
    goals = list(map(Goal, positions, directions))
    answers = {
        'solve': [solver.solve(goal) for goal in goals],
        'solve_all': [
            solution for goal in goals[:30] for solution in solver.solve_all(goal, time_budget=np.inf)
        ],
    }
    results = {
        call: digest(
            [[s.q.tobytes(), s.position_error, s.direction_error, s.status.value] for s in solutions]
        )
        for call, solutions in answers.items()
    }
    one, three = (batch_digest(solver, positions, directions, workers) for workers in (1, 3))
    results['solve_batch'] = one if one == three else UNLIKE
    path = solver.solve_path(*task.chain.fk(smooth_motion(task, count)))
    results['solve_path'] = digest([[np.ascontiguousarray(path.q).tobytes()]])
    return results


def batch_digest(solver: IkSolver, positions: Array, directions: Array, workers: int) -> str:
    """Return the digest of a batch."""
    found = solver.solve_batch(positions, directions, workers=workers)
    return digest([[found.q.tobytes(), found.position_error.tobytes(), found.solved.tobytes()]])


def digest(rows: list[list[object]]) -> str:
    """Return the SHA-256 of the rows' exact text."""
    return hashlib.sha256(repr(rows).encode()).hexdigest()


if __name__ == '__main__':
    print(json.dumps({task.name: digests(task, int(sys.argv[2])) for task in chosen(sys.argv[1])}))
