# SPDX-License-Identifier: Apache-2.0
"""Goals that cannot be met: what they are called, and how near the best effort comes."""

from __future__ import annotations

import functools
import math
from time import perf_counter

import numpy as np

from benchmarks.arms import Task, solver_for
from benchmarks.chain import Array, angle_between
from benchmarks.reference import Reference, in_threads
from benchmarks.tables import Table, heading, percent
from ik_node import Goal, IkSolver, Solution, Status

GOALS = 100_000
EFFORTS = 20
TIMED = 200  # calls of solve per arm
RESTARTS = 2000
CHECKED = 20
POSITION, DIRECTION = 1e-6, 1e-4  # [m], [rad] by which a best effort may be worse than the reference's
BEYOND = 1e-3  # [m]


def run(tasks: list[Task], scale: float) -> None:
    """Print the verdicts, then the best efforts."""
    verdicts(tasks, math.ceil(GOALS * scale / len(tasks)))
    efforts(tasks, max(4, round(EFFORTS * scale)))


def verdicts(tasks: list[Task], count: int) -> None:
    """Print what goals beyond reach, reachable goals and goals of any direction are called."""
    some = max(1, count // 10)
    heading(
        'Verdicts',
        f"""For each of {len(tasks)} arms {count} goals beyond reach, further from the first joint than all
        lengths added up; {count} reachable goals by FK; {some} reachable positions with a random direction;
        one solve_batch each. Wrong: called solved but not so by the FK of this benchmark; beyond reach and
        called solved; reachable and called unreachable; called unreachable, but met by one of {RESTARTS}
        restarts of an independent solver (the first {CHECKED} such goals are checked). Time: microseconds
        of the median solve call, of {TIMED}, for a goal beyond reach.""",
    )
    kinds = [
        f'{kind} {verdict}'
        for kind in ('beyond:', 'reachable:', 'any:')
        for verdict in ('solved', 'rejected')
    ]
    table = Table('arm'.ljust(26), *kinds, 'wrong', 'time')
    total = np.zeros(4, dtype=int)
    for task in tasks:
        solver = solver_for(task.arm)
        positions, directions, _ = task.goals(count, seed=4)
        turned = random_directions(count)
        runs = [
            (outside(task, positions), turned),
            (positions, directions),
            (positions[:some], turned[:some]),
        ]
        cells, wrong = [], 0
        for goals in runs:
            found = solver.solve_batch(*goals)
            rejected = found.status == Status.UNREACHABLE
            cells += [percent(found.solved), percent(rejected)]
            wrong += np.count_nonzero(found.solved & ~task.good(found.q, *goals))
            if goals is runs[0]:
                wrong += np.count_nonzero(found.solved)
            elif goals is runs[1]:
                wrong += np.count_nonzero(rejected)
            else:
                wrong += refuted(task, positions[:some][rejected], turned[:some][rejected])
        _, times = solve(solver, *(part[:TIMED] for part in runs[0]))
        table.row(task.name, *cells, wrong, f'{1e6 * np.median(times):.1f}')
        total += np.array([*map(len, (positions, positions, turned[:some])), wrong])
    beyond, reachable, any_direction, wrong = total
    print(
        f'\n{beyond} goals beyond reach, {reachable} reachable ones, {any_direction} of any direction: '
        f'{wrong} wrong verdicts'
    )


def refuted(task: Task, positions: Array, directions: Array) -> int:
    """Return how many of the first CHECKED goals (N, 3), (N, 3) brute force does meet."""
    brute = functools.partial(Reference(task).solutions, restarts=RESTARTS)
    return sum(len(found) > 0 for found in in_threads(brute, positions[:CHECKED], directions[:CHECKED]))


def solve(solver: IkSolver, positions: Array, directions: Array) -> tuple[list[Solution], list[float]]:
    """Return the solutions and the time of each call [s]."""
    solutions, times = [], []
    for goal in map(Goal, positions, directions):
        start = perf_counter()
        solutions.append(solver.solve(goal))
        times.append(perf_counter() - start)
    return solutions, times


def random_directions(count: int) -> Array:
    """Return unit vectors (count, 3), uniform on the sphere."""
    vectors = np.random.default_rng(5).normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def outside(task: Task, positions: Array) -> Array:
    """Move positions (N, 3) away from the first joint, to 1.001 to 2 times the bound of the reach."""
    away = positions - task.chain.first
    length = task.chain.bound(np.array([task.arm.lower, task.arm.upper]))
    factors = length * np.random.default_rng(6).uniform(1.001, 2.0, (len(positions), 1))
    return task.chain.first + away / np.linalg.norm(away, axis=1, keepdims=True) * factors


def efforts(tasks: list[Task], count: int) -> None:
    """Print how much worse the best efforts are than the best of many restarts of the reference."""
    heading(
        'Best effort',
        f"""{count} goals per arm with random directions, a quarter each: at a reachable position, beyond
        reach, {1e3 * BEYOND:g} mm beyond reach, anywhere nearer. Reference: the best of {RESTARTS} restarts
        of an independent solver, position first, then direction. Excess: by how much ik_node's error is
        larger, the worst over all goals (negative: better in all); a direction is compared where the
        positions agree. Good: within {POSITION:g} m and {DIRECTION:g} rad. Time: microseconds of the median
        call.""",
    )
    total, worst = np.zeros(2, dtype=int), np.full(2, -np.inf)
    table = Table('arm'.ljust(26), 'goals', 'good', 'position excess', 'direction excess', 'time')
    for task in tasks:
        reference, solver = Reference(task), solver_for(task.arm)
        positions, _, _ = task.goals(count, seed=7)
        turned = random_directions(count)
        far = outside(task, positions)
        quarter = count // 4
        positions[quarter:] = far[quarter:]
        some = slice(2 * quarter, 3 * quarter)
        positions[some] = just_beyond(task, reference, far[some], turned[some])
        inward = np.random.default_rng(8).uniform(size=(count - 3 * quarter, 1)) ** (1 / 3)
        positions[3 * quarter :] += (inward - 1.0) * (far[3 * quarter :] - task.chain.first)
        best = functools.partial(reference.best_effort, restarts=RESTARTS)
        least, angles, _ = zip(*in_threads(best, positions, turned), strict=True)
        solutions, times = solve(solver, positions, turned)
        point, axis = task.chain.fk(np.array([solution.q for solution in solutions]))
        position_excess = np.linalg.norm(point - positions, axis=1) - least
        direction_excess = angle_between(axis, turned) - angles
        compared = position_excess > -POSITION
        good = (position_excess <= POSITION) & ((direction_excess <= DIRECTION) | ~compared)
        table.row(
            task.name,
            count,
            np.count_nonzero(good),
            f'{position_excess.max():.1e}',
            f'{direction_excess[compared].max(initial=-np.inf):.1e}',
            f'{1e6 * np.median(times):.0f}',
        )
        total += [count, np.count_nonzero(good)]
        worst = np.maximum(worst, [position_excess.max(), direction_excess[compared].max(initial=-np.inf)])
    print(
        f'\n{total[1]} of {total[0]} good; worst position excess {worst[0]:.1e} m, '
        f'direction excess {worst[1]:.1e} rad'
    )


def just_beyond(task: Task, reference: Reference, far: Array, directions: Array) -> Array:
    """Bring goals (N, 3) that are far beyond reach to BEYOND from the point of the reach nearest to them."""
    best = functools.partial(reference.best_effort, restarts=RESTARTS // 10)
    q = np.array([found[2] for found in in_threads(best, far, directions)]).reshape(-1, task.arm.n)
    nearest, _ = task.chain.fk(q)
    away = far - nearest
    return nearest + BEYOND * away / np.linalg.norm(away, axis=1, keepdims=True)
