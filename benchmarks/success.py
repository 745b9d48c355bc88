# SPDX-License-Identifier: Apache-2.0
"""Every reachable goal is solved, and how much faster than by scipy."""

from __future__ import annotations

import numpy as np
from oracles.arms import TOLERANCE, Task

from benchmarks.contest import Contest
from benchmarks.tables import Table, heading, microseconds, percent, times_as_fast

GOALS = 1000
SCIPY_GOALS = 20


def run(tasks: list[Task], scale: float) -> None:
    """Print success and times per arm, and the ratio to scipy."""
    count, scipy_count = max(1, round(GOALS * scale)), max(1, round(SCIPY_GOALS * scale))
    heading(
        'Reachable goals',
        f"""{count} goals per arm by FK at uniform random joints within the limits, seed mid-range. Solved:
        within {TOLERANCE:g} m, {TOLERANCE:g} rad and the limits, by this benchmark's own FK at the joints
        returned. Times in microseconds of the whole Python call on one thread, in turns with scipy: bounded
        least_squares on the first {scipy_count} goals, given ik_node's compiled FK and Jacobian and as many
        random restarts. The ratio is that of the medians over these goals.""",
    )
    table = Table('arm'.ljust(26), 'solved', 'median', 'mean', 'p99', 'scipy solved', 'scipy median', 'ratio')
    with Contest(['own', 'scipy_ls']) as contest:
        for task in tasks:
            if task.arm.n != 5 and not task.shipped:
                continue
            positions, directions, _ = task.goals(count)
            records, left_out = contest.run(task, positions, directions, {'scipy_ls': scipy_count})
            if left_out:
                table.row(task.name, *left_out.values())
                continue
            own, scipy = records['own'], records['scipy_ls']
            ours, theirs = np.median(own.times[:scipy_count]), np.median(scipy.times)
            table.row(
                task.name,
                percent(own.solved(task, positions, directions)),
                *microseconds(own.times),
                percent(scipy.solved(task, positions, directions)),
                f'{1e6 * theirs:.0f}',
                times_as_fast(theirs, ours),
            )
