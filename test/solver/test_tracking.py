# SPDX-License-Identifier: Apache-2.0
"""Goals followed step by step: the branch is kept, and its end announced; and tracks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import TOLERANCE, arm_of, new_solver
from hypothesis import given
from hypothesis import strategies as st
from made_arms import limits_of, make_arm, plain_arm, random_unit, smooth_path

from ik_node import Goal, InputError, Status
from ik_node.kernels.tracking import _turn
from ik_node.solver.goal import Cause
from ik_node.tracks import TRACKS, Track, plane_axes, tip_pose

TRACKED = ['seed_arm', 'so101_like', 'prismatic_arm', 'ball_joint_arm', 'moveo', 'magician_rail']


@pytest.mark.slow
@pytest.mark.parametrize('name', TRACKED)
def test_tracking_keeps_to_the_branch(name):
    """Goals of a smooth joint path: the path itself is found again, joints that move nothing stand still."""
    arm = arm_of(name)
    solver = new_solver(arm)
    for seed in (0, 2):
        path = smooth_path(arm, seed, 200)
        path[:, arm.idle] = path[0, arm.idle]
        largest = np.abs(np.diff(path, axis=0)).max()
        now, before = path[0], None
        for q in path[1:]:
            goal = Goal(*arm.fk(q))
            solution = solver.track(goal, now, before)
            assert solution.status is Status.SOLVED, solution
            assert solution.other_branch is None
            assert solution.reason is None
            assert (solution.position_error, solution.direction_error) == solver.errors(goal, solution.q)
            assert np.abs(solution.q - now).max() <= 1.5 * largest
            before, now = now, solution.q
        np.testing.assert_allclose(now, path[-1], atol=1e-3)


REDUNDANT = ['ur5e', 'panda', 'vx300s']
POSITION_ONLY = ['seed_arm', 'so101_like', 'prismatic_arm', 'scara_yguel']


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'directed'), [*((name, True) for name in REDUNDANT), *((name, False) for name in POSITION_ONLY)]
)
def test_tracking_with_freedom_to_spare_never_jumps_unannounced(name, directed):
    """A spare joint may run into its limit; then the branch ends, which is said, not jumped over."""
    arm = arm_of(name)
    solver = new_solver(arm)
    path = smooth_path(arm, 1, 400)
    now, before = path[0], None
    solved = 0
    for q in path[1:]:
        position, direction = arm.fk(q)
        goal = Goal(position, direction if directed else None)
        solution = solver.track(goal, now, before)
        solved += solution.solved
        assert np.abs(solution.q - now).max() <= 0.2
        if solution.solved:
            assert max(solver.errors(goal, solution.q)) <= TOLERANCE
            before, now = now, solution.q
        else:
            assert solution.reason.cause is Cause.BRANCH_ENDS
            before, now = None, solution.other_branch
    assert solved >= 380


def hinges(seed: int, count: int):
    """An arm of so many hinges, none parallel."""
    rng = np.random.default_rng(seed)
    axes, offsets = [random_unit(rng) for _ in range(count)], 0.15 * rng.normal(size=(count, 3))
    return make_arm(axes, offsets, [(-2.5, 2.5)] * count, tool_axis=random_unit(rng), tool_point=(0.1, 0, 0))


@pytest.mark.parametrize(('count', 'seed'), [(7, 0), (7, 1), (8, 2)])
def test_joints_to_spare_move_only_as_the_goal_demands(count, seed):
    """Back and forth by 1 cm per step: no joint moves much more than in the least-squares motion."""
    arm = hinges(seed, count)
    solver, rng = new_solver(arm), np.random.default_rng(seed)
    now, before = 0.5 * arm.sample(rng, 1)[0], None
    position, direction = arm.fk(now)
    way = random_unit(rng)
    weight = np.diag(np.repeat([1.0, 0.2 * arm.reach], 3))
    solved = 0
    for turn in np.arange(120) * 2 * np.pi / 100:
        goal = Goal(position + 0.16 * np.sin(turn) * way, direction)
        solution = solver.track(goal, now, before)
        if not solution.solved:
            if solution.other_branch is not None:
                now = solution.other_branch
            before = None
            continue
        at, along = arm.fk(now)
        gap = weight @ np.concatenate([goal.position - at, goal.direction - along])
        demanded = np.linalg.pinv(weight @ arm.jacobian(now), rcond=1e-3) @ gap
        assert np.abs(solution.q - now).max() <= 3.0 * np.abs(demanded).max() + 1e-3
        before, now = now, solution.q
        solved += 1
    assert solved >= 80


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(12))
def test_a_branch_that_ends_at_a_limit_is_announced(seed):
    """A straight joint path that leaves the range of one joint half-way: all is said before the jump."""
    rng = np.random.default_rng(seed)
    joint = seed % 5
    start, end = rng.uniform(-2.5, 2.5, (2, 5))
    end[joint] = -np.sign(start[joint]) * rng.uniform(1.0, 2.5)
    stop = 0.5 * (start[joint] + end[joint]) + 0.0003
    limits = limits_of()
    limits[joint] = (-3, stop) if end[joint] > start[joint] else (stop, 3)
    arm, wide = plain_arm(limits), plain_arm(limits_of())
    solver = new_solver(arm)
    step = np.abs(end - start).max() / 200
    now, before = start, None
    for q in np.linspace(start, end, 201)[1:]:
        goal = Goal(*wide.fk(q))
        solution = solver.track(goal, now, before)
        if not solution.solved:
            break
        assert np.abs(solution.q - now).max() <= 1.5 * step
        before, now = now, solution.q
    assert not solution.solved
    assert (q[joint] - stop) * (end[joint] - stop) > 0  # not before the limit
    assert abs(q[joint] - stop) <= 2 * step  # and not after it
    if solution.other_branch is None:
        assert solver.solve_all(goal, time_budget=np.inf) == []
        assert solution.reason.cause is not Cause.BRANCH_ENDS
        return
    assert solution.status is Status.NOT_FOUND
    assert solution.reason.cause is Cause.BRANCH_ENDS
    assert solution.reason.joint == f'joint{joint + 1}'
    assert f'at the limit of joint "joint{joint + 1}"' in str(solution.reason)
    assert np.abs(solution.q - now).max() <= 1.5 * step  # still where the branch ended
    assert abs(solution.q[joint] - stop) < 1e-3
    assert max(solver.errors(goal, solution.other_branch)) <= TOLERANCE
    move = np.abs(solution.other_branch - solution.q).max()
    assert solution.reason.amount == pytest.approx(move)
    assert move > 0.1


def folds(count: int):
    """Arms, goals before and after a place where the branch of now ends though no limit is near."""
    wide = plain_arm(limits_of())
    solver = new_solver(wide)
    rng = np.random.default_rng(0)
    cases = []
    while len(cases) < count:
        start = wide.sample(rng, 1)[0]
        position, direction = wide.fk(start)
        way, turn = 0.4 * rng.normal(size=(2, 3))
        now, before = start, None
        for share in np.linspace(0, 1, 201)[1:]:
            axis = direction + share * turn
            goal = Goal(position + share * way, axis / np.linalg.norm(axis))
            solution = solver.track(goal, now, before)
            if not solution.solved:
                break
            before, now = now, solution.q
        if solution.other_branch is not None and np.abs(solution.q).max() < 2.9:
            cases.append((solver, goal, now, solution))
    return cases


def test_a_branch_that_ends_at_a_singularity_is_announced():
    for solver, goal, now, solution in folds(5):
        assert solution.reason.cause is Cause.BRANCH_ENDS
        assert solution.reason.joint is None
        assert 'a singularity' in str(solution.reason)
        values = np.linalg.svd(solver.arm.jacobian(solution.q), compute_uv=False)
        assert values[4] < 0.02 * values[0]
        nearest = min(np.abs(other.q - now).max() for other in solver.solve_all(goal, now, time_budget=np.inf))
        assert nearest > 0.1  # there was no way on
        assert np.abs(solution.other_branch - solution.q).max() == pytest.approx(solution.reason.amount)


def test_a_start_outside_the_limits_comes_back_inside():
    arm = arm_of('seed_arm')
    outside = arm.upper.copy()
    outside[1] += 0.05
    solution = new_solver(arm).track(Goal(*arm.fk(arm.upper)), outside)
    assert solution.solved
    assert (solution.q <= arm.upper).all()


@pytest.mark.parametrize('name', ['seed_arm', 'prismatic_arm'])
def test_solve_nearby_moves_each_joint_by_no_more_than_allowed(name):
    """A start outside the limits counts from where they are; a goal far away is approached as far as that."""
    arm = arm_of(name)
    solver, rng = new_solver(arm), np.random.default_rng(6)
    low, high = arm.lower, arm.upper
    moved = np.zeros((2, arm.n), dtype=bool)
    for q in [*arm.sample(rng, 30), high + 0.3]:
        goal, start = Goal(*arm.fk(arm.sample(rng, 1)[0])), np.clip(q, low, high)
        allowed = rng.uniform(0.001, 0.1, arm.n)
        found = solver.solve_nearby(goal, q, allowed).q
        assert (np.abs(found - start) <= allowed + 1e-12).all()
        assert ((low <= found) & (found <= high)).all()
        moved |= np.array([found < start - 0.9 * allowed, found > start + 0.9 * allowed])
    assert (moved | arm.idle).all()


CENTRE = (0.3, -0.1, 0.2)
SLANTED = (0.6, 0.0, -0.8)


def sample(track: Track, count: int = 6_000) -> tuple[np.ndarray, float]:
    """One lap and a bit, and the time between samples."""
    times = np.linspace(0.0, 1.1 * track.lap, count)
    return np.array([track.position(t) for t in times]), times[1]


@pytest.mark.slow
@pytest.mark.parametrize('name', TRACKS)
def test_the_speed_is_the_one_asked_for(name):
    places, dt = sample(Track(name, CENTRE, 0.07, 0.05, SLANTED))
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) / dt
    assert speed.max() <= 0.05 * 1.002
    if name == 'line':
        assert np.quantile(speed, 0.25) == pytest.approx(0.05, rel=1e-3)  # all but the soft ends
    else:
        assert speed.min() >= 0.05 * 0.998


@pytest.mark.slow
@pytest.mark.parametrize('name', TRACKS)
def test_the_velocity_has_no_jump(name):
    places, dt = sample(Track(name, CENTRE, 0.07, 0.05, SLANTED))
    turn = np.diff(places, n=2, axis=0) / dt**2
    # Curvature at most that of the spiral's centre, 2 * turns / size; the line brakes within 5 % of a lap.
    assert np.linalg.norm(turn, axis=1).max() < 13 / 0.07 * 0.05**2


@pytest.mark.slow
@pytest.mark.parametrize('name', TRACKS)
def test_a_lap_is_closed_and_of_the_size_asked_for(name):
    track = Track(name, CENTRE, 0.07, 0.05, SLANTED)
    assert track.position(0.3 + 5 * track.lap) == pytest.approx(track.position(0.3), abs=1e-12)
    places, _ = sample(track)
    away = places - CENTRE
    assert np.linalg.norm(away, axis=1).max() == pytest.approx(0.07, rel=1e-4)
    assert np.abs(away @ SLANTED).max() < 1e-15


@pytest.mark.slow
def test_the_curves_differ():
    shapes = {name: sample(Track(name, CENTRE, 0.07, 0.05, SLANTED))[0] for name in TRACKS}
    radii = {name: np.linalg.norm(shape - CENTRE, axis=1) for name, shape in shapes.items()}
    assert np.ptp(radii['circle']) < 1e-12
    assert all(radii[name].min() < 1e-4 for name in ('figure_eight', 'spiral', 'line'))
    assert np.linalg.matrix_rank(shapes['line'] - CENTRE, tol=1e-9) == 1
    assert np.linalg.matrix_rank(shapes['spiral'] - CENTRE, tol=1e-9) == 2


@pytest.mark.slow
@given(st.floats(-math.pi, math.pi), st.floats(-math.pi / 2, math.pi / 2))
def test_plane_axes_are_right_handed(yaw, pitch):
    normal = np.array([math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), math.sin(pitch)])
    frame = np.column_stack((*plane_axes(normal), normal))
    assert np.abs(frame.T @ frame - np.eye(3)).max() < 1e-14
    assert np.linalg.det(frame) == pytest.approx(1.0)


@pytest.mark.parametrize('tool_axis', [(0, 0, 1), (0, -1, 0), (0, 0.6, -0.8)])
@pytest.mark.parametrize('direction', [(0, 0, -1), (0, 0, 1), (0.6, -0.8, 0)])
def test_tip_pose_puts_the_tool_where_it_is_wanted(tool_axis, direction):
    T = tip_pose((0.1, 0.2, 0.3), direction, tool_axis, (0.01, 0.02, 0.03))
    assert np.abs(T[:3, :3].T @ T[:3, :3] - np.eye(3)).max() < 1e-14
    assert np.linalg.det(T[:3, :3]) == pytest.approx(1.0)
    assert T[:3, :3] @ tool_axis == pytest.approx(direction)
    assert (T @ [0.01, 0.02, 0.03, 1.0])[:3] == pytest.approx([0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    'change',
    [
        {'name': 'square'},
        {'centre': (0, 0)},
        {'centre': (0, 0, math.nan)},
        {'size': 0.0},
        {'speed': -1.0},
        {'speed': math.nan},
        {'direction': (0, 0, 0)},
    ],
)
def test_nonsense_is_rejected(change):
    good = {'name': 'circle', 'centre': CENTRE, 'size': 0.1, 'speed': 0.1, 'direction': (0, 0, 1)}
    with pytest.raises(InputError, match=next(iter(change)) if 'name' not in change else 'square'):
        Track(**{**good, **change})


@pytest.mark.parametrize('velocity', [0.05, 2.0])
def test_the_turning_point_is_where_the_hardest_braking_ends(velocity: float):
    """Beside small steps of the same motion; at 2 rad/s the acceleration limit is reached on the way."""
    hardest, max_jerk, dt = 5.0, 50.0, 0.01
    position, acceleration, jerk = 0.3, 1.0, 20.0
    turn = _turn(position, velocity, acceleration, jerk, hardest, max_jerk, dt)
    step, time = 1e-5, 0.0
    while velocity > 0.0:
        if time >= dt:
            jerk = -max_jerk if acceleration > -hardest else 0.0
        position += velocity * step
        velocity += acceleration * step
        acceleration += jerk * step
        time += step
    assert turn == pytest.approx(position, abs=1e-4)
