# SPDX-License-Identifier: Apache-2.0
"""Several tools on one robot: TreeSolver against solvers of single arms, plain FK and numeric references."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from made_arms import random_unit
from oracles.plain import PlainArm
from oracles.torsos import TOOLS, goals_at, joint, pair, random_goals, torso, torso_text
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation
from shared_files import shared_path

from ik_node import Goal, IkSolver, InputError, Status, Tool, Tree, TreeSolver, UrdfError, kernels
from ik_node.control.solving import _judged
from ik_node.kernels import trees as branch_kernels
from ik_node.kernels.arrays import ITERATIONS, WEIGHT
from ik_node.kernels.chain import forward, normal_equations
from ik_node.solver.goal import Cause
from ik_node.solver.restarts import search_options
from ik_node.solver.trees import Clock, TreeSearch, branches
from ik_node.tracks import Track

NAMES = ('left', 'right')
DOWN = (0.0, 0.0, -1.0)
LIMITS = '<limit lower="{}" upper="{}" velocity="1" effort="9"/>'
LIFT = joint('lift', 'prismatic', 'base_link', 'carriage', '', '0 0 1', LIMITS.format(0, 0.5))
TURN = joint('yaw', 'revolute', 'carriage', 'chest', 'xyz="0 0 0.3"', '0 0 1', LIMITS.format(-1, 1))
TWO_JOINTS = f'<link name="base_link"/><link name="carriage"/><link name="chest"/>{LIFT}{TURN}'


@pytest.fixture(scope='module')
def body() -> Tree:
    return torso()


@pytest.fixture(scope='module')
def solver(body) -> TreeSolver:
    return TreeSolver(body, compile='wait')


@pytest.fixture(scope='module', params=['pair', 'dual_xarm5'])
def apart(request) -> Tree:
    """A robot whose tools share no joint."""
    if request.param == 'pair':
        return pair()
    tools = {'left': Tool('L_link_eef'), 'right': Tool('R_link_eef')}
    return Tree.from_file(shared_path('arms', 'dual_xarm5.urdf'), tools)


@pytest.mark.slow
def test_tools_that_share_no_joint_get_the_answers_of_solvers_of_their_own_bit_for_bit(apart):
    tree_solver, rng = TreeSolver(apart), np.random.default_rng(1)
    solvers = {name: IkSolver(arm) for name, arm in apart.arms.items()}
    for number in range(30):
        seed = apart.sample(rng, 1)[0]
        goals = goals_at(apart, apart.sample(rng, 1)[0]) if number % 2 else random_goals(rng, apart)
        found = tree_solver.solve(goals, seed)
        for name, goal in goals.items():
            alone = solvers[name].solve(goal, seed[apart.columns[name]])
            assert (found.tools[name].q == alone.q).all()
            assert found.tools[name].status is alone.status
            assert str(found.tools[name].reason) == str(alone.reason)
            assert (found.q[apart.columns[name]] == alone.q).all()
    start, end = apart.sample(rng, 2)
    q = before = start
    for share in np.linspace(0.0, 0.1, 20):
        goals = goals_at(apart, start + share * (end - start))
        found = tree_solver.track(goals, q, before)
        for name, goal in goals.items():
            alone = solvers[name].track(goal, q[apart.columns[name]], before[apart.columns[name]])
            assert (found.tools[name].q == alone.q).all()
        before, q = q, found.q


@pytest.mark.slow
def test_every_pair_of_reachable_goals_is_solved(body, solver):
    arms = {name: PlainArm(torso_text(), tool.tip_link) for name, tool in TOOLS.items()}
    for q in body.sample(np.random.default_rng(3), 100):
        goals = goals_at(body, q)
        found = solver.solve(goals)
        assert found.solved
        assert found.status is Status.SOLVED
        assert ((found.q >= body.lower) & (found.q <= body.upper)).all()
        joints = dict(zip(body.joint_names, found.q.tolist(), strict=True))
        for name, goal in goals.items():
            point, axis = arms[name].fk(joints)
            assert np.linalg.norm(point - goal.position) <= 1.1e-6
            assert np.linalg.norm(axis - goal.direction) <= 1.1e-4


HEAD = {**TOOLS, 'head': Tool('chest', axis=(1.0, 0.0, 0.0), point=(0.1, 0.0, 0.2))}


@pytest.mark.slow
@pytest.mark.parametrize(
    'make',
    [
        lambda: torso(trunk=TWO_JOINTS),
        lambda: torso('prismatic_arm'),  # limbs without a formula
        lambda: Tree.from_urdf(torso_text(), HEAD),  # a tool on the trunk itself
    ],
    ids=['two shared joints', 'without formula', 'head'],
)
def test_other_trees_are_solved(make):
    tree = make()
    solver = TreeSolver(tree, compile='wait')
    for q in tree.sample(np.random.default_rng(7), 30):
        assert solver.solve(goals_at(tree, q)).solved


def test_trees_say_which_tools_share_joints(body):
    tree = Tree.from_urdf(torso_text(), HEAD)
    assert tree.groups(NAMES) == (NAMES,)
    assert pair().groups(NAMES) == (('left',), ('right',))
    assert tree.shared(('left', 'right', 'head')) == {'left': 1, 'right': 1, 'head': 1}
    assert body.describe().endswith('left (6 joints), right (6 joints); shared: "yaw"')
    assert 'shared: ' not in pair().describe()
    assert pickle.loads(pickle.dumps(body)).joint_names == body.joint_names


def test_the_trunk_stays_if_the_limbs_can_follow_and_else_moves_as_little_as_they_allow(body, solver):
    yaw = body.joint_names.index('yaw')
    moved = 0
    for q in body.sample(np.random.default_rng(4), 100):
        goals, seed = goals_at(body, q), body.middle
        seed[yaw] = q[yaw]
        assert solver.solve(goals, seed).q[yaw] == q[yaw]
        found = solver.solve(goals).q[yaw]
        if found != 0.0 and abs(found) > 0.03:
            moved += 1
            nearer = body.middle
            nearer[yaw] = found - 0.02 * np.sign(found)
            assert solver.solve(goals, nearer).q[yaw] != nearer[yaw]
    assert moved > 10


def test_a_tool_without_a_goal_is_held_unless_it_is_free(body, solver):
    seed = body.sample(np.random.default_rng(5), 1)[0]
    yaw = body.joint_names.index('yaw')
    seed[yaw] = 0.0
    turned = seed.copy()
    turned[yaw] = 1.2
    goal = {'left': goals_at(body, turned)['left']}
    before = body.fk(seed)['right']
    held = solver.solve(goal, seed)
    assert set(held.tools) == {'left', 'right'}
    if held.solved:
        np.testing.assert_allclose(body.fk(held.q)['right'][0], before[0], atol=2e-6)
    free = solver.solve(goal, seed, free=['right'])
    assert free.solved
    own = body.columns['right'][1:]
    assert (free.q[own] == seed[own]).all()


def test_a_tool_that_cannot_be_held_is_not_solved():
    """Two joints a limb cannot hold its tool while the torso turns for the other one."""
    limits = LIMITS.format(-2, 2)
    turn = joint('yaw', 'revolute', 'base', 'chest', '', '0 0 1', limits)
    text = f'<robot name="t"><link name="base"/><link name="chest"/>{turn}'
    for side, y in (('left', 0.2), ('right', -0.2)):
        text += f'<link name="{side}_arm"/><link name="{side}"/>'
        text += joint(f'{side}1', 'revolute', 'chest', f'{side}_arm', f'xyz="0 {y} 0"', '0 1 0', limits)
        text += joint(f'{side}2', 'revolute', f'{side}_arm', side, 'xyz="0.3 0 0"', '0 1 0', limits)
    tree = Tree.from_urdf(text + '</robot>', {name: Tool(name, axis=(1, 0, 0)) for name in NAMES})
    solver, seed = TreeSolver(tree, compile='wait', restarts=2), np.full(5, 0.3)
    goal = {'left': goals_at(tree, seed + 0.1)['left']}
    found = solver.solve(goal, seed, {'left': 1e6})
    assert found.tools['left'].solved
    assert found.status is Status.NOT_FOUND
    assert found.tools['right'].position_error > 1e-3
    reason = _judged('left', found).reason  # what the node reports on the goal
    assert reason.cause is Cause.CONFLICT
    assert '"right"' in reason.sentence
    assert solver.solve(goal, seed, {'left': 1e6}, free=['right']).solved
    assert solver.solve_batch({'left': [goal['left'].position]}, None, seed).tools.keys() == set(NAMES)


def test_two_smooth_tracks_are_followed_without_a_jump(solver):
    tracks = {
        'left': Track('circle', (0.0, 0.6, 0.6), 0.1, 0.1, DOWN),
        'right': Track('figure_eight', (0.0, -0.6, 0.6), 0.1, 0.1, DOWN),
    }
    q = solver.solve({name: Goal(track.position(0.0), DOWN) for name, track in tracks.items()}).q
    before = q
    for k in range(1, 500):
        goals = {name: Goal(track.position(0.01 * k), DOWN) for name, track in tracks.items()}
        found = solver.track(goals, q, before)
        assert found.solved
        assert np.abs(found.q - q).max() < 0.01
        before, q = q, found.q


def test_the_trunk_turns_when_a_limb_cannot_follow_any_more(body, solver):
    """The tool of one arm goes farther round than its own base can turn; the other one is free to follow."""
    q = body.middle
    q[body.columns['left'][1:3]] = 3.0, 0.8
    before, R = q, Rotation.from_rotvec([0.0, 0.0, 0.01]).as_matrix()
    for k in range(80):
        place, axis = body.fk(q)['left']
        middle = np.array([0.0, 0.25, 0.0]) if k < 10 else np.zeros(3)
        goal = Goal(middle + R @ (place - middle), R @ axis)
        found = solver.track({'left': goal}, q, before, free=['right'])
        if not found.solved:
            break
        assert np.abs(found.q - q).max() < 0.3
        before, q = q, found.q
    assert q[body.joint_names.index('yaw')] != 0.0


def test_where_a_branch_ends_the_other_one_meets_all_goals(body, solver):
    rng, yaw = np.random.default_rng(6), body.joint_names.index('yaw')
    ended = 0
    for start, end in zip(body.sample(rng, 60), body.sample(rng, 60), strict=True):
        goals = goals_at(body, end)
        found = solver.track(goals, start)
        if found.solved:
            if found.q[yaw] != start[yaw]:
                assert np.abs(found.q - start).max() < 0.5
            continue
        assert found.status is Status.NOT_FOUND
        ended += 1
        q = found.q
        for name, solution in found.tools.items():
            assert solution.reason.cause is Cause.BRANCH_ENDS
            q[body.columns[name]] = solution.other_branch
        for name, (point, _) in body.fk(q).items():
            assert np.linalg.norm(point - goals[name].position) < 2e-6
    assert ended > 10


def test_a_seed_outside_the_limits_does_not_lead_there(body):
    for tree, name, outside in ((body, 'yaw', 3.0), (torso(trunk=TWO_JOINTS), 'lift', 0.52)):
        solver, seed, column = TreeSolver(tree, compile='wait'), tree.middle, tree.joint_names.index(name)
        seed[column] = outside
        given, goals = seed.copy(), goals_at(tree, np.clip(seed - 0.01, tree.lower, tree.upper))
        assert solver.solve(goals, seed).solved
        for answer in (solver.solve, solver.track):
            found = answer(goals, seed)
            assert ((found.q >= tree.lower) & (found.q <= tree.upper)).all()
        np.testing.assert_array_equal(seed, given)


def test_the_lateral_axis_is_served_by_a_joint_that_only_rolls_the_tool():
    tree = torso('so101_like')
    solver = TreeSolver(tree, compile='wait')
    q = tree.sample(np.random.default_rng(11), 1)[0]
    goals = {}
    for name, arm in tree.arms.items():
        frames = arm.frames(q[tree.columns[name]])
        goals[name] = Goal(frames[-3], frames[-2], frames[-1])
    found = solver.solve(goals, q)
    assert found.solved
    for name, solution in found.tools.items():
        assert solution.lateral_error == pytest.approx(0.0, abs=1e-4)
        np.testing.assert_array_equal(found.q[tree.columns[name]], solution.q)


@pytest.mark.slow
@pytest.mark.parametrize('robot', ['together', 'apart'])
def test_batches_have_the_answers_of_single_solves(body, solver, robot):
    tree = body if robot == 'together' else pair()
    one = solver if robot == 'together' else TreeSolver(tree)
    rng = np.random.default_rng(12)
    places = [goals_at(tree, q) for q in tree.sample(rng, 4)] + [random_goals(rng, tree) for _ in range(2)]
    positions = {name: [goals[name].position for goals in places] for name in NAMES}
    directions = {name: [goals[name].direction for goals in places] for name in NAMES}
    found = one.solve_batch(positions, directions)
    for k in range(len(places)):
        alone = one.solve({name: Goal(positions[name][k], directions[name][k]) for name in NAMES})
        np.testing.assert_array_equal(found.q[k], alone.q)
        for name in NAMES:
            assert found.tools[name].status[k] is alone.tools[name].status
            assert found.tools[name].position_error[k] == alone.tools[name].position_error
    assert found.tools['left'].solved[:4].all()


def reference(tree: Tree, goals: dict[str, Goal], weights: dict[str, float]) -> float:
    """The least sum of weighted squared misses, by scipy from many starts."""

    def residuals(q: np.ndarray) -> np.ndarray:
        places = tree.fk(q)
        return np.concatenate([np.sqrt(weights[n]) * (places[n][0] - goals[n].position) for n in goals])

    starts = tree.sample(np.random.default_rng(0), 6)
    return min(2.0 * least_squares(residuals, q, bounds=tree.limits, xtol=1e-12).cost for q in starts)


@pytest.mark.slow
def test_out_of_reach_the_weighted_sum_of_squared_misses_is_least(body, solver):
    """Of goals apart, and of goals between which the trunk has to choose."""
    rng, weights = np.random.default_rng(10), {'left': 10.0, 'right': 1.0}
    apart = {
        name: Goal(rng.uniform(1.2, 1.6) * random_unit(rng) + [0.0, 0.25 * side, 0.3], DOWN)
        for name, side in (('left', 1.0), ('right', -1.0))
    }
    conflict = {'left': Goal((1.3, 0.0, 0.5), DOWN), 'right': Goal((1.3, 0.0, 0.4), DOWN)}
    for goals in (apart, conflict):
        found = solver.solve(goals, weights={'left': 10.0})
        total = sum(weights[name] * found.tools[name].position_error ** 2 for name in goals)
        assert total <= reference(body, goals, weights) + 1e-8


@pytest.mark.slow
def test_the_reason_names_the_tools_in_conflict(body, solver):
    place, axis = body.fk(body.middle)['left']
    far = {'left': Goal((0.0, 1.1, 0.6), (0.0, 1.0, 0.0)), 'right': Goal((0.0, 1.1, 0.4), (0.0, 1.0, 0.0))}
    found = solver.solve(far)
    assert not found.solved
    for name, other in (('left', 'right'), ('right', 'left')):
        solution = found.tools[name]
        if solution.reason is not None and solution.reason.cause is Cause.CONFLICT:
            assert f'"{other}"' in str(solution.reason)
    beyond = solver.solve({'left': Goal((9.0, 0.0, 0.0)), 'right': Goal(place * [1, -1, 1], axis)})
    assert beyond.status is Status.UNREACHABLE
    assert beyond.tools['left'].reason.cause is Cause.TOO_FAR


PLACE = {'left': Goal((0, 0, 1))}


@pytest.mark.parametrize(
    ('call', 'named'),
    [
        (lambda s: s.solve({}), 'at least one tool'),
        (lambda s: s.solve({'middle': Goal((0, 0, 1))}), '"middle"; tools: "left", "right"'),
        (lambda s: s.solve({'left': (0, 0, 1)}), 'Goal'),
        (lambda s: s.solve(PLACE, free=['x']), 'free: no tool is called "x"'),
        (lambda s: s.solve(PLACE, free='right'), 'free must be'),
        (lambda s: s.solve(PLACE, free=None), 'free must be'),
        (lambda s: s.solve(PLACE, weights={'left': 0.0}), 'weight of left'),
        (lambda s: s.solve(PLACE, weights=3.0), 'weights must be'),
        (lambda s: s.solve(PLACE, seed=[0.0] * 3), 'seed must be 11'),
        (lambda s: s.track(PLACE, [np.nan] * 11), 'q must be 11'),
        (lambda s: s.solve_batch({'left': np.zeros((2, 3)), 'right': np.zeros((3, 3))}), 'same length'),
        (lambda s: s.solve_batch({'left': np.zeros((2, 3))}, seeds=np.zeros(3)), 'shape'),
        (lambda _: TreeSolver('arm'), 'tree must be a Tree'),
        (lambda s: TreeSolver(s.tree, method='ccd'), "lm, transpose, got 'ccd'"),
        (lambda _: Tree.from_urdf(torso_text(), {}), 'at least one Tool'),
        (lambda _: Tree.from_urdf(torso_text(), {'left': 'left_tool0'}), 'Tool'),
        (lambda _: Tree.from_urdf(torso_text(), {'left': Tool('nowhere')}), 'tip_link "nowhere"'),
    ],
)
def test_wrong_arguments_are_told(solver, call, named):
    with pytest.raises((InputError, UrdfError), match=named):
        call(solver)


RNG = np.random.default_rng(0)


def random_tree(n: int) -> np.ndarray:
    """Return parents (n,) of a random tree, now and then of several."""
    return np.array([-1, *(int(RNG.integers(-1, i)) for i in range(1, n))])


def ancestors(parents: np.ndarray, joint: int) -> list[int]:
    """Return joint and those that carry it, from the base."""
    return [] if joint < 0 else [*ancestors(parents, parents[joint]), joint]


@pytest.mark.parametrize('n', [1, 2, 7, 13, 23])
def test_the_step_is_that_of_dense_algebra(n):
    for _ in range(20):
        parents, dense = random_tree(n), np.zeros((n, n))
        for leaf in range(n):
            own = ancestors(parents, leaf)
            jacobian = RNG.normal(size=(6, len(own)))
            dense[np.ix_(own, own)] += jacobian.T @ jacobian
        gradient, free = RNG.normal(size=n), (RNG.random(n) < 0.8).astype(float)
        factor, step = RNG.normal(size=(n, n)), RNG.normal(size=n)
        branch_kernels.branch_step(np.tril(dense), gradient, free, 0.1, parents, factor, step)
        held, wanted = free == 0.0, np.zeros(n)
        rest = np.ix_(~held, ~held)
        wanted[~held] = np.linalg.solve(dense[rest] + 0.1 * np.eye((~held).sum()), gradient[~held])
        np.testing.assert_allclose(step, wanted, atol=1e-10)


def test_the_equations_of_all_tools_are_the_sum_of_those_of_each():
    tree = torso()
    parents, leaves = branches(list(tree.columns.values()), tree.n)
    aim, q = tree.sample(RNG, 2)
    hessian, gradient = np.zeros((tree.n, tree.n)), np.zeros(tree.n)
    wanted, right = np.zeros((tree.n, tree.n)), np.zeros(tree.n)
    jac, part, own = np.empty((tree.n, 6)), np.empty((tree.n, tree.n)), np.empty(tree.n)
    for (name, goal), leaf, share in zip(goals_at(tree, aim).items(), leaves, (1.0, 2.5), strict=True):
        arm = tree.arms[name]
        joints, frames = tree.renumbered(name, arm.joints), np.empty((2 * arm.n + 3, 3))
        forward(joints, arm.tool, q, frames)
        branch_kernels.add_normal_equations(
            joints, frames, goal.packed, 0.3, share, parents, leaf, jac, hessian, gradient
        )
        normal_equations(joints, frames, goal.packed, 0.3, jac, part, own)
        wanted, right = wanted + share * np.tril(part), right + share * own
    np.testing.assert_allclose(hessian, wanted, atol=1e-12)
    np.testing.assert_allclose(gradient, right, atol=1e-12)


def test_the_branches_of_tools():
    parents, leaves = branches([np.array([0, 1, 2]), np.array([0, 3, 4])], 6)
    assert parents.tolist() == [-1, 0, 1, 0, 3, -1], 'joint 5 moves neither tool'
    assert leaves.tolist() == [2, 4]
    # Joints in another order, as mimic joints have them: no tree, so one branch.
    for columns in ([[0, 1, 2], [0, 2, 1]], [[1, 0], [0, 2]]):
        parents, leaves = branches([np.array(own) for own in columns], 3)
        assert parents.tolist() == [-1, 0, 1]
        assert leaves.tolist() == [2, 2]


STEP = 1e-6


def transpose_step(body: Tree, goal: Goal, name: str, q: np.ndarray, weight: float) -> np.ndarray:
    """Return the step (n,) along J^T e of the best length for the linear model, J by central differences."""
    arm = PlainArm(torso_text(), TOOLS[name].tip_link)

    def residual(q: np.ndarray) -> np.ndarray:
        point, axis = arm.fk(dict(zip(body.joint_names, q.tolist(), strict=True)))
        return np.concatenate([goal.position - point, weight * (goal.direction - axis)])

    sides = [(residual(q - row) - residual(q + row)) / (2 * STEP) for row in STEP * np.eye(body.n)]
    jacobian, error = np.array(sides).T, residual(q)
    gradient = jacobian.T @ error
    along = jacobian @ gradient
    return gradient * (gradient @ gradient) / (along @ along)


@pytest.mark.slow
def test_shared_joints_take_the_mean_of_the_steps_and_the_others_their_own(body):
    kernels.prepare(wait=True)
    options = search_options('transpose', 1.0, 1e-9, 1e-9, 'greedy')
    options[ITERATIONS] = 1
    search = TreeSearch(body, tuple(TOOLS), 'transpose', options, 0)
    rng = np.random.default_rng(0)
    for q in 0.8 * body.sample(rng, 20):
        aim = q + rng.uniform(-0.05, 0.05, body.n)
        goals = goals_at(body, aim)
        steps = {name: transpose_step(body, goals[name], name, q, options[WEIGHT]) for name in TOOLS}
        for name, step in steps.items():
            others = np.setdiff1d(np.arange(body.n), body.columns[name])
            assert not step[others].any()
        wanted = q + steps['left'] + steps['right']
        shared = body.joint_names.index('yaw')
        wanted[shared] = q[shared] + 0.5 * (steps['left'] + steps['right'])[shared]
        found = q.copy()
        search.solve(np.array([goals[name].packed for name in TOOLS]), found, 0, Clock(1.0))
        if (found != q).any():  # a step that gains nothing is not kept
            np.testing.assert_allclose(found, wanted, atol=1e-7)


@pytest.mark.slow
def test_transpose_solves_reachable_pairs_within_the_limits(body):
    solver = TreeSolver(body, method='transpose', position_tolerance=1e-4, direction_tolerance=1e-3)
    found = [solver.solve(goals_at(body, q)) for q in body.sample(np.random.default_rng(1), 40)]
    assert np.mean([one.solved for one in found]) >= 0.95
    assert all(((one.q >= body.lower) & (one.q <= body.upper)).all() for one in found)


def test_tools_that_share_no_joint_get_the_answers_of_that_method():
    tree, rng = pair(), np.random.default_rng(2)
    solver = TreeSolver(tree, method='transpose', restarts=10)
    alone = {name: IkSolver(arm, method='transpose', restarts=10) for name, arm in tree.arms.items()}
    for number in range(10):
        q = tree.sample(rng, 1)[0]
        goals = goals_at(tree, q) if number % 2 else random_goals(rng, tree)
        found = solver.solve(goals)
        for name, goal in goals.items():
            assert (found.tools[name].q == alone[name].solve(goal).q).all()
