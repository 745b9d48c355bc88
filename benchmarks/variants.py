# SPDX-License-Identifier: Apache-2.0
"""make compare, second part: the schedules of the random restarts, and the switches of methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracles.arms import TOLERANCE, Task

from benchmarks.compare_answers import Answers, measure
from benchmarks.goals import Goals, at_limits, reachable, tied
from benchmarks.tables import microseconds
from ik_node import IkSolver
from ik_node.solver.methods import METHODS
from ik_node.solver.restarts import SCHEDULES

SCHEDULE_GOALS = {'reachable': (reachable, 2000), 'at limits': (at_limits, 500), 'any direction': (tied, 50)}
SWITCH_GOALS, SWITCH_RESTARTS = 60, 100
COARSE = 1e-3  # m and rad


def run(task: Task, goals: Goals, tolerance: float, **options: Any) -> Answers:
    """Solve goals one by one, without the closed form."""
    solver = IkSolver(
        task.arm,
        closed_form=False,
        position_tolerance=tolerance,
        direction_tolerance=tolerance,
        **options,
    )
    return measure(task, solver, goals)


def schedule_rows(tasks: list[Task], scale: float) -> list[list[str]]:
    """One row per kind of goal and schedule, over the arms without a closed form."""
    general = [task for task in tasks if IkSolver(task.arm).closed_form is None]
    rows = []
    for number, (kind, (make, count)) in enumerate(SCHEDULE_GOALS.items()):
        many = max(4, round(scale * count))
        given = [(task, make(task, np.random.default_rng(200 + number), many)) for task in general]
        for schedule in SCHEDULES if general else ():
            answers = [run(task, goals, TOLERANCE, schedule=schedule) for task, goals in given]
            solved = np.concatenate([each.solved(TOLERANCE) for each in answers])
            restarts = np.concatenate([each.restarts for each in answers])
            times = microseconds(np.concatenate([each.seconds for each in answers]))
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
                options: dict[str, Any] = {} if off is None else {'method_options': {off: False}}
                options |= {'method': name, 'restarts': SWITCH_RESTARTS}
                both = (TOLERANCE, COARSE)
                shares.append([run(task, goals, each, **options).solved(each).mean() for each in both])
            cells = [f'{100 * np.mean(each):.1f} ({100 * min(each):.0f})' for each in zip(*shares, strict=True)]
            rows.append([f'`{name}`', 'all on' if off is None else f'{off} off', *cells])
    return rows
