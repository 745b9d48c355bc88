# SPDX-License-Identifier: Apache-2.0
"""Goals along paths, planned as a whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from cases import TOLERANCE, arm_of, new_solver
from hypothesis import given, settings
from hypothesis import strategies as st
from made_arms import limits_of, parallel_arm, plain_arm, smooth_path, tool_path, wrist_arm
from scipy.spatial.transform import Rotation

from ik_node import Arm, Goal, IkSolver


def least_largest_move(solver: IkSolver, positions, directions) -> float:
    """Brute force: the best that any choice of one solution per point can do, whole turns included."""
    arm = solver.arm
    cost = None
    for position, direction in zip(positions, directions, strict=True):
        rows = np.array([s.q for s in solver.solve_all(Goal(position, direction), time_budget=np.inf)])
        if cost is None:
            cost = np.zeros(len(rows))
        else:
            gaps = rows[None] - last[:, None]  # noqa: F821
            gaps -= np.where(arm.continuous, 2 * np.pi, 0) * np.round(gaps / (2 * np.pi))
            cost = np.maximum(cost[:, None], np.abs(gaps).max(axis=2)).min(axis=0)
        last = rows  # noqa: F841
    return float(cost.min())


def assert_good_path(solver: IkSolver, positions, directions, path) -> None:
    """What holds for every answer of solve_path."""
    arm = solver.arm
    assert path.q.shape == (len(positions), arm.n)
    moves = np.abs(np.diff(path.q[path.solved], axis=0)).max(axis=1, initial=0.0)
    assert path.largest_move == moves.max(initial=0.0)
    assert all(0 < k < len(positions) and path.solved[k] for k in path.breaks)
    for k in np.flatnonzero(path.solved):
        goal = Goal(positions[k], None if directions is None else directions[k])
        assert max(solver.errors(goal, path.q[k])) <= TOLERANCE
        assert ((path.q[k] >= arm.lower) & (path.q[k] <= arm.upper)).all()


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from(['parallel', 'roll', 'wrist']))
@settings(max_examples=30)
def test_paths_are_as_good_as_any_choice_of_solutions(seed, family):
    """A handful of far-apart goals on made-up arms, some with room for whole turns, some continuous."""
    arm = wrist_arm(seed) if family == 'wrist' else parallel_arm(seed, roll=family == 'roll')
    solver = new_solver(arm)
    rng = np.random.default_rng(seed)
    walk = arm.sample(rng, 1) + np.cumsum(rng.normal(size=(7, 5)), axis=0) * rng.uniform(0.05, 1.0)
    positions, directions = tool_path(arm, np.clip(walk, arm.lower, arm.upper))
    path = solver.solve_path(positions, directions)
    assert path.solved.all()
    assert_good_path(solver, positions, directions, path)
    assert path.largest_move <= least_largest_move(solver, positions, directions) + 1e-5


@pytest.mark.slow
@pytest.mark.parametrize('name', ['so101_like', 'moveo_like', 'prismatic_arm', 'ball_joint_arm'])
def test_a_smooth_path_has_no_break_and_no_larger_move(name):
    arm = arm_of(name)
    solver = new_solver(arm)
    walk = smooth_path(arm, 5, 100)
    walk[:, arm.idle] = arm.middle[arm.idle]
    positions, directions = tool_path(arm, walk)
    path = solver.solve_path(positions, directions)
    assert path.solved.all()
    assert_good_path(solver, positions, directions, path)
    assert path.breaks == ()
    assert path.largest_move <= np.abs(np.diff(walk, axis=0)).max() + 1e-5


def around_the_base(arm: Arm, start, angle: float, count: int):
    """Goals of the configuration start carried about axis 1 by up to angle [rad]."""
    w, c = arm.joints[0, :3], arm.joints[0, 3:6]
    position, direction = arm.fk(start)
    turns = Rotation.from_rotvec(np.linspace(0, angle, count)[:, None] * w).as_matrix()
    return c + turns @ (position - c), turns @ direction


@pytest.mark.parametrize('offset', [0.0, 3e-4])
def test_a_path_straight_through_a_singularity_has_no_break(offset):
    """With joint 5 straight, joints 1 and 4 of this arm do the same to the tool: branches cross there."""
    arm = arm_of('moveo_like')
    crossing = np.array([0.3, 0.5, 0.8, 0.4, 0.0])
    line = crossing + (np.linspace(-0.5, 0.5, 401)[:, None] + offset) * np.array([1.5, -0.3, -0.3, -0.8, 0.8])
    found = new_solver(arm).solve_path(*tool_path(arm, line), line[0])
    assert found.solved.all()
    assert found.breaks == ()
    assert found.largest_move <= 1.5 * np.abs(np.diff(line, axis=0)).max()


def test_limits_of_a_turn_are_no_way_round():
    """At +180 deg the arm cannot go on at -180 deg: the branch that reaches over its back is the one."""
    arm = plain_arm(limits_of(np.pi))
    solver = new_solver(arm)
    for start in plain_arm(limits_of(2.0)).sample(np.random.default_rng(0), 8):
        start[0] = np.pi - 0.1
        positions, directions = around_the_base(arm, start, 0.3, 31)
        path = solver.solve_path(positions, directions)
        assert path.solved.all()
        best = least_largest_move(solver, positions, directions)
        assert path.largest_move <= best + 1e-9
        assert (path.breaks == ()) == (best < 0.1)


@pytest.mark.parametrize('turns', [1, 3])
def test_continuous_joints_go_round_and_round(turns):
    kinds = ['continuous', *['revolute'] * 4]
    arm = plain_arm(limits_of(), kinds)
    start = np.array([0.5, 0.4, 0.8, 0.3, 0.2])
    count = turns * 120 + 1
    positions, directions = around_the_base(arm, start, turns * 2 * np.pi, count)
    for seed in (start, np.add(start, [4 * np.pi, 0, 0, 0, 0])):
        path = new_solver(arm).solve_path(positions, directions, seed)
        assert path.breaks == ()
        assert path.largest_move == pytest.approx(2 * np.pi / 120, abs=1e-6)
        assert path.q[-1, 0] - path.q[0, 0] == pytest.approx(turns * 2 * np.pi, abs=1e-6)
        assert abs(path.q[0, 0] - seed[0]) <= np.pi + 1e-6


def test_room_for_turns_is_used_from_the_right_end():
    """One and a half turns with limits of +-360 deg: possible only if joint 1 starts far enough back."""
    limits = limits_of()
    limits[0] = (-2 * np.pi, 2 * np.pi)
    arm = plain_arm(limits)
    start = np.array([0.5, 0.4, 0.8, 0.3, 0.2])
    positions, directions = around_the_base(arm, start, 3 * np.pi, 181)
    path = new_solver(arm).solve_path(positions, directions, start)
    assert path.breaks == ()
    assert path.largest_move == pytest.approx(np.pi / 60, abs=1e-6)
    assert_good_path(new_solver(arm), positions, directions, path)
    positions, directions = around_the_base(arm, start, 6 * np.pi, 361)
    path = new_solver(arm).solve_path(positions, directions, start)
    assert path.solved.all()
    assert path.breaks != ()  # three turns do not fit into two


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'moveo_like'])
def test_who_stands_at_the_first_point_stays_there(name):
    """A turn of the base alone: every branch serves it equally but for rounding."""
    arm = arm_of(name)
    turn = np.outer(np.linspace(0.0, 0.4, 40), np.eye(arm.n)[0])
    for q in arm.sample(np.random.default_rng(8), 12):
        walk = np.where(q[0] < arm.middle[0], q + turn, q - turn)
        path = new_solver(arm).solve_path(*tool_path(arm, walk), walk[0])
        np.testing.assert_allclose(path.q[0], walk[0], atol=1e-5)


def test_breaks_are_where_no_branch_goes_on():
    """Two smooth stretches on either side of a limit with a far-away start of the second."""
    limits = limits_of()
    limits[0] = (-1.0, 1.0)
    arm, wide = plain_arm(limits), plain_arm(limits_of())
    start = np.array([0.0, 0.4, 0.8, 0.3, 0.2])
    positions, directions = around_the_base(wide, start, 2.8, 141)
    path = new_solver(arm).solve_path(positions, directions)
    inside = np.linspace(0, 2.8, 141) <= 1.0
    assert path.solved[inside].all()
    assert_good_path(new_solver(arm), positions, directions, path)
    k = int(inside.sum())
    changes = [k for k in path.breaks if path.solved[k - 1]]
    for k in changes:  # really none: no solution here is near the last one, or its own branch ends
        rows = np.array([s.q for s in new_solver(arm).solve_all(Goal(positions[k], directions[k]), time_budget=np.inf)])
        assert np.abs(rows - path.q[k - 1]).max(axis=1).min() > 0.05
    joined = [k for k in range(1, 141) if path.solved[k - 1 : k + 1].all() and k not in path.breaks]
    assert np.abs(np.diff(path.q, axis=0)[np.array(joined) - 1]).max() < 0.2


@pytest.mark.parametrize('name', ['seed_arm', 'prismatic_arm'])
def test_an_unreachable_stretch_is_left_out_and_reported(name):
    arm = arm_of(name)
    walk = smooth_path(arm, 6, 60)
    positions, directions = tool_path(arm, walk)
    positions[20:30] += 5 * arm.reach
    seed = arm.upper
    path = new_solver(arm, restarts=50).solve_path(positions, directions, seed)
    expected = np.ones(60, dtype=bool)
    expected[20:30] = False
    np.testing.assert_array_equal(path.solved, expected)
    assert 30 in path.breaks
    np.testing.assert_array_equal(path.q[20:30], np.repeat(seed[None], 10, axis=0))
    assert_good_path(new_solver(arm), positions, directions, path)


def test_a_path_that_nothing_reaches():
    arm = arm_of('seed_arm')
    path = new_solver(arm).solve_path(np.full((4, 3), 9.0), np.tile([0.0, 0.0, 1.0], (4, 1)))
    assert not path.solved.any()
    assert path.breaks == ()
    assert path.largest_move == 0.0
    np.testing.assert_array_equal(path.q, np.repeat(arm.middle[None], 4, axis=0))


@pytest.mark.slow
@pytest.mark.parametrize('name', ['seed_arm', 'magician_rail'])
def test_positions_alone(name):
    arm = arm_of(name)
    solver = new_solver(arm)
    walk = smooth_path(arm, 7, 20)
    positions, _ = tool_path(arm, walk)
    path = solver.solve_path(positions, seed=walk[0])
    assert path.solved.all()
    assert path.breaks == ()
    assert_good_path(solver, positions, None, path)
    assert path.largest_move <= 3 * np.abs(np.diff(walk, axis=0)).max()


def test_no_points_and_one_point():
    arm = arm_of('seed_arm')
    solver = new_solver(arm)
    none = solver.solve_path(np.empty((0, 3)), np.empty((0, 3)))
    assert none.q.shape == (0, 5)
    assert none.breaks == ()
    q = arm.sample(np.random.default_rng(0), 1)[0]
    position, direction = arm.fk(q)
    one = solver.solve_path([position], [direction], q)
    np.testing.assert_allclose(one.q, [q], atol=1e-5)
    assert one.largest_move == 0.0


@pytest.mark.slow
def test_points_share_the_time_of_a_path(monkeypatch):
    """Positions alone have no formula: each station gets what the stations before it have left."""
    arm, given = arm_of('seed_arm'), []
    solver, solve_all = new_solver(arm), IkSolver.solve_all

    def watched(self, goal, seed=None, locked_joints=(), time_budget=None):
        given.append(time_budget)
        return solve_all(self, goal, seed, locked_joints, time_budget)

    monkeypatch.setattr(IkSolver, 'solve_all', watched)
    positions, _ = tool_path(arm, smooth_path(arm, 7, 20))
    solver.solve_path(positions, time_budget=1.0)
    assert len(given) > 1
    assert given[0] < 1.0
    assert all(after < before for before, after in pairwise(given) if before > 1e-9)
    given.clear()
    solver.solve_path(positions, time_budget=1e-9)
    assert set(given) == {1e-9}
