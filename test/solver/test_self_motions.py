# SPDX-License-Identifier: Apache-2.0
"""Self-motions of arms with one spare joint: all that others find, and one configuration of each."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.traced import STEP, distances, on, separate, traced, without_turns
from test_locked_joints import ARMS, spare_arm

from ik_node import Arm, Goal, IkSolver

ONE_SPARE = ['six', 'rail', 'panda']


def rows_of(solver: IkSolver, goal: Goal, seed) -> np.ndarray:
    return without_turns(
        solver.arm, np.array([one.q for one in solver.solve_all(goal, seed, time_budget=np.inf)])
    )


@pytest.mark.parametrize('name', ONE_SPARE)
def test_every_family_is_found_once_by_its_member_nearest_to_the_seed(name):
    arm = ARMS[name]()
    solver, search = IkSolver(arm), IkSolver(arm, closed_form=False)
    assert solver.self_motions is not None
    rng = np.random.default_rng(1)
    for q, seed in zip(arm.sample(rng, 2), arm.sample(rng, 2), strict=True):
        goal = Goal(*arm.fk(q))
        found = rows_of(solver, goal, seed)
        families = separate(arm, goal, found)
        assert len(families) == len(found) > 0  # none twice
        for family, start in zip(families, found, strict=True):
            assert (
                distances(arm, start[None], seed) < distances(arm, family, seed).min() + 3.0 * STEP
            )  # traced to beyond limits
        for point in [q, *rows_of(search, goal, seed)]:
            assert any(on(arm, family, point) for family in families)


def test_families_are_not_called_complete():
    arm = spare_arm(6)
    solutions = IkSolver(arm).solve_all(Goal(*arm.fk(arm.middle)), time_budget=np.inf)
    assert not solutions.complete
    assert all(solution.self_motion for solution in solutions)


def test_a_family_between_the_values_of_joint_1_is_found():
    """A loop so small that no value of joint 1 in the grid meets it: next to the edge of the workspace."""
    arm = spare_arm(6)
    solver, rng = IkSolver(arm), np.random.default_rng(9)
    grid, small = solver.self_motions._grid, 0
    for q in arm.sample(rng, 400):
        goal = Goal(*arm.fk(q))
        family = traced(arm, goal, q) if small < 1 else None
        if family is None:
            break
        low, high = family[:, 0].min(), family[:, 0].max()
        if ((grid > low - 0.01) & (grid < high + 0.01)).any():
            continue
        small += 1
        assert any(on(arm, family, row) for row in rows_of(solver, goal, arm.middle))
    assert small


def test_a_wide_range_of_joint_1_has_the_same_families_as_one_turn():
    """Turns of joint 1 change nothing; solutions come with all their turns."""
    arm = spare_arm(6)
    wide = widened(arm, 2.0 * np.pi + 1.0)
    endless = widened(arm, np.pi)
    for q in endless.sample(np.random.default_rng(3), 3):
        goal = Goal(*arm.fk(q))
        turned = rows_of(IkSolver(wide), goal, arm.middle)
        for row in rows_of(IkSolver(endless), goal, arm.middle):
            family = traced(wide, goal, row)
            assert any(on(wide, family, other) for other in turned)


def widened(arm: Arm, half: float) -> Arm:
    """The arm with joint 1 from -half to half."""
    from dataclasses import replace

    joint = replace(arm.robot.joints['joint1'], lower=-half, upper=half)
    robot = arm.robot.with_joints({**arm.robot.joints, 'joint1': joint})
    return Arm(robot, arm.tip_link, arm.tool_axis, arm.tool_point)
