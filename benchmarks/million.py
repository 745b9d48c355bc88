# SPDX-License-Identifier: Apache-2.0
"""A million reachable goals in one batch run."""

from __future__ import annotations

import math
import os
from time import perf_counter

import numpy as np

from benchmarks.arms import TOLERANCE, Task, solver_for
from benchmarks.tables import Table, heading

GOALS = 1_000_000


def run(tasks: list[Task], scale: float) -> None:
    """Print how many goals of each arm are not solved, and how fast."""
    share = math.ceil(GOALS * scale / len(tasks))
    heading(
        'A million reachable goals',
        f"""{share} goals for each of {len(tasks)} arms by FK at uniform random joints within the limits, one
        solve_batch each on {os.cpu_count()} cores, seed mid-range. Failed: not within {TOLERANCE:g} m,
        {TOLERANCE:g} rad and the limits by the FK of this benchmark, or not called solved. Errors are the
        largest over all goals.""",
    )
    table = Table('arm'.ljust(26), 'goals', 'failed', 'position m', 'direction rad', 'us per goal')
    failures = seconds = 0.0
    for task in tasks:
        solver = solver_for(task.arm)
        positions, directions, _ = task.goals(share, seed=1)
        solver.solve_batch(positions[:2], directions[:2])  # what compiles, compiles here
        start = perf_counter()
        found = solver.solve_batch(positions, directions)
        time = perf_counter() - start
        position, direction, _ = task.errors(found.q, positions, directions)
        failed = np.count_nonzero(~(task.good(found.q, positions, directions) & found.solved))
        table.row(
            task.name,
            share,
            failed,
            f'{position.max():.1e}',
            f'{direction.max():.1e}',
            f'{1e6 * time / share:.2f}',
        )
        failures, seconds = failures + failed, seconds + time
    total = share * len(tasks)
    print(f'\n{100 * (1 - failures / total):.4f} % of {total} goals solved in {seconds:.1f} s')
