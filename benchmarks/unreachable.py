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
EFFORTS = 12
RESTARTS = 2000
CHECKED = 20
POSITION, DIRECTION = 1e-6, 1e-4  # [m], [rad] by which a best effort may be worse than the reference's
BEYOND = 1e-3  # [m]


def run(tasks: list[Task], scale: float) -> None:
    """Print the verdicts, then the best efforts."""
    verdicts(tasks, math.ceil(GOALS * scale / len(tasks)))
    efforts([task for task in tasks if task.arm.n == 5], max(3, round(EFFORTS * scale)))


def verdicts(tasks: list[Task], count: int) -> None:
    """Print what goals beyond reach, reachable goals and goals of any direction are called."""
    some = max(1, count // 10)
    heading(
        'Verdicts',
        f"""For each of {len(tasks)} arms {count} goals beyond reach, further from the first joint than all
        lengths added up; {count} reachable goals by FK; {some} reachable positions with a random direction.
        Wrong: called solved but not so by the FK of this benchmark; reachable and called unreachable; called
        unreachable, but met by one of {RESTARTS} restarts of an independent solver (the first {CHECKED} such
        goals are checked). Time: microseconds of the median call for a goal beyond reach.""",
    )
    kinds = [
        f'{kind} {verdict}' for kind in ('beyond:', 'reachable:', 'any:') for verdict in ('solved', 'refused')
    ]
    table = Table('arm'.ljust(26), *kinds, 'wrong', 'time')
    for task in tasks:
        solver = solver_for(task.arm)
        positions, directions, _ = task.goals(count, seed=4)
        turned = random_directions(count)
        runs = [
            (outside(task, positions), turned),
            (positions, directions),
            (positions[:some], turned[:some]),
        ]
        cells, wrong, times = [], 0, []
        for goals in runs:
            solutions, taken = solve(solver, *goals)
            times.append(np.median(taken))
            solved, refused = having(solutions, Status.SOLVED), having(solutions, Status.UNREACHABLE)
            cells += [percent(solved), percent(refused)]
            q = np.array([solution.q for solution in solutions])
            wrong += np.count_nonzero(solved & ~task.good(q, *goals))
            if goals is runs[1]:
                wrong += np.count_nonzero(refused)
            elif goals is runs[2]:
                wrong += refuted(task, positions[:some][refused], turned[:some][refused])
        table.row(task.name, *cells, wrong, f'{1e6 * times[0]:.1f}')


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


def having(solutions: list[Solution], status: Status) -> Array:
    """Whether each solution has the status."""
    return np.array([solution.status is status for solution in solutions])


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
        f"""{count} goals per arm, a third each: a reachable position with a random direction, a position
        beyond reach, a position {1e3 * BEYOND:g} mm beyond reach. Reference: the best of {RESTARTS} restarts
        of an independent solver, position first, then direction. Excess: by how much ik_node's error is
        larger, the worst over all goals (negative: better in all); a direction is compared where the
        positions agree. Good: within {POSITION:g} m and {DIRECTION:g} rad. Time: microseconds of the median
        call.""",
    )
    table = Table('arm'.ljust(26), 'goals', 'good', 'position excess', 'direction excess', 'time')
    for task in tasks:
        reference, solver = Reference(task), solver_for(task.arm)
        positions, _, _ = task.goals(count, seed=7)
        turned = random_directions(count)
        far = outside(task, positions)
        third = count // 3
        positions[third:] = far[third:]
        positions[2 * third :] = just_beyond(task, reference, far[2 * third :], turned[2 * third :])
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


def just_beyond(task: Task, reference: Reference, far: Array, directions: Array) -> Array:
    """Bring goals (N, 3) that are far beyond reach to BEYOND from the point of the reach nearest to them."""
    best = functools.partial(reference.best_effort, restarts=RESTARTS // 10)
    q = np.array([found[2] for found in in_threads(best, far, directions)]).reshape(-1, task.arm.n)
    nearest, _ = task.chain.fk(q)
    away = far - nearest
    return nearest + BEYOND * away / np.linalg.norm(away, axis=1, keepdims=True)
