# SPDX-License-Identifier: Apache-2.0
"""Whether a best effort has the least position error, whatever the seed, then the least direction error."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from time import thread_time

import numpy as np

from benchmarks.arms import Task, solver_for
from benchmarks.chain import Array, angle_between
from benchmarks.random_arms import general_arm, random_task, synthetic_arms, unit
from benchmarks.reference import WEIGHTS, Reference, in_threads
from benchmarks.special_arms import fewer, kinds, near
from benchmarks.tables import Table, heading
from ik_node import Goal, IkSolver, Status

GOALS = 2000
RANDOM_ARMS = 100
SEEDS = 4
RESTARTS = 5000
DIRECTED, SETTLING = 2, 5  # goals per arm, descents
SLACK = 1e-12  # [m]: an answer that is nearer by more is not compared in direction
DIRECTION = 1e-4  # [rad] by which a direction error may exceed the reference's
TOLERANCE = 2e-6  # [m] by which the answers to a goal may differ, and exceed the reference


def run(tasks: list[Task], scale: float) -> None:
    """Print the agreement of the answers, the excess over the reference, and the time of rejections."""
    made = [random_task(seed) for seed in range(math.ceil(RANDOM_ARMS * min(scale, 1.0)))]
    groups = [(task.name, [task]) for task in [*tasks, *synthetic_arms()]]
    groups += [
        (f'{kind}, random', [t for t in made if t.name.startswith(kind)]) for kind in ('pitches', 'chain')
    ]
    shapes = {'general': [general_arm(seed) for seed in range(len(made))], **kinds(), **fewer(), **near()}
    groups += shapes.items()
    groups = [(name, group) for name, group in groups if group]
    arms = sum(len(group) for _, group in groups)
    count = max(2, math.ceil(GOALS * scale / arms))
    heading(
        'Least position error',
        f"""{count} goals for each of {arms} arms that cannot be met: a third at a reachable position,
        the others anywhere up to twice the reach, all with a random direction. Each is asked {2 * SEEDS}
        times, from {SEEDS} seeds, with and without the direction. Spread: of the position errors [m], by this
        benchmark's FK. Excess: of the largest over the least of {RESTARTS} restarts of an independent solver.
        Turned: excess of the direction error over the least that so many restarts find at the least position
        error [rad], for the first {DIRECTED} goals of arms with up to five joints (negative: better). Good:
        within {TOLERANCE:g} m and {DIRECTION:g} rad. Told: by how much the position error that ik_node states
        differs. Time: processor time of UNREACHABLE with the direction [ms].""",
    )
    table = Table('arm'.ljust(26), 'goals', 'good', 'spread', 'excess', 'turned', 'told', 'median', 'p99')
    total, times = [], []
    for name, group in groups:
        parts = [judge(task, count) for task in group]
        rows, spent = np.vstack([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        table.row(name, *cells(rows), *quantiles(spent))
        total.append(rows)
        if all(solver_for(task.arm).closed_form is not None for task in group):
            times.append(spent)
    table.row('all; time: with a formula', *cells(np.vstack(total)), *quantiles(np.concatenate(times)))


def judge(task: Task, count: int) -> tuple[Array, Array]:
    """Return spread, excess [m], turned [rad], told [m] per goal (count, 4), and times of rejections [s]."""
    solver, seeds = solver_for(task.arm), task.arm.sample(np.random.default_rng(12), SEEDS)
    positions, directions = [], []
    for position, direction in goals(task):
        if not solver.solve(Goal(position, direction)).solved:
            positions.append(position)
            directions.append(direction)
        if len(positions) == count:
            break
    reference = Reference(task)
    least = in_threads(functools.partial(reference.least_position_error, restarts=RESTARTS), positions)
    directed = slice(DIRECTED if task.arm.n <= 5 else 0)
    best = functools.partial(reference.best_effort, restarts=RESTARTS)
    turned = in_threads(best, positions[directed], directions[directed])
    rows, times = np.empty((len(positions), 4)), []
    for k, (position, direction) in enumerate(zip(positions, directions, strict=True)):
        errors, angles, told = answers(task, solver, position, direction, seeds, times)
        more = -np.inf
        if k < len(turned):
            for least_error, angle in best_efforts(reference, position, direction, turned[k][2]):
                compared = errors[: len(angles)] > least_error - SLACK  # those nearer may be turned more
                more = max(more, angles.max(where=compared, initial=-np.inf) - angle)
        rows[k] = np.ptp(errors), errors.max() - least[k], more, np.abs(told - errors).max()
        if not good(rows[k]):
            found = f'{errors.tolist()}, {least[k]}; {angles.tolist()}, excess {more}'
            print(f'  {task.name} {position.tolist()} {direction.tolist()}: {found}')
    return rows, np.array(times)


def best_efforts(
    reference: Reference, position: Array, direction: Array, q: Array
) -> Iterator[tuple[float, float]]:
    """Yield the errors [m, rad] of the best effort q (n,), chosen with slack, and after descents."""
    goals = np.tile(position, (SETTLING, 1)), np.tile(direction, (SETTLING, 1))
    settled = reference.along(q, *goals, 0.3 * reference.scale * WEIGHTS[-1])[-1]
    for each in (q, settled):
        point, axis = reference.chain.fk(each)
        yield float(np.linalg.norm(point[0] - position)), float(angle_between(axis[0], direction))


def answers(
    task: Task, solver: IkSolver, position: Array, direction: Array, seeds: Array, times: list[float]
) -> tuple[Array, Array, Array]:
    """Return position errors of all answers [m], direction errors of those with a direction [rad], by FK.

    And the position errors as told. Adds the times of rejections [s].
    """
    q, told = [], []
    for goal in (Goal(position, direction), Goal(position)):
        for seed in seeds:
            start = thread_time()
            solution = solver.solve(goal, seed)
            if solution.status is Status.UNREACHABLE and goal.direction is not None:
                times.append(thread_time() - start)
            q.append(solution.q)
            told.append(solution.position_error)
    points, axes = task.chain.fk(np.array(q))
    angles = angle_between(axes[: len(seeds)], direction)
    return np.linalg.norm(points - position, axis=1), angles, np.array(told)


def goals(task: Task, most: int = 400) -> Iterator[tuple[Array, Array]]:
    """Yield positions and directions, by turns at a reachable position, anywhere nearer, and far off."""
    rng = np.random.default_rng(11)
    reach = max(Reference(task).scale, 1e-3)
    for k in range(most):
        if k % 3 == 0:
            position = task.chain.fk(task.arm.sample(rng, 1))[0][0]
        elif k % 3 == 1:
            position = task.chain.first + 1.1 * reach * rng.uniform() ** (1 / 3) * unit(rng)
        else:
            position = task.chain.first + reach * rng.uniform(0.8, 2.0) * unit(rng)
        yield position, unit(rng)


def cells(rows: Array) -> list[object]:
    """Return goals, good ones and the worst of each column."""
    return [len(rows), np.count_nonzero(good(rows)), *(f'{value:.1e}' for value in rows.max(axis=0))]


def good(rows: Array) -> Array:
    """Whether rows (..., 4) are within the tolerances."""
    return (rows[..., :2] <= TOLERANCE).all(axis=-1) & (rows[..., 2] <= DIRECTION)


def quantiles(times: Array) -> list[str]:
    """Return median and p99 [ms]."""
    return [f'{1e3 * value:.2f}' for value in np.quantile(times, (0.5, 0.99))] if len(times) else ['', '']
