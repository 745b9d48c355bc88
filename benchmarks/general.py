# SPDX-License-Identifier: Apache-2.0
"""Every solution: against brute force and beside peers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from time import thread_time
from typing import Any

import numpy as np
from oracles.arms import Task, made_up_arms, shipped_arms, solver_for
from oracles.chain import Array
from oracles.random_arms import general_arm
from oracles.special_arms import fewer, kinds

from benchmarks.complete import RESTARTS, SAME, Compared, compared, distinct, isolated
from benchmarks.contest import Contest, Record, title_of
from benchmarks.tables import Table, heading, microseconds, percent, times_as_fast
from ik_node import Goal, IkSolver
from ik_node.solver.all_solutions import MAX_SOLUTIONS

ARMS = 200
GOALS = 50
PEERS = ['own_all', 'own_search', 'ssik_roots']
PEER_ARMS = 2  # beside skew; ssik derives for minutes for each


def run(tasks: list[Task], scale: float) -> None:
    """Print what solve_all finds and misses, its times, and those of peers."""
    count = max(2, round(GOALS * scale))
    heading(
        'Every solution',
        f"""{count} reachable goals per arm: solve_all against {RESTARTS} descents of an independent bounded
        Levenberg-Marquardt solver from uniform random joints, and whole turns of what these find. Solutions
        within {SAME:g} in every joint count as one; joints that move nothing are left out. Missed: found by
        brute force alone. More: by solve_all alone. Wrong: no solution by the FK of this benchmark. Shown:
        goals for which solve_all says that there are no others. Most: solutions of one goal. Times:
        microseconds of processor time of the median call, seed mid-range; kernel: the elimination alone;
        solves: the same in units of one solve of seed_arm.""",
    )
    counts = ['number', 'goals', 'brute force', 'solve_all', 'missed', 'more', 'wrong', 'shown', 'most']
    timed = ['solve_all', 'solves', 'kernel', 'solves', 'solve', 'solves']
    table = Table('arms'.ljust(26), *counts, *timed)
    total = np.zeros(5, dtype=int)
    for name, group in groups(tasks, scale):
        before = one_solve()
        parts, kernel, single = zip(*(judge(task, count) for task in group), strict=True)
        one = min(before, one_solve())
        row = np.array([cells(part) for part in parts])
        every = [np.concatenate(each) for each in ([part.times for part in parts], kernel, single)]
        timed = [cell for spent in map(np.median, every) for cell in (f'{1e6 * spent:.1f}', f'{spent / one:.1f}')]
        most = max(max(part.found) for part in parts)
        shown = percent(np.concatenate([part.shown for part in parts]))
        table.row(name, len(group), len(every[0]), *row.sum(axis=0), shown, most, *timed)
        total += row.sum(axis=0)
    expected, found, missed, more, wrong = total
    print(f'\n{expected} by brute force, {found} by solve_all: {missed} missed, {more} more, {wrong} wrong')
    peers(min(GOALS, 5 * count), round(PEER_ARMS * min(scale, 1.0)))


def groups(tasks: list[Task], scale: float) -> list[tuple[str, list[Task]]]:
    """Return names and arms: those of tasks that fit, each by itself, and random ones by kind."""
    found = [(task.name, [task]) for task in tasks if isolated(task)]
    made = {'general': [general_arm(seed) for seed in range(math.ceil(ARMS * min(scale, 1.0)))]}
    return found + list({**made, **kinds(), **fewer()}.items())


def judge(task: Task, count: int) -> tuple[Compared, Array, Array]:
    """Compare with brute force, print what is missed; return that and the times of kernel and solve [s]."""
    positions, directions, _ = task.goals(count, seed=2)
    solver = solver_for(task.arm)
    found = compared(task, solver, positions, directions)
    for k, q in found.missed:
        claim = ', called complete' if found.shown[k] else ''
        print(f'  missed{claim}: {task.name} {positions[k].tolist()} {directions[k].tolist()}: {q.tolist()}')
    call = eliminated(solver)
    kernel = np.full(1, math.nan) if call is None else times(call, task, positions, directions)
    return found, kernel, times(solver.solve, task, positions, directions)


def eliminated(solver: IkSolver) -> Callable[[Goal], Any] | None:
    """Return the call of the elimination's kernel, None for a solver that has none."""
    elimination = getattr(solver, 'elimination', None)
    if elimination is None:
        return None
    arm = solver.arm
    seed, found = arm.middle.copy(), np.empty((MAX_SOLUTIONS, arm.n))
    return lambda goal: elimination.solutions(goal.packed, seed, found, arm.limits)


def cells(found: Compared) -> list[int]:
    """Return how many solutions there are, in the order of the table."""
    return [found.expected, sum(found.found), len(found.missed), found.more, found.wrong]


def times(
    call: Callable[..., Any], task: Task, positions: Array, directions: Array, found: list[Any] | None = None
) -> Array:
    """Return the processor time of each call [s]; adds what it returns to found."""
    spent = []
    for position, direction in zip(positions, directions, strict=True):
        goal = task.goal(position, direction)
        start = thread_time()
        answer = call(goal)
        spent.append(thread_time() - start)
        if found is not None:
            found.append(answer)
    return np.array(spent)


def one_solve() -> float:
    """Return the processor time of the median solve of seed_arm [s]."""
    task, solve = seed_arm()
    positions, directions, _ = task.goals(400)
    return float(np.median(times(solve, task, positions, directions)))


@functools.cache
def seed_arm() -> tuple[Task, Callable[..., Any]]:
    """Return the arm and its solve."""
    task = next(task for task in shipped_arms() if task.name == 'seed_arm')
    return task, solver_for(task.arm).solve


def peers(count: int, arms: int) -> None:
    """Print how many solutions others find, and in what time."""
    heading(
        'Every solution, beside peers',
        f"""{count} reachable goals per arm, microseconds of the bare call, in turns, median of 3 rounds.
        Solutions: distinct ones within the limits that meet the goal by the FK of this benchmark. Search:
        solve_all as it is for any arm, by restarts. ssik is given a virtual roll joint on the tool axis; its
        derivation for an arm is not counted. Ratio: the median over that of ik_node.""",
    )
    table = Table('arm'.ljust(26), 'solver'.ljust(33), 'solutions', 'median', 'mean', 'p99', 'ratio')
    with Contest(PEERS) as contest:
        for task in [*made_up_arms(), *map(general_arm, range(3, 3 + arms))]:
            positions, directions, _ = task.goals(count, seed=2)
            records, left_out = contest.run(task, positions, directions)
            for peer in PEERS:
                if peer in left_out:
                    table.row(task.name, title_of(peer), left_out[peer])
                    continue
                found = solutions(task, records[peer], positions, directions)
                ratio = times_as_fast(*(np.median(records[name].times) for name in (peer, PEERS[0])))
                table.row(task.name, title_of(peer), found, *microseconds(records[peer].times), ratio)


def solutions(task: Task, record: Record, positions: Array, directions: Array) -> int:
    """Return how many distinct answers are solutions."""
    total = 0
    for answers, position, direction in zip(record.answers, positions, directions, strict=True):
        q = np.array(answers).reshape(-1, task.arm.n)
        _, _, turned = task.errors(q, position, direction)
        total += len(distinct(task, turned[task.good(q, position, direction)], np.ones(task.arm.n, bool)))
    return total
