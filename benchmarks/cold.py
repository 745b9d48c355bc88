# SPDX-License-Identifier: Apache-2.0
"""Cold solves of every arm with five joints, beside the peers with and without a closed form."""

from __future__ import annotations

import numpy as np
from oracles.arms import Task, solver_for

from benchmarks.contest import Contest, title_of
from benchmarks.tables import Table, heading, microseconds, percent, times_as_fast

GOALS, ROUNDS = 1000, 11
SOLVERS = ['own', 'own_batch', 'eaik_closed', 'rtb']


def run(tasks: list[Task], scale: float) -> None:
    """Print success and times per arm and solver, and the median in units of that of solve."""
    count = max(1, round(GOALS * scale))
    heading(
        'Cold',
        f"""{count} reachable goals per arm, seed mid-range, one thread, microseconds of the bare Python call
        (batches: processor time per goal), median of {ROUNDS} rounds in turns. The peers solve for a whole
        pose and are given a virtual roll joint on the tool axis. EAIK returns all solutions without regard to
        limits; it has solved a goal if one of them fits within them. The restarts of rtb's ik_LM are on.
        Ratio: of the median to that of ik_node's solve.""",
    )
    columns = ('solved', 'median', 'mean', 'p99', 'ratio')
    table = Table('arm'.ljust(26), 'way'.ljust(13), 'solver'.ljust(28), *columns)
    with Contest(SOLVERS) as contest:
        for task in tasks:
            if task.arm.n != 5:
                continue
            way = 'search' if solver_for(task.arm).closed_form is None else 'closed form'
            positions, directions, _ = task.goals(count)
            records, left_out = contest.run(task, positions, directions, rounds=ROUNDS, turn=count)
            for peer in SOLVERS:
                if peer in left_out:
                    table.row(task.name, way, title_of(peer), left_out[peer])
                    continue
                times = records[peer].times
                solved = percent(records[peer].solved(task, positions, directions))
                ratio = times_as_fast(np.median(times), np.median(records['own'].times))
                table.row(task.name, way, title_of(peer), solved, *microseconds(times), ratio)
