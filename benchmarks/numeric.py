# SPDX-License-Identifier: Apache-2.0
"""Every arm: ik_node beside the numeric solvers of the field."""

from __future__ import annotations

import numpy as np
from oracles.arms import Task, solver_for

from benchmarks.contest import Contest, Record, title_of
from benchmarks.tables import Table, heading, microseconds, percent, times_as_fast

GOALS = 1000
FEWER = {'optik_py': 300, 'tracik': 200}
SOLVERS = ['own', 'rtb', 'optik_py', 'tracik']


def run(tasks: list[Task], scale: float) -> None:
    """Print success and times per arm and solver, then the ratios to rtb's ik_LM, the fastest of them."""
    count = max(1, round(GOALS * scale))
    counts = {peer: max(1, round(fewer * scale)) for peer, fewer in FEWER.items()}
    heading(
        'Numeric peers, cold',
        f"""{count} reachable goals per arm (optik-py {counts['optik_py']}, TRAC-IK {counts['tracik']}), seed
        mid-range, microseconds of the bare Python call, in turns, median of 3 rounds. The peers solve for a
        whole pose and are given a virtual roll joint on the tool axis; their own restarts are on. Solved:
        the same FK check for all. TRAC-IK runs on two threads, the others on one.""",
    )
    table = Table(
        'arm'.ljust(26), 'way'.ljust(13), 'solver'.ljust(10), 'goals', 'solved', 'median', 'mean', 'p99'
    )
    ratios = []
    with Contest(SOLVERS) as contest:
        for task in tasks:
            if task.arm.n != 5:
                continue
            way = 'general' if solver_for(task.arm).closed_form is None else 'closed form'
            positions, directions, _ = task.goals(count)
            records, left_out = contest.run(task, positions, directions, counts)
            for peer in SOLVERS:
                if peer in left_out:
                    table.row(task.name, way, title_of(peer), 0, left_out[peer])
                    continue
                record = records[peer]
                done = len(record.answers)
                solved = percent(record.solved(task, positions[:done], directions[:done]))
                table.row(task.name, way, title_of(peer), done, solved, *microseconds(record.times))
            if {'own', 'rtb'} <= records.keys():
                ratios.append((task.name, way, *compared(records['rtb'], records['own'])))
    heading('Numeric peers, cold: times of rtb ik_LM over those of ik_node')
    table = Table('arm'.ljust(26), 'way'.ljust(13), 'median', 'mean', 'p99')
    for row in ratios:
        table.row(*row)


def compared(theirs: Record, ours: Record) -> list[str]:
    """Return the ratios of median, mean and p99."""
    figures = (np.median, np.mean, lambda times: np.percentile(times, 99))
    return [times_as_fast(figure(theirs.times), figure(ours.times)) for figure in figures]
