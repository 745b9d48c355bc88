# SPDX-License-Identifier: Apache-2.0
"""Goals called unreachable, and their reasons: the amount of each is checked."""

from __future__ import annotations

import numpy as np
import pytest
from cases import few_cases, shipped_cases
from made_arms import make_arm, random_unit

from ik_node import Arm, Goal, IkSolver, Status, kernels
from ik_node.solver.goal import Cause
from ik_node.solver.workspace_bounds import radial_bounds

SHIPPED = {case.label: case for case in shipped_cases()}
CASES = few_cases()
FORMULA = ['seed_arm', 'so101_like', 'xarm5_like', 'moveo_like']


def planar_arm(*lengths: float, limit: float = 3.0, slide: tuple[float, float] | None = None) -> Arm:
    """Parallel hinges about z, then perhaps a slide along x, the tool along z."""
    n = len(lengths)
    offsets = [(0, 0, 0), *((length, 0, 0) for length in lengths[:-1])]
    axes, limits, kinds = [(0, 0, 1)] * n, [(-limit, limit)] * n, ['revolute'] * n
    if slide is not None:
        axes, offsets = [*axes, (1, 0, 0)], [*offsets, (0, 0, 0)]
        limits, kinds = [*limits, slide], [*kinds, 'prismatic']
    return make_arm(axes, offsets, limits, kinds, tool_point=(lengths[-1], 0, 0))


def widened(arm: Arm, by: float) -> Arm:
    """The same arm with by [rad] more at every limit."""
    wider = Arm.__new__(Arm)
    wider.__dict__.update(arm.__dict__)
    wider.limits = np.array([arm.lower - by, arm.upper + by])
    wider.limits.flags.writeable = False
    wider.lower, wider.upper = wider.limits
    for name in ('_finite', 'middle'):
        wider.__dict__.pop(name, None)
    return wider


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.label)
def test_every_configuration_is_inside_the_bounds_of_the_reach(case):
    arm = case.arm()
    shells = radial_bounds(arm)
    for q in arm.sample(np.random.default_rng(30), 300):
        assert kernels.out_of_reach(shells, Goal(arm.fk(q)[0]).packed, 0.0) == 0


def test_the_bounds_of_a_planar_arm_are_its_reach():
    planar, sliding = planar_arm(0.5, 0.2, 0.1), planar_arm(0.5, slide=(-0.1, 0.3))
    for arm, bounds in ((planar, (0.2, 0.8)), (sliding, (0.4, 0.8))):
        shells = radial_bounds(arm)
        assert len(shells) == 2
        for shell in shells:
            assert shell[3:] == pytest.approx(bounds, abs=1e-8)


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.label)
def test_far_goals_are_rejected_at_once_as_too_far(case):
    arm = case.arm()
    solver, rng = IkSolver(arm), np.random.default_rng(31)
    for _ in range(3):
        position = arm.joints[0, 3:6] + rng.uniform(1.01, 3) * arm.reach * random_unit(rng)
        for goal in (Goal(position, random_unit(rng)), Goal(position)):
            solution = solver.solve(goal)
            assert solution.status is Status.UNREACHABLE
            assert solution.restarts == 0
            assert solution.reason.cause is Cause.TOO_FAR
            assert solution.reason.amount == solution.position_error > 0.0
            assert f'{solution.position_error:.4g} m beyond the workspace' in solution.reason.sentence
            assert solution.reason.joint is None


def test_a_goal_nearer_than_an_arm_can_fold_is_too_near():
    arm = planar_arm(0.5, 0.2, 0.1)
    solution = IkSolver(arm).solve(Goal((0.05, 0.0, 0.0)))
    assert solution.status is Status.UNREACHABLE
    assert solution.restarts == 0
    assert solution.reason.cause is Cause.TOO_NEAR
    assert solution.reason.amount == pytest.approx(solution.position_error)
    assert 'm inside the inner boundary' in solution.reason.sentence


@pytest.mark.parametrize('name', ['so101_like', 'xarm5_like'])
def test_a_direction_that_the_position_ties_is_named_with_the_angle_left(name):
    arm = SHIPPED[name].arm()
    solver, rng = IkSolver(arm), np.random.default_rng(32)
    blocks = []
    for q in arm.sample(rng, 30):
        solution = solver.solve(Goal(arm.fk(q)[0], random_unit(rng)))
        assert solution.status is Status.UNREACHABLE
        assert solution.restarts == 0
        blocks.append(solution.reason.cause)
        if blocks[-1] is Cause.DIRECTION_CONSTRAINED:
            assert solution.position_error <= 1e-6
            assert solution.reason.amount == solution.direction_error
            assert f'{solution.direction_error:.4g} rad' in solution.reason.sentence
            assert '4 effective DoF' in solution.reason.sentence
    assert blocks.count(Cause.DIRECTION_CONSTRAINED) > 10


@pytest.mark.parametrize('name', FORMULA)
def test_a_joint_that_is_said_to_need_more_makes_the_goal_possible_with_it(name):
    arm = SHIPPED[name].arm()
    narrow = widened(arm, -0.7 * float((arm.upper - arm.lower).min()) / 2)
    solver, rng = IkSolver(narrow), np.random.default_rng(33)
    named = 0
    for q in arm.sample(rng, 60):
        goal = Goal(*arm.fk(q))
        solution = solver.solve(goal)
        if solution.status is not Status.UNREACHABLE or solution.reason.cause is not Cause.JOINT_LIMIT:
            continue
        named += 1
        assert solution.reason.joint in arm.joint_names
        assert f'joint "{solution.reason.joint}" would exceed its limit' in solution.reason.sentence
        assert solution.restarts == 0
        if named <= 3:
            excess = solution.reason.amount
            assert IkSolver(widened(narrow, excess + 1e-6)).solve(goal).solved
            assert not IkSolver(widened(narrow, 0.9 * excess)).solve(goal).solved
    assert named > 10


@pytest.mark.parametrize('name', FORMULA)
def test_no_goal_called_unreachable_is_met_by_another_search(name):
    arm = SHIPPED[name].arm()
    solver, rng = IkSolver(arm), np.random.default_rng(34)
    other = IkSolver(arm, method='dls', restarts=150)
    rejected = 0
    for q in arm.sample(rng, 400):
        position, direction = arm.fk(q)
        position = position + rng.choice([0.0, 0.2]) * arm.reach * random_unit(rng)
        direction = direction + rng.choice([1e-3, 0.1, 1.0]) * rng.normal(size=3)
        goal = Goal(position, direction / np.linalg.norm(direction))
        solution = solver.solve(goal)
        if solution.status is Status.UNREACHABLE and solution.position_error < 1e-2:
            rejected += 1
            assert not other.solve(goal).solved
        if rejected == 12:
            return
    raise AssertionError(f'only {rejected} of 400 goals were rejected')


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.label)
def test_goals_at_the_edge_of_what_is_reachable_are_not_rejected(case):
    """Joints at limits, straight arms and poses where solutions meet."""
    arm = case.arm()
    solver, rng = IkSolver(arm), np.random.default_rng(35)
    lower, upper = np.maximum(arm.lower, -3.0), np.minimum(arm.upper, 3.0)
    zero = np.clip(np.zeros(arm.n), arm.lower, arm.upper)
    for _ in range(40):
        choice = rng.integers(0, 4, arm.n)
        q = np.choose(choice, [lower, upper, zero, arm.sample(rng, 1)[0]])
        position, direction = arm.fk(q)
        assert solver.solve(Goal(position, direction)).status is not Status.UNREACHABLE
        assert solver.solve(Goal(position)).status is not Status.UNREACHABLE
