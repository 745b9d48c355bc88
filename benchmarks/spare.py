# SPDX-License-Identifier: Apache-2.0
"""Arms with six and seven joints: locked joints, and self-motions, against brute force."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from time import thread_time

import numpy as np

from benchmarks.arms import Task, real_arms, solver_for
from benchmarks.chain import Array
from benchmarks.complete import distinct, idle_joints, lacking, with_turns
from benchmarks.random_arms import limits, task, unit
from benchmarks.reference import Reference, in_threads
from benchmarks.tables import Table, heading, percent, times_as_fast
from benchmarks.traced import STEP, distances, on, separate, traced, without_turns
from ik_node import Arm, Goal, IkSolver

GOALS = 20
ARMS = 12  # random ones of either number of joints
RESTARTS, POINTS = 20_000, 2_000  # descents for solutions with joints locked, and for points of families
REAL = ('koch_v1_1', 'omx_l', 'panda', 'ur5e', 'vx300s')


def run(tasks: list[Task], scale: float) -> None:  # noqa: ARG001 - the arms are its own
    """Print what is found, missed and wrong with joints locked, then the same of families."""
    count, number = max(2, round(GOALS * scale)), max(2, round(ARMS * min(scale, 1.0)))
    arms = spare_arms() + [random_arm(seed, joints) for joints in (6, 7) for seed in range(number)]
    held_joints(arms, count)
    families([arm for arm in arms if solver_for(arm.arm).self_motions is not None], count)


def held_joints(arms: Sequence[Task], count: int) -> None:
    """Print solutions with as many joints locked as are to spare: the first, the last, and some between."""
    heading(
        'Every solution with joints locked',
        f"""{count} reachable goals per arm, three times as many joints locked as are to spare, at the values
        by which the goal was made: solve_all against {RESTARTS} descents of an independent solver with the
        same joints locked. Columns as in the section general. Times: milliseconds of the median call, CPU
        time; first: joints next to the base are held, whose values change the goal only; others: the
        constants are made for each value.""",
    )
    counts = ['goals', 'brute force', 'solve_all', 'missed', 'more', 'wrong', 'shown']
    table = Table('arm'.ljust(12), *counts, 'first', 'others')
    total = np.zeros(5, dtype=int)
    for one in arms:
        solver, kept = solver_for(one.arm), np.flatnonzero(~idle_joints(one))
        spare = len(kept) - one.arm.effective_dof
        parts = [
            judge_held(one, solver, kept[place : place + spare], count)
            for place in (0, len(kept) - spare, (len(kept) - spare) // 2)
        ]
        row = sum(part[0] for part in parts)
        first, *others = (part[2] for part in parts)
        times = [f'{1e3 * np.median(spent):.2f}' for spent in (first, others)]
        shown = percent(np.concatenate([part[1] for part in parts]))
        table.row(one.name, len(parts) * count, *row, shown, *times)
        total += row
    print('\n{} by brute force, {} by solve_all: {} missed, {} more, {} wrong'.format(*total))


def judge_held(one: Task, solver: IkSolver, held: Array, count: int) -> tuple[Array, list[bool], list[float]]:
    """Return the counts of the table, whether lists are complete, and the times of calls [s]."""
    names, kept = [one.arm.joint_names[i] for i in held], ~idle_joints(one)
    moving = kept & ~np.isin(np.arange(one.arm.n), held)
    positions, directions, q = one.goals(count, seed=2)
    solver.solve_all(Goal(positions[0], directions[0]), q[0], names, time_budget=np.inf)
    brute = functools.partial(with_held, one, held)
    counts, shown, times = np.zeros(5, dtype=int), [], []
    for k, expected in enumerate(in_threads(brute, positions, directions, q)):
        goal, start = Goal(positions[k], directions[k]), thread_time()
        found = solver.solve_all(goal, q[k], names, time_budget=np.inf)
        times.append(thread_time() - start)
        shown.append(found.complete)
        rows = np.array([solution.q for solution in found]).reshape(-1, one.arm.n)
        wrong = ~one.good(rows, positions[k], directions[k]) | (rows[:, held] != q[k, held]).any(axis=1)
        there = distinct(one, rows, moving)
        expected = with_turns(one, distinct(one, expected, moving), moving)
        missed, more = lacking(one, expected, there), lacking(one, there, expected)
        for lost in missed:
            print(f'  missed: {one.name} {names} {q[k].tolist()}: {lost.tolist()}')
        counts += [len(expected), len(there), len(missed), len(more), np.count_nonzero(wrong)]
    return counts, shown, times


def with_held(one: Task, held: Array, position: Array, direction: Array, q: Array) -> Array:
    """Return the solutions (k, n) that descents find while the joints held stay at q (n,)."""
    reference = Reference(one)
    reference.limits[:, held] = q[held]
    return reference.solutions(position, direction, RESTARTS)


def families(arms: Sequence[Task], count: int) -> None:
    """Print families that solve_all finds, the search without it, and points that are on none of them."""
    heading(
        'Self-motions with one spare joint',
        f"""{count} reachable goals per arm, seed mid-range. Each family is followed from the solution
        returned by steps of {STEP:g}, apart from the solver. Missed: families that {POINTS} descents of an
        independent solver, or the other way, find beside them. Twice: solutions on the family of
        another. Farther: families with a member nearer to the seed by more than a step. Wrong: not a
        solution. Search: families found by restarts alone. Times: milliseconds of the median call,
        processor time.""",
    )
    counts = [
        'families',
        'missed',
        'twice',
        'farther',
        'wrong',
        'search',
        'missed',
        'time',
        'search',
        'ratio',
    ]
    table = Table('arm'.ljust(12), 'goals', *counts)
    total = np.zeros(7, dtype=int)
    for one in arms:
        row, times = judge_families(one, count)
        cells = [f'{1e3 * spent:.1f}' for spent in times]
        table.row(one.name, count, *row, *cells, times_as_fast(times[1], times[0]))
        total += row
    print('\n{} families, {} missed, {} twice, {} farther, {} wrong; search {}, {} missed'.format(*total))


def judge_families(one: Task, count: int) -> tuple[Array, Array]:
    """Return the counts of the table and the median times of solve_all and the search [s]."""
    arm, counts, times = one.arm, np.zeros(7, dtype=int), []
    solver, search = solver_for(arm), solver_for(arm, closed_form=False)
    positions, directions, q = one.goals(count, seed=2)
    solver.solve_all(
        Goal(*arm.fk(q[0])), time_budget=np.inf
    )  # the constants of the arm are no part of a goal
    brute = functools.partial(Reference(one).solutions, restarts=POINTS)
    for position, direction, points in zip(
        positions, directions, in_threads(brute, positions, directions), strict=True
    ):
        goal = Goal(position, direction)
        found, searched = (timed(each, goal, times) for each in (solver, search))
        known, by_search = separate(arm, goal, found), separate(arm, goal, searched)
        counts += [len(known), 0, len(found) - len(known), 0, 0, len(by_search), 0]
        counts[3] += sum(farther(arm, family, found) for family in known)
        counts[4] += np.count_nonzero(~one.good(found, position, direction))
        for place, kept in ((1, known), (6, by_search)):
            for point in np.vstack([points, found, searched]):
                if not any(on(arm, family, point) for family in kept):
                    kept.append(traced(arm, goal, point))
                    counts[place] += 1
                    if place == 1:
                        goal_shown = position.tolist(), direction.tolist()
                        print(f'  missed: {one.name} {goal_shown}: {point.tolist()}')
    return counts, np.median(np.reshape(times, (-1, 2)), axis=0)


def farther(arm: Arm, family: Array, found: Array) -> bool:
    """Whether a family has a member nearer to mid-range than those found (k, n) of it."""
    here = np.array([q for q in found if on(arm, family, q)])
    given, least = (distances(arm, rows, arm.middle).min() for rows in (here, family))
    return bool(given > least + STEP)


def timed(solver: IkSolver, goal: Goal, times: list[float]) -> Array:
    """Return the configurations (k, n) of solve_all, whole turns left out; adds its time [s]."""
    start = thread_time()
    found = solver.solve_all(goal, time_budget=np.inf)
    times.append(thread_time() - start)
    return without_turns(solver.arm, np.array([solution.q for solution in found]))


def spare_arms() -> list[Task]:
    """Return real arms with joints to spare for goals with a direction, for the tool axes z and x."""
    tasks = {task.name.partition('#')[0]: task for task in real_arms()}
    found = []
    for axis, suffix in (((0.0, 0.0, 1.0), ''), ((1.0, 0.0, 0.0), ' x')):
        for name in (name for name in REAL if name in tasks):
            tip = Arm.from_file(tasks[name].path).tip_link
            one = replace(tasks[name], name=name + suffix, tip=tip, axis=axis, point=(0.0, 0.0, 0.0))
            if one.arm.effective_dof == 5 < np.count_nonzero(~idle_joints(one)):
                found.append(one)
    return found


def random_arm(seed: int, joints: int) -> Task:
    """Return the arm number seed with so many joints of any geometry."""
    rng = np.random.default_rng((seed, 29, joints))
    axes = np.array([unit(rng) for _ in range(joints)])
    offsets = rng.normal(size=(joints, 3)) * rng.choice([0.05, 0.2], (joints, 1))
    bounds = limits(rng, joints, 0.8, 3.0)
    slides = np.zeros(joints, bool)
    tool, point = unit(rng), rng.normal(size=3) * 0.1
    return task(f'joints{joints}_{seed}', axes, offsets, slides, bounds, tool, point)
