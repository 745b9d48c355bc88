# SPDX-License-Identifier: Apache-2.0
"""The position error of the closest configuration is the least possible, for every direction and seed."""

from __future__ import annotations

import numpy as np
import pytest
from cases import Case
from oracles.arms import Task, shipped_arms
from oracles.closest import answers, goals
from oracles.random_arms import random_task
from oracles.reference import Reference
from shared_files import shared_path

from ik_node import Arm, Goal, IkSolver, Status
from ik_node.solver.goal import Cause

SAME = 2e-6  # m by which answers to one goal may differ
RESTARTS = 1000  # of the reference
TASKS = [*shipped_arms(), *(random_task(seed) for seed in (0, 2, 3, 13, 20, 26, 29, 52))]


@pytest.mark.slow
@pytest.mark.parametrize('task', TASKS, ids=lambda task: task.name)
def test_eight_answers_agree_with_each_other_and_with_a_reference(task: Task) -> None:
    solver, reference = IkSolver(task.arm), Reference(task)
    seeds = task.arm.sample(np.random.default_rng(40), 4)
    for position, direction in list(goals(task, 6)):
        errors, _, told = answers(task, solver, position, direction, seeds)
        assert np.ptp(errors) <= SAME
        assert errors.max() <= reference.least_position_error(position, RESTARTS) + SAME
        np.testing.assert_allclose(told, errors, rtol=0, atol=1e-9)


SEED169 = {
    'tip_link': 'l5',
    'base_link': 'l0',
    'tool_axis': (0.652313513778656, 0.2382615070297778, 0.7195266041013649),
    'tool_point': (-0.13800421110656716, -0.13402957061621162, -0.1014826295378597),
}


def test_a_direction_does_not_spoil_the_position() -> None:
    """Yaw, three pitches, a skew axis, tight limits: once 0.1074 m with the direction, 0.0217 m without."""
    arm = Arm.from_file(shared_path('synthetic', 'seed169.urdf'), **SEED169)
    solver = IkSolver(arm)
    position = (0.48238356973394575, 0.25165394186843454, 0.5535969529205569)
    direction = (0.29365105040000744, 0.6110604212750893, 0.7351015046577462)
    for goal in (Goal(position, direction), Goal(position)):
        assert solver.solve(goal).position_error == pytest.approx(0.0217170, abs=SAME)


def test_what_a_position_is_too_far_by_does_not_depend_on_the_seed() -> None:
    """0.4354 m was said of a position that nine seeds in ten did not find the nearest configuration for."""
    path = shared_path('arms', 'vx300s.urdf')
    arm = Case('vx300s', str(path), 'vx300s/ee_gripper_link', (1, 0, 0), (0, 0, 0), 0).arm()
    solver = IkSolver(arm)
    goal = Goal((1.045563480808776, 0.20817613644163852, -0.3624162761162266))
    rng = np.random.default_rng(41)
    for seed in [None, *arm.sample(rng, 5)]:
        solution = solver.solve(goal, seed)
        assert solution.position_error == pytest.approx(0.4159257, abs=SAME)
        if solution.status is Status.UNREACHABLE:
            assert solution.reason.cause is Cause.TOO_FAR
            assert solution.reason.amount == solution.position_error
