# SPDX-License-Identifier: Apache-2.0
"""Ball joints in the solver: cones are kept, goals inside are found, and nothing locks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from made_arms import random_unit
from oracles.balls import (
    ORDERS,
    PLACES,
    ball_arm,
    by_method,
    from_lock,
    inside,
    reachable,
    shipped,
    solver_of,
    through_rest,
)
from scipy.spatial.transform import Rotation

from ik_node import Arm, Goal, IkSolver, InputError, Status, Tool, Tree, TreeSolver, kernels
from ik_node.kernels.chain import keep_in_balls, swing_angle
from ik_node.kernels.methods.ccd import aim_ball
from ik_node.solver.goal import Cause

KINDS = list(itertools.product(PLACES, ORDERS))


@pytest.fixture(scope='module')
def parts():
    """Arm, solver and judge of the shipped arm."""
    return solver_of(shipped())


def ball_limits(order=0.0, hand=1.0, swing=9.0, twist=(-math.inf, math.inf), span=9.0):
    """Limits of a ball alone."""
    limits = np.zeros((5, 3))
    limits[0], limits[1] = -span, span
    limits[2, 2], limits[3, :2], limits[4, :2] = order, (hand, swing), twist
    return limits


def rotation(order, hand, q):
    return Rotation.from_euler('XYX' if order == 2.0 else 'XYZ', [q[0], q[1], hand * q[2]])


@pytest.mark.slow
@pytest.mark.parametrize('order', [0.0, 2.0])
@pytest.mark.parametrize('hand', [-1.0, 1.0])
def test_a_turned_ball_has_the_rotation_asked_for(order, hand):
    """Also where its joints lock, and next to it."""
    rng, limits = np.random.default_rng(1), ball_limits(order, hand)
    lock = 0.0 if order == 2.0 else math.pi / 2
    for k in range(300):
        q = rng.uniform(-1.5, 1.5, 3)
        if k % 2:
            q[1] = lock + rng.choice([0.0, 1e-9, 1e-4])
        turn = Rotation.from_rotvec(rng.normal(size=3) * rng.choice([2.0, 1e-2, 1e-6]))
        x, y, z, w = turn.as_quat()
        out = q.copy()
        kernels.turn_ball(q, limits, 2, w, x, y, z, True, out)
        wanted = turn * rotation(order, hand, q)
        assert (wanted * rotation(order, hand, out).inv()).magnitude() < 3e-7


def test_a_ball_turned_straight_through_its_lock_keeps_its_first_joint():
    limits = ball_limits(2.0)
    q, out = np.array([0.4, 1e-10, 0.2]), np.empty(3)
    axis = rotation(2.0, 1.0, [0.4, 0.0, 0.0]).apply([0.0, 1.0, 0.0])  # of the middle joint
    x, y, z, w = Rotation.from_rotvec(-0.01 * axis).as_quat()
    kernels.turn_ball(q, limits, 2, w, x, y, z, True, out)
    np.testing.assert_allclose(out, [0.4, -0.01, 0.2], atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(('low', 'swing'), [(-9.0, 1.2), (-9.0, 0.01), (-9.0, 1.56), (0.3, 1.0)])
def test_what_is_outside_a_cone_is_put_on_its_edge(low, swing):
    """low: limits need not contain the rest axis."""
    rng, limits = np.random.default_rng(2), ball_limits(swing=swing, span=swing)
    limits[0] = max(low, -swing)
    for _ in range(500):
        q = rng.uniform(limits[0], limits[1])
        before = q.copy()
        keep_in_balls(q, limits)
        assert swing_angle(q[0], q[1]) <= swing
        assert (limits[0] <= q).all()
        if swing_angle(*before[:2]) <= swing:
            np.testing.assert_array_equal(q, before)
        else:
            assert swing_angle(q[0], q[1]) >= swing * (1.0 - 1e-9)
        assert q[2] == before[2]


def test_the_twist_of_proper_angles_is_kept_within_the_limits_of_the_joints():
    rng, limits = np.random.default_rng(3), ball_limits(2.0, -1.0, twist=(-0.5, 1.0), span=2.0)
    for _ in range(500):
        q = rng.uniform(-2.0, 2.0, 3)
        keep_in_balls(q, limits)
        assert -0.5 <= q[0] - q[2] <= 1.0
        assert np.abs(q).max() <= 2.0


@pytest.mark.slow
@pytest.mark.parametrize('weights', [(1.0, 0.0), (0.0, 1.0), (1.0, 0.3)])
def test_ccd_takes_the_one_rotation_that_is_best(parts, weights):
    arm, _, _ = parts
    rng, point, axis = np.random.default_rng(4), *weights
    for _ in range(100):
        q, goal = rng.uniform(-1.0, 1.0, arm.n), np.full(9, np.nan)
        goal[:3], goal[3:6] = arm.fk(arm.sample(rng, 1)[0])
        frames = arm.frames(q)
        centre, tool = arm.joints[0, 3:6], frames[-3:-1].copy()
        aim_ball(q, arm.limits, 2, frames, goal, 3, point, axis, False)
        reached = np.array(arm.fk(q))
        want, have = np.array([goal[:3] - centre, goal[3:6]]), np.array([tool[0] - centre, tool[1]])
        if point and axis:
            best, _ = Rotation.align_vectors(want, have, weights=weights)
            np.testing.assert_allclose(reached[0] - centre, best.apply(have[0]), atol=1e-6)
            np.testing.assert_allclose(reached[1], best.apply(have[1]), atol=1e-6)
        elif point:
            there = reached[0] - centre
            assert there @ want[0] == pytest.approx(np.linalg.norm(there) * np.linalg.norm(want[0]))
        else:
            np.testing.assert_allclose(reached[1], want[1], atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(('place', 'order'), KINDS)
def test_goals_inside_the_cone_are_solved_and_the_cone_is_kept(place, order):
    solved, batch, excess = reachable(ball_arm(place, order, 0), 60)
    assert (solved, batch) == (1.0, 1.0)
    assert excess <= 1e-15


@pytest.mark.slow
def test_goals_of_the_shipped_arm_are_solved():
    solved, batch, excess = reachable(shipped(), 300)
    assert (solved, batch) == (1.0, 1.0)
    assert excess <= 1e-15


@pytest.mark.slow
@pytest.mark.parametrize('cone', [True, False])
@pytest.mark.parametrize(('place', 'order'), KINDS)
def test_tracks_pass_zero_swing_and_locked_joints_without_a_jump(place, order, cone):
    solved, ratio, excess = through_rest(ball_arm(place, order, 1, cone), 60)
    assert solved == 59
    assert ratio <= 1.05
    assert excess <= 1e-15


@pytest.mark.slow
def test_a_ball_leaves_its_lock_more_often_than_three_joints():
    shares = [from_lock(ball_arm('wrist', order, 2), 300) for order in ORDERS]
    assert all(with_ball > without + 0.03 for with_ball, without in shares), shares


@pytest.mark.slow
@pytest.mark.parametrize('method', ['dls', 'transpose', 'ccd', 'fabrik'])
def test_other_methods_keep_the_cone(method):
    solved, excess = by_method(shipped(), method, 20)
    assert solved >= 0.9
    assert excess <= 1e-15


@pytest.mark.slow
def test_every_solution_is_inside_and_none_inside_is_missing(parts):
    """As many as an arm without a cone has inside."""
    arm, solver, judge = parts
    joints = IkSolver(Arm.from_urdf(shipped().text.replace('swing="1.2"', '')), compile='wait')
    for q in inside(arm, judge, np.random.default_rng(5), 4):
        goal = Goal(*arm.fk(q))
        found = np.array([solution.q for solution in solver.solve_all(goal, time_budget=np.inf)])
        assert max(map(judge.excess, found)) <= 0.0
        others = np.array([solution.q for solution in joints.solve_all(goal, time_budget=np.inf)])
        wanted = [row for row in others if judge.excess(row) <= 0.0]
        assert len(found) == len(wanted)
        for row in wanted:
            assert np.abs(found - row).max(axis=1).min() < 1e-5


@pytest.mark.slow
def test_positions_alone_have_few_families_of_solutions(parts):
    """A self-motion that meets the edge of the cone is followed along it, to what is nearest to the seed."""
    arm, solver, judge = parts
    for q in inside(arm, judge, np.random.default_rng(5), 2):
        found = solver.solve_all(Goal(arm.fk(q)[0]), time_budget=np.inf)
        assert 1 <= len(found) <= 12
        assert max(judge.excess(solution.q) for solution in found) <= 0.0


@pytest.mark.slow
def test_the_reason_names_the_ball_that_is_in_the_way(parts):
    """A goal that the arm meets only outside its cone is not called impossible: nothing proves that."""
    _, solver, judge = parts
    wide = Arm.from_urdf(shipped().text.replace('swing="1.2"', ''))
    rng, named = np.random.default_rng(6), 0
    for q in wide.sample(rng, 40):
        if judge.excess(q) < 0.1:
            continue
        solution = solver.solve(Goal(*wide.fk(q)))
        if solution.solved:
            continue
        assert solution.status is Status.NOT_FOUND
        assert judge.excess(solution.q) <= 0.0
        assert solution.reason is not None
        if solution.reason.cause is Cause.BALL_LIMIT:
            named += 1
            assert 'ball_yaw, ball_pitch, ball_roll' in str(solution.reason)
            assert solution.reason.amount > 0.0
    assert named >= 3


@pytest.mark.slow
def test_other_calls_keep_the_cone(parts):
    """A seed outside of it, the nearest place, a compromise."""
    arm, solver, judge = parts
    goal = Goal(*arm.fk(np.array([0.2, 0.5, 0.3, 0.8, 0.1])))
    solution = solver.solve(goal, np.array([0.0, 1.2, 1.2, 0.5, 0.5]))
    assert solution.solved
    assert judge.excess(solution.q) <= 0.0
    weighing, rng = IkSolver(arm, direction_weight=0.1, compile='wait'), np.random.default_rng(8)
    for q in inside(arm, judge, rng, 10):
        goal = Goal(arm.fk(q)[0], random_unit(rng))
        for found in (solver.solve_nearby(goal, q), solver.solve_nearby(goal, q, np.full(arm.n, 0.05))):
            assert judge.excess(found.q) <= 0.0
        assert judge.excess(weighing.solve(goal).q) <= 1e-15


@pytest.mark.slow
def test_paths_stay_inside(parts):
    arm, solver, judge = parts
    joints = np.linspace([0.0, -0.7, -0.7, 0.8, 0.1], [0.4, 0.7, 0.7, 1.2, 0.4], 12)
    found = solver.solve_path(*map(np.array, zip(*map(arm.fk, joints), strict=True)))
    assert found.solved.all()
    assert max(map(judge.excess, found.q)) <= 0.0


def test_tools_that_share_joints_reject_the_limits_of_a_ball():
    text = shipped().text
    tools = {'one': Tool('tool0'), 'other': Tool('forearm')}
    with pytest.raises(InputError, match='ball joint of tool one'):
        TreeSolver(Tree.from_urdf(text, tools))
    TreeSolver(Tree.from_urdf(text, {'one': Tool('tool0')}))
