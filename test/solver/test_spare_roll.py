# SPDX-License-Identifier: Apache-2.0
"""Goal.lateral: served by the spare roll where there is one, and by nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from cases import arm_of
from made_arms import random_unit

from ik_node import Goal, IkSolver
from ik_node.solver.redundancy.spare_roll import spare_roll

ROLLING = ['so101_like', 'xarm5_like', 'wx250', 'hebi_a2085_05']
OTHERS = ['seed_arm', 'moveo_like', 'ball_joint_arm']


def angle(a, b):
    return 2.0 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))


def lateral_at(arm, q):
    return arm.frames(q)[-1]


@pytest.mark.parametrize('name', ROLLING)
def test_the_roll_turns_the_jaw_as_the_goal_says(name):
    arm = arm_of(name)
    solver, rng = IkSolver(arm), np.random.default_rng(40)
    for q, seed in zip(arm.sample(rng, 20), arm.sample(rng, 20), strict=True):
        goal = Goal(*arm.fk(q), lateral=lateral_at(arm, q))
        solution = solver.solve(goal, seed)
        assert solution.solved
        assert ((solution.q >= arm.lower) & (solution.q <= arm.upper)).all()
        assert solution.lateral_error == pytest.approx(
            angle(lateral_at(arm, solution.q), goal.lateral), abs=1e-12
        )
        plain = solver.solve(Goal(goal.position, goal.direction), seed)
        np.testing.assert_allclose(solution.q[:-1], plain.q[:-1], atol=1e-9)
        if np.abs(solution.q[:-1] - q[:-1]).max() < 1e-6:  # the branch that made the goal can do it
            assert solution.lateral_error < 1e-5


@pytest.mark.parametrize('name', ROLLING)
def test_no_other_roll_within_the_limits_is_nearer_and_the_errors_stay(name):
    arm = arm_of(name)
    solver, rng = IkSolver(arm), np.random.default_rng(41)
    low, high = max(arm.lower[-1], -np.pi), min(arm.upper[-1], np.pi)
    for q in arm.sample(rng, 10):
        position, direction = arm.fk(q)[0], random_unit(rng)
        lateral = random_unit(rng)
        solution = solver.solve(Goal(position, direction, lateral))
        plain = solver.solve(Goal(position, direction))
        assert solution.status is plain.status
        assert solution.position_error == pytest.approx(plain.position_error, abs=1e-7)
        assert solution.direction_error == pytest.approx(plain.direction_error, abs=1e-6)
        for roll in np.linspace(low, high, 200):
            other = np.array([*solution.q[:-1], roll])
            assert solution.lateral_error <= angle(lateral_at(arm, other), lateral) + 1e-9


@pytest.mark.parametrize('name', OTHERS)
def test_without_a_spare_roll_lateral_changes_nothing_but_is_told(name):
    arm = arm_of(name)
    assert spare_roll(arm) == -1
    solver, rng = IkSolver(arm), np.random.default_rng(42)
    for q in arm.sample(rng, 5):
        goal = Goal(*arm.fk(q), lateral=random_unit(rng))
        solution, plain = solver.solve(goal), solver.solve(Goal(goal.position, goal.direction))
        np.testing.assert_allclose(solution.q, plain.q, atol=1e-9)
        assert plain.lateral_error is None
        assert solution.lateral_error == pytest.approx(angle(lateral_at(arm, solution.q), goal.lateral))
