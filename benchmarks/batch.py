# SPDX-License-Identifier: Apache-2.0
"""Many goals in one call, beside the batches of EAIK and of JAX on the same goals."""

from __future__ import annotations

import numpy as np
from oracles.arms import Task
from oracles.chain import Array, within

from benchmarks.contest import Contest, Record, title_of
from benchmarks.tables import Table, heading, percent, times_as_fast

GOALS, ROUNDS = 10_000, 7
SOLVERS = ['own_batch', 'own_lanes', 'own_scalar', 'eaik_batch', 'jax_batch']
FEWER = 10  # one goal in so many is given to JAX, which takes longer
COARSE = 1e-4, 1e-3  # m, rad: what is left of it if axes are rounded


def run(tasks: list[Task], scale: float) -> None:
    """Print times, success and errors per arm with five joints and solver."""
    count = max(1, round(GOALS * scale))
    heading(
        'Batches',
        f"""{count} reachable goals per arm in one call, seed mid-range. Microseconds of processor time per goal,
        the least of {ROUNDS} rounds in turns. Kernels: without checks of arguments and results, in lanes and one goal
        at a time. EAIK (one thread) is given whole poses and returns all solutions without regard to limits; it has
        solved a goal if one fits within them. JAX (vmap on the CPU) runs Levenberg-Marquardt with the roll free from
        the seed alone, at most 60 steps in double precision, without restarts, on a tenth of the goals. Solved: to
        1e-6 m and rad; coarsely: to {COARSE[0]:g} m and {COARSE[1]:g} rad. Worst: errors of the goals that are solved
        coarsely.""",
    )
    counts = {'jax_batch': max(1, count // FEWER)}
    table = Table('arm'.ljust(26), 'solver'.ljust(26), 'us', 'ratio', 'solved', 'coarsely', 'worst [m]', 'worst [rad]')
    with Contest(SOLVERS) as contest:
        for task in tasks:
            if task.arm.n != 5 or task.position_only:
                continue
            positions, directions, _ = task.goals(count)
            records, left_out = contest.run(task, positions, directions, counts, rounds=ROUNDS, turn=count)
            for peer in SOLVERS:
                if peer in left_out:
                    table.row(task.name, title_of(peer), left_out[peer])
                    continue
                least, ours = (np.min(records[name].rounds, axis=0).mean() for name in (peer, 'own_batch'))
                errors = best_errors(records[peer], task, positions, directions)
                coarsely = within(errors[0], COARSE[0]) & within(errors[1], COARSE[1])
                table.row(
                    task.name,
                    title_of(peer),
                    f'{1e6 * least:.2f}',
                    times_as_fast(least, ours),
                    percent(records[peer].solved(task, positions, directions)),
                    percent(coarsely),
                    *(f'{error[coarsely].max(initial=0.0):.0e}' for error in errors),
                )


def best_errors(record: Record, task: Task, positions: Array, directions: Array) -> Array:
    """Return position [m] and direction errors [rad] (2, N) of each goal's best answer; inf without one."""
    best = np.full((2, len(record.answers)), np.inf)
    goal = np.repeat(np.arange(len(record.answers)), [len(answers) for answers in record.answers])
    q = np.array([q for answers in record.answers for q in answers]).reshape(-1, task.arm.n)
    errors = np.array(task.errors(q, positions[goal], directions[goal])[:2])
    errors = np.where(np.isnan(errors), np.inf, errors)
    worse_first = np.argsort(-np.maximum(errors[0] / COARSE[0], errors[1] / COARSE[1]), kind='stable')
    best[:, goal[worse_first]] = errors[:, worse_first]  # of those with the same index the last one stays
    return best
