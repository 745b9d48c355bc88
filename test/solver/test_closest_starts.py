# SPDX-License-Identifier: Apache-2.0
"""Where searches for the closest configuration start, and what they find on arms without a formula."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.arms import Task, made_up_arms, shipped_arms
from oracles.closest import best_efforts, goals
from oracles.random_arms import general_arm
from oracles.reference import Reference
from oracles.special_arms import made

from ik_node import Goal, IkSolver, kernels

RESTARTS = 1000  # of the reference
POSITION, DIRECTION = 1e-6, 1e-4  # m and rad by which answers may be worse
NAMES = ('prismatic_arm', 'ball_joint_arm')
TASKS = [
    *made_up_arms(),
    *(task for task in shipped_arms() if task.name in NAMES),
    *map(general_arm, (3, 4)),
    made('slide1_0', 0, slides=(0,)),
]


@pytest.mark.parametrize('weight', [0.0, 0.1])
def test_starts_are_the_nearest_of_each_cluster_nearest_first(weight: float) -> None:
    rng = np.random.default_rng(50)
    known, ends = rng.normal(size=(8, 60)), np.array([1, 20, 21, 60])
    goal = Goal(rng.normal(size=3), (0.6, 0.0, 0.8)).packed
    ranked = np.empty(4, dtype=np.int64)
    kernels.rank_starts(known, ends, goal, weight, np.empty(60), ranked)
    values = ((known[2:5].T - goal[:3]) ** 2).sum(axis=1)
    values += weight**2 * ((known[5:8].T - goal[3:6]) ** 2).sum(axis=1)
    nearest = [part[values[part].argmin()] for part in np.split(np.arange(60), ends[:-1])]
    assert ranked.tolist() == sorted(nearest, key=values.__getitem__)


@pytest.mark.parametrize('task', TASKS, ids=lambda task: task.name)
def test_no_reference_descent_does_better_on_an_arm_without_formula(task: Task) -> None:
    solver, reference, tried = IkSolver(task.arm), Reference(task), 0
    for position, direction in goals(task):
        answer = solver.solve(Goal(position, direction))
        if answer.solved:
            continue
        *_, q = reference.best_effort(position, direction, RESTARTS)
        for least, angle in best_efforts(reference, position, direction, q):
            assert answer.position_error <= least + POSITION
            if answer.position_error > least - 1e-12:  # one that is nearer may be turned more
                assert answer.direction_error <= angle + DIRECTION
        tried += 1
        if tried == 6:
            break


def test_one_start_misses_what_many_find() -> None:
    """A direction error of 0.380 rad from the seed and the best cluster alone."""
    task = general_arm(29)
    position = (-0.05379178460958453, -0.05628700378443499, 0.3181254560464374)
    direction = (-0.6243349842015175, -0.780921455579804, 0.019170490792130793)
    answer = IkSolver(task.arm).solve(Goal(position, direction))
    assert answer.position_error < POSITION
    assert answer.direction_error == pytest.approx(0.3199045, abs=DIRECTION)


def test_the_corner_where_all_joints_are_at_limits_is_found() -> None:
    """Nearly all descents end 1 cm farther from the goal."""
    task = made('parallel123slide2_0', 0, parallel=(0, 1, 2), slides=(1,))
    position = (-1.5149431508171571, -0.3535095003609716, -0.41071592244805555)
    direction = (-0.3309820511552365, 0.5424132669184948, 0.7721649627403967)
    answer = IkSolver(task.arm).solve(Goal(position, direction))
    assert answer.position_error == pytest.approx(0.64103069, abs=POSITION)
