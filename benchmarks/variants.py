"""make compare, second part: the schedules of the random restarts, and the switches of methods."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.arms import TOLERANCE, Task
from benchmarks.chain import Array
from benchmarks.goals import Goals, at_limits, reachable, tied
from ik_node import Goal, IkSolver
from ik_node.solver.methods.registry import METHODS
from ik_node.solver.restarts import SCHEDULES

SCHEDULE_GOALS = {'reachable': (reachable, 2000), 'at limits': (at_limits, 500), 'any direction': (tied, 50)}
SWITCH_GOALS, SWITCH_RESTARTS = 60, 100
COARSE = 1e-3  # m and rad


def run(task: Task, goals: Goals, tolerance: float, **options: Any) -> tuple[Array, Array, Array]:
    """Solve goals one by one: (solved by the benchmark's own FK, processor time [s], restarts), each (N,)."""
    solver = IkSolver(
        task.arm,
        closed_form=False,
        position_tolerance=tolerance,
        direction_tolerance=tolerance,
        **options,
    )
    solutions, seconds = [], []
    for position, direction, seed in zip(goals.positions, goals.directions, goals.seeds, strict=True):
        goal = Goal(position, direction)
        start = time.thread_time()
        solutions.append(solver.solve(goal, seed))
        seconds.append(time.thread_time() - start)
    q = np.array([solution.q for solution in solutions])
    position_error, direction_error, _ = task.errors(q, goals.positions, goals.directions)
    solved = (position_error <= tolerance) & (direction_error <= tolerance)
    return solved, np.array(seconds), np.array([solution.restarts for solution in solutions])


def schedule_rows(tasks: list[Task], scale: float) -> list[list[str]]:
    """One row per kind of goal and schedule, over the arms without a closed form."""
    general = [task for task in tasks if IkSolver(task.arm).closed_form is None]
    rows = []
    for number, (kind, (make, count)) in enumerate(SCHEDULE_GOALS.items()):
        many = max(4, round(scale * count))
        given = [(task, make(task, np.random.default_rng(200 + number), many)) for task in general]
        for schedule in SCHEDULES if general else ():
            answers = [run(task, goals, TOLERANCE, schedule=schedule) for task, goals in given]
            solved, seconds, restarts = (np.concatenate(each) for each in zip(*answers, strict=True))
            times = [
                f'{1e6 * t:.1f}' for t in (np.median(seconds), seconds.mean(), np.percentile(seconds, 99))
            ]
            found = restarts[solved] if solved.any() else np.zeros(1)
            share = f'{100 * solved.mean():.2f}'
            rows.append(
                [
                    kind,
                    f'`{schedule}`',
                    str(len(solved)),
                    share,
                    *times,
                    f'{found.mean():.2f}',
                    str(found.max()),
                ]
            )
    return rows


def switch_rows(tasks: list[Task], scale: float) -> list[list[str]]:
    """One row per method with switches and switch turned off, over the arms."""
    many = max(4, round(scale * SWITCH_GOALS))
    rows = []
    for name, method in METHODS.items():
        for off in (None, *method.switches) if method.switches else ():
            shares = []
            for task in tasks:
                goals = reachable(task, np.random.default_rng(100), many)
                options = {} if off is None else {'method_options': {off: False}}
                answers = [
                    run(task, goals, tolerance, method=name, restarts=SWITCH_RESTARTS, **options)[0]
                    for tolerance in (TOLERANCE, COARSE)
                ]
                shares.append([np.mean(each) for each in answers])
            cells = [
                f'{100 * np.mean(each):.1f} ({100 * min(each):.0f})' for each in zip(*shares, strict=True)
            ]
            rows.append([f'`{name}`', 'all on' if off is None else f'{off} off', *cells])
    return rows
