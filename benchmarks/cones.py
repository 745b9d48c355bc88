# SPDX-License-Identifier: Apache-2.0
"""Goals with a cone beside goals with one direction: time, and how much nearer to the seed the solution is."""

from __future__ import annotations

from time import thread_time

import numpy as np
from oracles.arms import Task

from benchmarks.tables import Table, heading
from ik_node import Goal, IkSolver

GOALS, ROUNDS = 100, 10
CONES = (0.1, 0.5, 2.0)


def run(tasks: list[Task], scale: float) -> None:
    """Print processor times of solve, the least of some rounds, and the moves from the seed."""
    count = max(5, round(GOALS * scale))
    heading(
        'Goals with a cone',
        f"""{count} goals that random joints meet, from random seeds. Median over the goals of the least processor time
        [us] of {ROUNDS} calls in turns: the direction alone, then cones about it, and the ratio to the direction alone.
        Move: median of the largest joint move from the seed [rad or m].""",
    )
    columns = [title for cone in CONES for title in (f'{cone} rad', 'ratio', 'move')]
    table = Table('arm'.ljust(24), 'DoF', 'plain', 'move', *columns, 'solved')
    for task in tasks:
        if task.position_only:
            continue
        arm, solver, rng = task.arm, IkSolver(task.arm), np.random.default_rng(43)
        joints, seeds = arm.sample(rng, count), arm.sample(rng, count)
        places = [arm.fk(q) for q in joints]
        goals = [[Goal(*place, cone=cone) for cone in (0.0, *CONES)] for place in places]
        times, moves = np.full((count, 1 + len(CONES)), np.inf), np.zeros((count, 1 + len(CONES)))
        solved = 0
        for _ in range(ROUNDS):
            for k, kinds in enumerate(goals):
                for j, goal in enumerate(kinds):
                    start = thread_time()
                    found = solver.solve(goal, seeds[k])
                    times[k, j] = min(times[k, j], thread_time() - start)
                    moves[k, j] = np.abs(found.q - seeds[k]).max()
                    solved += found.solved
        us, move = 1e6 * np.median(times, axis=0), np.median(moves, axis=0)
        cells = [
            cell
            for j in range(1, 1 + len(CONES))
            for cell in (f'{us[j]:.0f}', f'{us[j] / us[0]:.0f}', f'{move[j]:.2f}')
        ]
        share = f'{100.0 * solved / (ROUNDS * moves.size):.1f} %'
        table.row(task.name, arm.effective_dof, f'{us[0]:.1f}', f'{move[0]:.2f}', *cells, share)
