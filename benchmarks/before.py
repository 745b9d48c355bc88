# SPDX-License-Identifier: Apache-2.0
"""The solver beside an earlier commit of itself, $BASE, in turns on the same goals."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracles.arms import Task
from oracles.chain import Array

from benchmarks.commits import BASE, base_folder
from benchmarks.contest import TURN, Contest, Contestant, Record
from benchmarks.tables import Table, heading, percent
from benchmarks.tracking import smooth_motion

GOALS = 1000
ROUNDS = 5
FIGURES = {'median': np.median, 'mean': np.mean, 'p99': lambda times: np.percentile(times, 99)}
NOW = 'now'
KINDS = {'solve': 'own', 'track': 'own_track', 'batch': 'own_batch', 'all': 'own_all'}
FEWER = 10  # one goal in so many is given to solve_all, which takes longer


def run(tasks: list[Task], scale: float) -> None:
    """Print success and times of both, per arm and kind of call, and how they compare over all arms."""
    count = max(10, round(GOALS * scale))
    heading(
        f'Beside commit {BASE}',
        f"""{count} reachable goals per arm, as in the first section, a tenth of them for solve_all; for track
        the FK of a smooth motion. Microseconds of the whole Python call, median of {ROUNDS} rounds in turns.
        Ratio: the other commit's time over this one's, so above 1 is faster than before.""",
    )
    folder = base_folder()
    if folder is None:
        return
    cells = [f'{name}{when}' for name in FIGURES for when in (' before', ' now', ' ratio')]
    table = Table('arm'.ljust(26), 'call  ', 'solved before', 'solved now', *cells)
    ratios: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}
    for kind, peer in KINDS.items():
        asked = max(10, count // FEWER) if kind == 'all' else count
        with Contest([]) as contest:
            contest.contestants = {BASE: Contestant(peer, folder), NOW: Contestant(peer)}
            for task in tasks:
                turn = asked if kind == 'batch' else TURN
                records, left_out = contest.run(task, **_goals(kind, task, asked), rounds=ROUNDS, turn=turn)
                if left_out:
                    table.row(task.name, kind, *left_out.values())
                    continue
                row, compared = _compared(task, records, *_goals(kind, task, asked).values())
                ratios[kind].append(compared)
                table.row(task.name, kind, *row)
    heading('Over all arms', 'Ratios of the figures above: the median over the arms, and the least.')
    table = Table('call  ', 'figure', 'median', 'least')
    for kind, rows in ratios.items():
        for name, column in zip(FIGURES, np.transpose(rows), strict=True):
            table.row(kind, name, f'{np.median(column):.2f}', f'{column.min():.2f}')


def _goals(kind: str, task: Task, count: int) -> dict[str, Any]:
    """Return what Contest.run needs: positions and directions (N, 3), and for a path where it starts."""
    if kind != 'track':
        positions, directions, _ = task.goals(count)
        return {'positions': positions, 'directions': directions}
    q = smooth_motion(task, count)
    positions, directions = task.chain.fk(q)
    return {'positions': positions, 'directions': directions, 'seed': q[0], 'follow': True}


def _compared(
    task: Task, records: dict[str, Record], positions: Array, directions: Array, *_: Any
) -> tuple[list[str], list[float]]:
    """Return the cells of an arm's row, and its ratios."""
    cells = [percent(records[name].solved(task, positions, directions)) for name in (BASE, NOW)]
    ratios = []
    for figure in FIGURES.values():
        before, now = (figure(records[name].times) for name in (BASE, NOW))
        ratios.append(before / now)
        cells += [f'{1e6 * before:.1f}', f'{1e6 * now:.1f}', f'{before / now:.2f}']
    return cells, ratios
