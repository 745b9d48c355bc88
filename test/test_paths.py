"""Goals along paths: tracked step by step, and planned as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from cases import AXES, Case, shared_cases, shipped_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from made_arms import make_arm, parallel_arm, wrist_arm
from scipy.spatial.transform import Rotation

from ik_node import Arm, Goal, IkSolver, InputError, Status
from ik_node.kinematics.goal import Block

TOLERANCE = 1e-6  # m and rad
BY_NAME = {case.label: case for case in [*shipped_cases(), *shared_cases()]}
TRACKED = [
    *['seed_arm', 'so101_like', 'xarm5_like', 'moveo_like', 'prismatic_arm', 'ball_joint_arm'],
    *['so101', 'hebi_a2085_05', 'moveo', 'magician_rail', 'low_cost_robot', 'derived_ur5e_wrist3_fixed'],
]


def arm_of(name: str) -> Arm:
    return BY_NAME.get(name, Case(name, '', '', AXES['z'], (0, 0, 0), 0)).arm()


def new_solver(arm: Arm, **options) -> IkSolver:
    return IkSolver(arm, position_tolerance=TOLERANCE, direction_tolerance=TOLERANCE, **options)


def smooth_path(arm: Arm, seed: int, count: int) -> np.ndarray:
    """A joint path (count, n) within the limits, each joint the sum of two waves."""
    rng = np.random.default_rng(seed)
    low, high = np.where(arm.continuous, -np.pi, arm.lower), np.where(arm.continuous, np.pi, arm.upper)
    phase, rate = rng.uniform(0, 2 * np.pi, (2, arm.n)), rng.uniform(0.006, 0.012, (2, arm.n))
    waves = [np.sin(phase[k] + np.arange(count)[:, None] * rate[k]) for k in range(2)]
    return (low + high) / 2 + np.mean(waves, axis=0) * (high - low) / 2 * rng.uniform(0.3, 1, arm.n)


def tool_path(arm: Arm, joint_path):
    """Positions (N, 3) and directions (N, 3) along a joint path."""
    pairs = [arm.fk(q) for q in joint_path]
    return np.array([p for p, _ in pairs]), np.array([d for _, d in pairs])


# --- track ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', TRACKED)
def test_tracking_keeps_to_the_branch(name):
    """Goals of a smooth joint path: the path itself is found again, joints that move nothing stand still."""
    arm = arm_of(name)
    solver = new_solver(arm)
    for seed in range(2):
        path = smooth_path(arm, seed, 400)
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


REDUNDANT = ['ur5e', 'panda', 'ikpy_prismatic_mixed', 'vx300s']
POSITION_ONLY = ['seed_arm', 'so101_like', 'prismatic_arm', 'magician_rail', 'scara_yguel']


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
            assert solution.reason.block is Block.BRANCH_ENDS
            before, now = None, solution.other_branch
    assert solved >= 380


AXES_OF_ARM = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
OFFSETS = [(0, 0, 0.1), (0.03, 0, 0.1), (0, 0, 0.3), (0.25, 0, 0), (0.1, 0, 0)]
TOOL = {'tool_axis': (0, 0.6, 0.8), 'tool_point': (0.05, 0, 0.02)}


def plain_arm(limits, kinds=None) -> Arm:
    """An arm with three parallel axes and a truly free direction."""
    return make_arm(AXES_OF_ARM, OFFSETS, limits, kinds, **TOOL)


def limits_of(value=3.0) -> np.ndarray:
    return np.full((5, 2), (-value, value))


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
        assert solver.solve_all(goal) == []
        assert solution.reason.block is not Block.BRANCH_ENDS
        return
    assert solution.status is Status.NOT_FOUND
    assert solution.reason.block is Block.BRANCH_ENDS
    assert solution.reason.joint == f'joint{joint + 1}'
    assert f'at the limit of joint joint{joint + 1}' in str(solution.reason)
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
        assert solution.reason.block is Block.BRANCH_ENDS
        assert solution.reason.joint is None
        assert 'at a singularity' in str(solution.reason)
        values = np.linalg.svd(solver.arm.jacobian(solution.q), compute_uv=False)
        assert values[4] < 0.02 * values[0]
        nearest = min(np.abs(other.q - now).max() for other in solver.solve_all(goal, now))
        assert nearest > 0.1  # there was no way on
        assert np.abs(solution.other_branch - solution.q).max() == pytest.approx(solution.reason.amount)


def test_a_goal_out_of_reach_is_answered_as_by_solve():
    arm = arm_of('seed_arm')
    solver = new_solver(arm)
    goal = Goal((0, 0, 5), (0, 0, 1))
    solution, expected = solver.track(goal, arm.middle), solver.solve(goal, arm.middle)
    assert solution.status is expected.status is Status.UNREACHABLE
    assert solution.other_branch is None
    assert solution.reason == expected.reason


def test_a_start_outside_the_limits_comes_back_inside():
    arm = arm_of('seed_arm')
    outside = arm.upper.copy()
    outside[1] += 0.05
    solution = new_solver(arm).track(Goal(*arm.fk(arm.upper)), outside)
    assert solution.solved
    assert (solution.q <= arm.upper).all()


def test_track_and_path_leave_their_inputs_alone():
    arm = arm_of('seed_arm')
    path = smooth_path(arm, 4, 20)
    positions, directions = tool_path(arm, path)
    seed = arm.upper + 0.1
    copies = [array.copy() for array in (path, positions, directions, seed)]
    solver = new_solver(arm)
    solver.track(Goal(positions[1], directions[1]), path[0], path[0])
    solver.solve_path(positions, directions, seed)
    for array, copy in zip((path, positions, directions, seed), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize('wrong', [[0.0] * 4, [np.nan] * 5, 'abc', None])
def test_bad_configurations_are_refused(wrong):
    arm = arm_of('seed_arm')
    solver, goal = new_solver(arm), Goal(*arm.fk(arm.middle))
    with pytest.raises(InputError, match='q must be 5 finite numbers'):
        solver.track(goal, wrong)
    if wrong is not None:
        with pytest.raises(InputError, match='before must be 5 finite numbers'):
            solver.track(goal, arm.middle, wrong)
        with pytest.raises(InputError, match='seed must be 5 finite numbers'):
            solver.solve_path([goal.position], [goal.direction], wrong)


# --- solve_path ----------------------------------------------------------------------------------------


def least_largest_move(solver: IkSolver, positions, directions) -> float:
    """Brute force: the best that any choice of one solution per point can do, whole turns included."""
    arm = solver.arm
    cost = None
    for position, direction in zip(positions, directions, strict=True):
        rows = np.array([s.q for s in solver.solve_all(Goal(position, direction))])
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


@given(st.integers(0, 10**6), st.sampled_from(['parallel', 'roll', 'wrist']))
@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'moveo_like', 'prismatic_arm', 'ball_joint_arm'])
def test_a_smooth_path_has_no_break_and_no_larger_move(name):
    arm = arm_of(name)
    solver = new_solver(arm)
    walk = smooth_path(arm, 5, 200)
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


@pytest.mark.parametrize('offset', [0.0, 1e-4, 3e-4])
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


def test_of_equal_paths_that_next_to_the_seed():
    limits = limits_of()
    limits[[0, 4]] = (-2 * np.pi, 2 * np.pi)
    arm = plain_arm(limits)
    start = np.array([0.5, 0.4, 0.8, 0.3, 0.2])
    positions, directions = around_the_base(arm, start, 0.5, 20)
    for shift in ([0, 0, 0, 0, 0], [-2 * np.pi, 0, 0, 0, 0], [0, 0, 0, 0, -2 * np.pi]):
        path = new_solver(arm).solve_path(positions, directions, start + shift)
        np.testing.assert_allclose(path.q[0], start + shift, atol=1e-6)


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
        rows = np.array([s.q for s in new_solver(arm).solve_all(Goal(positions[k], directions[k]))])
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


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'magician_rail'])
def test_positions_alone(name):
    arm = arm_of(name)
    solver = new_solver(arm)
    walk = smooth_path(arm, 7, 60)
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


def test_paths_are_the_same_bits_every_time():
    for name in ('seed_arm', 'prismatic_arm'):
        arm = arm_of(name)
        positions, directions = tool_path(arm, smooth_path(arm, 8, 50))
        answers = [new_solver(arm).solve_path(positions, directions).q.tobytes() for _ in range(2)]
        assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ('positions', 'directions', 'message'),
    [
        ([0.1, 0.0, 0.2], None, r'positions must have shape \(N, 3\)'),
        ([[0.1, 0.0, np.nan]], None, 'positions must be finite'),
        ([[0.1, 0.0, 0.2]], [[0.0, 0.0, 2.0]], 'directions must be unit vectors'),
        ([[0.1, 0.0, 0.2]], [[0.0, 0.0, 1.0]] * 2, 'as many directions as positions'),
    ],
)
def test_bad_paths_are_refused(positions, directions, message):
    with pytest.raises(InputError, match=message):
        new_solver(arm_of('seed_arm')).solve_path(positions, directions)
