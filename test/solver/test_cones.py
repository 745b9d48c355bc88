# SPDX-License-Identifier: Apache-2.0
"""Goals with a cone of directions and a tolerance of their own, against grids of plain goals."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from cases import arm_of
from made_arms import general_arm, parallel_arm, random_unit, wrist_arm

from ik_node import Arm, Goal, IkSolver, Solution, Status, Tool, Tree, TreeSolver
from ik_node.errors import InputError
from ik_node.model.urdf.reader import load_description
from ik_node.solver.goal import Cause, pack_goals
from ik_node.startup.arguments import SUFFIX, URDF

pytestmark = pytest.mark.slow

POSITION, DIRECTION = 1e-6, 1e-4  # m and rad, as of a new IkSolver
MARGIN = 1e-3  # rad by which an answer may be farther from the seed than the best of a grid
GRID = 4000
CONES = (0.05, 0.3, 1.0, 2.5)


def angle(a, b):
    return 2.0 * math.atan2(np.linalg.norm(a - b), np.linalg.norm(a + b))


def around(axis, cone: float, count: int, rng) -> np.ndarray:
    """Directions (count, 3), uniform over the cone, a third of them on its edge."""
    z = 1.0 - rng.random(count) * (1.0 - math.cos(cone))
    z[::3] = math.cos(cone)
    x = np.cross(axis, random_unit(rng))
    x /= np.linalg.norm(x)
    turn = rng.uniform(-math.pi, math.pi, count)[:, None]
    return z[:, None] * axis + np.sqrt(1.0 - z * z)[:, None] * (np.cos(turn) * x + np.sin(turn) * np.cross(axis, x))


def attainable_goals(arm: Arm, rng, count: int):
    """Goals that a configuration within the limits meets, and seeds."""
    for q, seed in zip(arm.sample(rng, count), arm.sample(rng, count), strict=True):
        position, axis = arm.fk(q)
        cone = float(rng.choice(CONES))
        yield Goal(position, around(axis, cone, 2, rng)[1], cone=cone), seed


def check_met(arm: Arm, goal: Goal, found: Solution) -> None:
    position, axis = arm.fk(found.q)
    assert found.solved, (found.status, found.reason)
    assert np.linalg.norm(position - goal.position) <= POSITION
    assert angle(axis, goal.direction) <= goal.cone + DIRECTION
    assert found.direction_error == pytest.approx(angle(axis, goal.direction), abs=1e-12)
    assert (found.q >= arm.lower).all()
    assert (found.q <= arm.upper).all()


def move(a, b):
    return np.abs(np.asarray(a) - b).max()


def grid(solver: IkSolver, goal: Goal, seed, rng) -> float:
    """The least move from seed to a solution for one of many directions in the cone; inf if there is none."""
    arm = solver.arm
    if arm.effective_dof == 5:
        directions = around(goal.direction, goal.cone, GRID, rng)
    else:  # the tool axis sweeps a plane, for each angle of joint 1 that reaches the position
        directions = [np.empty((0, 3))]
        for start in arm.sample(rng, 12):
            found = solver.solve(Goal(goal.position), start)
            if found.solved:
                frames = arm.frames(found.q)
                normal, axis = frames[1], frames[2 * len(arm.joints) + 1]
                t = np.linspace(-math.pi, math.pi, 1000)[:, None]
                along = (normal @ axis) * normal
                swept = along + np.cos(t) * (axis - along) + np.sin(t) * np.cross(normal, axis)
                directions.append(swept[swept @ goal.direction >= math.cos(goal.cone)])
        directions = np.vstack(directions)
    goals = pack_goals(np.tile(goal.position, (len(directions), 1)), directions)
    q, errors, solved = np.empty((len(goals), arm.n)), np.empty((len(goals), 2)), np.empty(len(goals), dtype=bool)
    form, shells = solver.closed_form.constants, solver._pipeline.shells  # as solve_batch, without its reasons
    solver._search.search_many(form, True, goals, shells, 0, seed[None].copy(), q, errors, solved)
    return np.abs(q[solved] - seed).max(axis=1).min(initial=math.inf)


ARMS = {
    'seed_arm': lambda: arm_of('seed_arm'),
    'so101': lambda: arm_of('so101'),
    'so101_like': lambda: arm_of('so101_like'),
    'moveo_like': lambda: arm_of('moveo_like'),
    'px150': lambda: arm_of('px150'),
    'xarm5': lambda: arm_of('xarm5'),
    **{f'parallel_arm({k})': lambda k=k: parallel_arm(k) for k in range(2)},
    **{f'parallel_arm({k}, roll)': lambda k=k: parallel_arm(k, roll=True) for k in range(2)},
    **{f'wrist_arm({k})': lambda k=k: wrist_arm(k) for k in range(2)},
}
OTHERS = {
    'general_arm': lambda: general_arm(3),
    'ur5e': lambda: arm_of('ur5e'),
    'prismatic_arm': lambda: arm_of('prismatic_arm'),
    'ball_joint_arm': lambda: arm_of('ball_joint_arm'),
    'magician_rail': lambda: arm_of('magician_rail'),
}


@pytest.mark.parametrize('name', ARMS)
def test_the_solution_is_the_nearest_of_all_directions_in_the_cone(name):
    arm, rng = ARMS[name](), np.random.default_rng(43)
    solver = IkSolver(arm)
    for goal, seed in attainable_goals(arm, rng, 6):
        found = solver.solve(goal, seed)
        check_met(arm, goal, found)
        assert move(found.q, seed) <= grid(solver, goal, seed, rng) + MARGIN, (goal, seed)


@pytest.mark.parametrize('name', OTHERS)
def test_arms_without_a_formula_meet_attainable_goals_near_the_seed(name):
    arm, rng = OTHERS[name](), np.random.default_rng(44)
    solver = IkSolver(arm)
    for goal, seed in attainable_goals(arm, rng, 8):
        found = solver.solve(goal, seed)
        check_met(arm, goal, found)
        stays = solver.solve(Goal(*arm.fk(seed), cone=goal.cone), seed)
        assert move(stays.q, seed) < 2e-5


@pytest.mark.nightly
@pytest.mark.parametrize('name', [*ARMS, *OTHERS])
def test_no_attainable_goal_is_unreachable(name):
    """Ten thousand goals over all arms; every one is met."""
    arm, rng = {**ARMS, **OTHERS}[name](), np.random.default_rng(45)
    solver, missed = IkSolver(arm), []
    for goal, seed in attainable_goals(arm, rng, 600):
        found = solver.solve(goal, seed)
        assert found.status is not Status.UNREACHABLE, (goal, seed, found.reason)
        if found.solved:
            check_met(arm, goal, found)
        else:
            missed.append((goal, seed, found.reason))
    assert not missed, missed[:3]


@pytest.mark.parametrize('name', ['so101_like', 'px150', 'seed_arm', 'parallel_arm(0, roll)'])
def test_unreachable_is_what_no_direction_of_a_grid_contradicts(name):
    arm, rng = ARMS[name](), np.random.default_rng(46)
    solver, seen = IkSolver(arm), set()
    for q, seed in zip(arm.sample(rng, 12), arm.sample(rng, 12), strict=True):
        goal = Goal(arm.fk(q)[0], random_unit(rng), cone=0.2)
        found = solver.solve(goal, seed)
        best = grid(solver, goal, seed, rng)
        seen.add(found.status)
        assert found.solved or best == math.inf, (goal, found.reason)
        if found.status is Status.UNREACHABLE:
            assert found.reason.cause is Cause.DIRECTION_CONSTRAINED
            assert found.reason.amount == pytest.approx(found.direction_error - goal.cone)
            assert 'outside the cone' in found.reason.sentence
    assert (Status.UNREACHABLE in seen) == (arm.effective_dof == 4)
    if name in ('so101_like', 'px150'):  # their limits leave out directions too, which is no proof
        assert Status.NOT_FOUND in seen


def test_a_position_out_of_reach_is_unreachable_with_the_closest_pose():
    arm = arm_of('so101_like')
    solver = IkSolver(arm)
    for cone in (0.3, math.pi):
        plain, found = (solver.solve(Goal((3.0, 0.0, 0.2), (0, 0, 1), cone=c)) for c in (0.0, cone))
        assert found.status is Status.UNREACHABLE
        assert found.reason == plain.reason
        assert found.reason.cause is Cause.TOO_FAR
        np.testing.assert_array_equal(found.q, plain.q)


def test_a_cone_of_pi_leaves_the_direction_free_and_none_leaves_it_as_it_is():
    arm, rng = arm_of('seed_arm'), np.random.default_rng(47)
    solver = IkSolver(arm)
    for q, seed in zip(arm.sample(rng, 5), arm.sample(rng, 5), strict=True):
        position, axis = arm.fk(q)
        narrow = solver.solve(Goal(position, axis, cone=0.0), seed)
        np.testing.assert_array_equal(narrow.q, solver.solve(Goal(position, axis), seed).q)
        wide = solver.solve(Goal(position, -axis, cone=math.pi), seed)
        assert move(wide.q, seed) <= move(narrow.q, seed)
        at_rest = solver.solve(Goal(*arm.fk(seed), cone=0.3), seed)
        assert move(at_rest.q, seed) < 2e-5


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'general_arm', 'ur5e'])
def test_tracking_moves_on_without_jumps_and_stays_in_the_cone(name):
    arm, rng = {**ARMS, **OTHERS}[name](), np.random.default_rng(48)
    solver = IkSolver(arm)
    start = arm.middle + 0.15
    other = start + rng.uniform(-0.5, 0.5, arm.n)
    way = [arm.fk(start + share * (other - start)) for share in np.linspace(0.0, 1.0, 60)]
    q = before = solver.solve(Goal(*way[0], cone=0.3), start).q
    largest = np.abs(other - start).max() / 59
    for position, axis in way[1:]:
        goal = Goal(position, axis, cone=0.3)
        found = solver.track(goal, q, before)
        check_met(arm, goal, found)
        assert move(found.q, q) <= 6.0 * largest
        before, q = q, found.q


def test_where_the_branch_ends_tracking_tells_and_offers_another():
    arm, rng = arm_of('seed_arm'), np.random.default_rng(49)
    solver, ended = IkSolver(arm), 0
    for goal, seed in attainable_goals(arm, rng, 60):
        found = solver.track(goal, seed)
        if found.other_branch is None:
            continue
        ended += 1
        assert found.status is Status.NOT_FOUND
        assert found.reason.cause is Cause.BRANCH_ENDS
        check_met(arm, goal, solver.evaluate(goal, found.other_branch))
    assert ended


def test_the_list_has_the_direction_of_the_nearest_and_is_not_complete():
    arm, rng = arm_of('seed_arm'), np.random.default_rng(50)
    solver = IkSolver(arm)
    for goal, seed in attainable_goals(arm, rng, 5):
        nearest, every = solver.solve(goal, seed), solver.solve_all(goal, seed)
        assert not every.complete
        assert min(move(one.q, nearest.q) for one in every) < 0.01  # two that nearly merge count as one
        for one in every:
            check_met(arm, goal, one)
            assert arm.fk(one.q)[1] == pytest.approx(arm.fk(nearest.q)[1], abs=1e-5)
    beyond = solver.solve_all(Goal((3, 0, 0), (0, 0, 1), cone=0.3))
    assert not beyond
    assert beyond.complete
    with pytest.raises(InputError, match='locked_joints are not supported for goals with a cone'):
        solver.solve_all(goal, seed, locked_joints=[arm.joint_names[0]])


def test_a_tolerance_replaces_that_of_the_solver():
    arm, rng = arm_of('so101_like'), np.random.default_rng(51)
    solver, loose = IkSolver(arm), IkSolver(arm, position_tolerance=0.01)
    for q in arm.sample(rng, 5):
        position, axis = arm.fk(q)
        aside = Goal(position, axis + 0.02 * random_unit(rng))
        given = Goal(position, aside.direction, tolerance=0.01)
        for call in ('solve', 'track'):
            expected, found = getattr(loose, call)(aside, q), getattr(solver, call)(given, q)
            assert (found.status, found.q.tolist()) == (expected.status, expected.q.tolist())
        assert solver.evaluate(Goal(position + 0.009 * random_unit(rng), tolerance=0.01), q).solved
        assert not solver.evaluate(Goal(position + 0.011 * random_unit(rng), tolerance=0.01), q).solved
        given = Goal(position, axis, cone=0.3, tolerance=0.01)
        nearest = solver.solve(given, q + 0.3)
        assert nearest.solved
        assert nearest.position_error <= POSITION  # the tolerance is no freedom to come nearer to the seed
        assert nearest.direction_error <= 0.3 + 2e-6
    end = arm.fk(solver.solve(Goal((3.0, 0.0, 0.2))).q)[0]
    just_beyond = end + 0.005 * (end / np.linalg.norm(end))
    assert solver.solve(Goal(just_beyond)).status is Status.UNREACHABLE
    assert solver.solve(Goal(just_beyond, tolerance=0.01)).solved
    assert solver.solve(Goal(just_beyond, (0, 0, 1), cone=math.pi, tolerance=0.01)).solved


def test_goals_keep_cone_and_tolerance_and_refuse_others():
    goal = Goal((0.3, 0, 0.2), (0, 0, -1), cone=0.3, tolerance=0.005)
    for same in (copy.copy(goal), pickle.loads(pickle.dumps(goal))):
        assert (same.cone, same.tolerance) == (0.3, 0.005)
        assert repr(same) == repr(goal)
    assert repr(goal).endswith('cone=0.3, tolerance=0.005)')
    for cone in (-0.1, 3.2, math.nan, '0.3', None, True, np.array([0.3]), np.array([0.1, 0.2])):
        with pytest.raises(InputError, match='cone must be an angle from 0 to pi'):
            Goal((0.3, 0, 0.2), (0, 0, -1), cone=cone)
    for tolerance in (0.0, -1.0, math.nan, math.inf, '1'):
        with pytest.raises(InputError, match='tolerance must be a finite number greater than 0'):
            Goal((0.3, 0, 0.2), tolerance=tolerance)
    with pytest.raises(InputError, match='cone needs a direction'):
        Goal((0.3, 0, 0.2), cone=0.3)


def test_what_does_not_support_a_cone_says_so():
    arm = arm_of('seed_arm')
    goal, solver = Goal((0.3, 0, 0.2), (0, 0, -1), cone=0.3), IkSolver(arm)
    for call in (solver.prove, solver.steps, lambda goal: solver.solve_nearby(goal, arm.middle)):
        with pytest.raises(InputError, match='does not support goals with a cone'):
            call(goal)
    ccd = IkSolver(arm, method='ccd')
    for call in (ccd.solve, lambda goal: ccd.track(goal, arm.middle)):
        with pytest.raises(InputError, match='by method lm only, got method ccd'):
            call(goal)
    torso = Tree.from_urdf(
        load_description(str(URDF / f'torso_arms{SUFFIX}')), {side: Tool(f'{side}_tool0') for side in ('left', 'right')}
    )
    for room in ({'cone': 0.3}, {'tolerance': 0.01}):
        with pytest.raises(InputError, match='left shares joints with other tools'):
            TreeSolver(torso).solve({'left': Goal((0.3, 0.2, 0.4), (0, 0, -1), **room)})


def test_tools_that_share_no_joints_have_the_answers_of_their_own_solvers():
    text = load_description(str(URDF / f'two_arms{SUFFIX}'))
    tree = Tree.from_urdf(text, {side: Tool(f'{side}_tool0') for side in ('left', 'right')})
    goal = Goal(*tree.fk(tree.middle + 0.2)['left'], cone=0.3)
    found = TreeSolver(tree).solve({'left': goal}, free=['right']).tools['left']
    check_met(tree.arms['left'], goal, found)
    own = IkSolver(tree.arms['left']).solve(goal, tree.middle[tree.columns['left']])
    np.testing.assert_array_equal(found.q, own.q)


def test_the_lateral_axis_is_served_too():
    arm, rng = arm_of('so101_like'), np.random.default_rng(52)
    solver = IkSolver(arm)
    for q, seed in zip(arm.sample(rng, 4), arm.sample(rng, 4), strict=True):
        position, axis = arm.fk(q)
        lateral = arm.frames(q)[-1]
        found = solver.solve(Goal(position, axis, lateral, cone=0.2), seed)
        assert found.solved
        assert found.lateral_error is not None
        assert found.lateral_error <= solver.solve(Goal(position, axis, lateral), seed).lateral_error + 0.5


@pytest.mark.parametrize('name', ['xarm5_like', 'so101_like'])
def test_a_direction_across_the_arm_is_unreachable(name):
    """There the formula leaves joints free, and does not decide."""
    arm = arm_of(name)
    solver, rng = IkSolver(arm), np.random.default_rng(4)
    for q in arm.sample(rng, 10):
        position, direction = arm.fk(q)
        across = np.cross(direction, arm.jacobian(q)[3:, 1])  # axis 2, about which the tool axis turns
        found = solver.solve(Goal(position, across / np.linalg.norm(across)))
        assert found.status is Status.UNREACHABLE
        assert found.reason.cause is Cause.DIRECTION_CONSTRAINED
        assert found.position_error < 1e-6
        assert found.direction_error > 0.1
