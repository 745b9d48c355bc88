# SPDX-License-Identifier: Apache-2.0
"""Best efforts of one arm in several sizes: the same directions, and positions in proportion."""

from __future__ import annotations

import re

import numpy as np
import pytest
from made_arms import random_unit
from oracles.arms import Task
from oracles.random_arms import general_arm, random_task

from ik_node import Arm, Goal, IkSolver

SCALES = (1e-3, 1.0, 100.0)
ARMS = [
    *map(general_arm, (0, 3)),
    *map(random_task, (2, 3, 13, 20)),
]  # 2, 20: by formula; 3, 13: with slides
GOALS = 10


def scaled(task: Task, scale: float) -> Arm:
    """Return the arm with all lengths times scale, the limits of prismatic joints too."""

    def times(found: re.Match[str]) -> str:
        return f'{found[1]}="{" ".join(repr(scale * float(value)) for value in found[2].split())}"'

    def joint(found: re.Match[str]) -> str:
        text = re.sub('(?<=<origin )(xyz)="([^"]*)"', times, found[0])
        return re.sub('(lower|upper)="([^"]*)"', times, text) if 'type="prismatic"' in text else text

    text = re.sub('<joint .*?</joint>', joint, task.xml)
    tool = {'tool_axis': task.axis, 'tool_point': scale * np.array(task.point)}
    return Arm.from_urdf(text, task.tip, base_link=task.base, **tool)


@pytest.mark.parametrize('task', ARMS, ids=lambda task: task.name)
def test_best_efforts_do_not_depend_on_the_size_of_the_arm(task):
    arms = [scaled(task, scale) for scale in SCALES]
    solvers = [
        IkSolver(arm, position_tolerance=1e-6 * scale) for arm, scale in zip(arms, SCALES, strict=True)
    ]
    rng, arm = np.random.default_rng(5), task.arm
    for number in range(GOALS):
        q = arm.sample(rng, 1)[0]
        position = arm.fk(q)[0]
        if number % 2:
            position = arm.joints[0, 3:6] + arm.reach * rng.uniform(0.2, 1.3) * random_unit(rng)
        direction = random_unit(rng)
        found = [
            solver.solve(Goal(scale * position, direction))
            for solver, scale in zip(solvers, SCALES, strict=True)
        ]
        assert len({one.status for one in found}) == 1
        shares = [one.position_error / scale for one, scale in zip(found, SCALES, strict=True)]
        assert np.ptp(shares) < 2e-6 * arm.reach
        assert np.ptp([one.direction_error for one in found]) < 1e-4
