# SPDX-License-Identifier: Apache-2.0
"""Arms with a closed form: one cold solve and a batch, beside EAIK."""

from __future__ import annotations

import numpy as np
from oracles.arms import Task, solver_for

from benchmarks.contest import Contest, title_of
from benchmarks.tables import Table, heading, microseconds, percent, times_as_fast

GOALS = 1000
ROUNDS = 11
OWN = ['own', 'own_goal', 'own_batch']
PEERS = ['eaik_closed', 'eaik_helped', 'eaik_batch']


def run(tasks: list[Task], scale: float) -> None:
    """Print success and times per arm and solver, then the ratios of medians."""
    count = max(1, round(GOALS * scale))
    heading(
        'Closed form, cold',
        f"""{count} reachable goals per arm, seed mid-range, one thread, microseconds of the bare Python
        call (batches: processor time per goal), median of {ROUNDS} rounds in turns. EAIK is given a virtual
        roll joint on the tool axis and returns all solutions without regard to limits; it has solved a goal
        if one of them fits within them. "Arm rewritten": parallel axes turned to the same sense, a roll
        joint on the tool axis left out, axes rounded to 4 decimals where it finds no family otherwise.""",
    )
    table = Table('arm'.ljust(26), 'solver'.ljust(28), 'solved', 'median', 'mean', 'p99')
    ratios = []
    with Contest(OWN + PEERS) as contest:
        for task in tasks:
            if task.arm.n != 5 or solver_for(task.arm).closed_form is None:
                continue
            positions, directions, _ = task.goals(count)
            records, left_out = contest.run(task, positions, directions, rounds=ROUNDS, turn=count)
            for peer in OWN + PEERS:
                if peer in left_out:
                    table.row(task.name, title_of(peer), left_out[peer])
                    continue
                solved = records[peer].solved(task, positions, directions)
                table.row(task.name, title_of(peer), percent(solved), *microseconds(records[peer].times))
            ratios.append((task.name, {peer: np.median(record.times) for peer, record in records.items()}))
    heading('Closed form, cold: medians of EAIK over those of ik_node')
    table = Table('arm'.ljust(26), 'EAIK / solve', 'rewritten / solve', 'EAIK / batch', 'rewritten / batch')
    for name, medians in ratios:
        table.row(name, *[ratio(medians, peer, own) for own in ('own', 'own_batch') for peer in PEERS[:2]])


def ratio(medians: dict[str, float], peer: str, own: str) -> str:
    """Return how many times as long the peer takes, or a dash where one of them is missing."""
    if peer not in medians or own not in medians:
        return '-'
    return times_as_fast(medians[peer], medians[own])
