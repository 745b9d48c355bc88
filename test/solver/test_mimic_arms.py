# SPDX-License-Identifier: Apache-2.0
"""All solutions of arms with mimic joints."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from all_solutions_checks import least_gap
from cases import shared_cases
from made_arms import make_arm, random_unit

from ik_node import Arm, Goal, IkSolver, Status

Y, Z = (0, 1, 0), (0, 0, 1)
WAYS = {  # axes and mimics: the tool stays level, turns half as far as a joint, or in twice the angle
    'level': ([Z, Y, Y, Y, Y], [(3, 1, -1.0), (4, 2, -1.0)]),
    'half': ([Z, Y, Y, Y], [(3, 2, 0.5)]),
    'double': ([Z, Y, Y, Y, Z], [(3, 1, -2.0)]),
}
FOLLOWS_FIRST = [Z, Y, Y, Y], [(1, 0, 1.0), (3, 2, 1.0)]  # no joint of its own is left for two


def mimicking(name: str, tool_axis=(1, 0, 1)) -> Arm:
    """The arm of this name of WAYS."""
    axes, mimics = WAYS[name]
    offsets = [(0.0, 0.0, 0.1), (0.03, 0.0, 0.05), (0.02, 0.0, 0.3), (0.25, 0.0, 0.0), (0.0, 0.0, 0.0)]
    count = len(axes)
    return make_arm(axes, offsets[:count], [[-2.5, 2.5]] * count, None, tool_axis, (0.1, 0, 0.03), mimics)


@pytest.mark.parametrize('name', WAYS)
def test_every_solution_of_an_arm_with_mimic_joints(name):
    arm = mimicking(name)
    solver, search = IkSolver(arm), IkSolver(arm, closed_form=False)
    for q in arm.sample(np.random.default_rng(1), 8):
        goal = Goal(*arm.fk(q))
        solutions = solver.solve_all(goal, time_budget=np.inf)
        assert solutions.complete
        assert least_gap(arm, q, solutions) < 1e-5
        others = search.solve_all(goal, time_budget=np.inf)
        assert len(solutions) == len(others)
        assert max(least_gap(arm, other.q, solutions) for other in others) < 1e-3


@pytest.mark.parametrize('name', WAYS)
def test_goals_that_only_free_joints_would_meet_are_unreachable(name):
    arm = mimicking(name)
    solver, rng = IkSolver(arm), np.random.default_rng(2)
    for q in arm.sample(rng, 8):
        position, axis = arm.fk(q)
        sideways = np.cross(axis, random_unit(rng))
        answer = solver.solve(Goal(position, sideways / np.linalg.norm(sideways)))
        assert answer.status is Status.UNREACHABLE
        assert not solver.solve_all(Goal(position, sideways / np.linalg.norm(sideways)), time_budget=np.inf)


def test_positions_decide_if_mimic_joints_keep_the_tool_level():
    arm = mimicking('level', tool_axis=Z)
    solver, search = IkSolver(arm), IkSolver(arm, closed_form=False)
    for q in arm.sample(np.random.default_rng(5), 8):
        goal = Goal(arm.fk(q)[0])
        solutions = solver.solve_all(goal, time_budget=np.inf)
        assert solutions.complete
        assert least_gap(arm, q, solutions) < 1e-5
        assert len(solutions) == len(search.solve_all(goal, time_budget=np.inf))
    inside = Goal([0.13, 0.0, 0.18])  # nearer to the shoulder than the two links fold
    assert solver.solve(inside).status is Status.UNREACHABLE


def test_an_arm_without_a_free_joint_of_each_variable_is_searched():
    axes, mimics = FOLLOWS_FIRST
    arm = make_arm(axes, [(0.1, 0.0, 0.2)] * 4, [[-2.5, 2.5]] * 4, None, (1, 0, 0), (0.1, 0, 0), mimics)
    solver = IkSolver(arm)
    q = arm.sample(np.random.default_rng(3), 1)[0]
    solutions = solver.solve_all(Goal(*arm.fk(q)), time_budget=np.inf)
    assert least_gap(arm, q, solutions) < 1e-3


def test_the_magician_is_solved_completely():
    case = next((case for case in shared_cases() if case.label.startswith('magician')), shared_cases()[0])
    arm = case.arm()
    solver = IkSolver(arm)
    for q in itertools.islice(arm.sample(np.random.default_rng(4), 20), 20):
        position, axis = arm.fk(q)
        solutions = solver.solve_all(Goal(position, axis), q, time_budget=np.inf)
        assert solutions.complete
        assert least_gap(arm, q, solutions) < 1e-5
        tilted = axis + 0.1 * np.array([1.0, 0.5, 0.0])
        assert solver.solve(Goal(position, tilted / np.linalg.norm(tilted))).status is Status.UNREACHABLE
