# SPDX-License-Identifier: Apache-2.0
"""Answers to MoveIt's requests for kinematics, without DDS: seeds, links, frames, collisions and codes."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from control_harness import arm_model
from geometry_msgs.msg import PoseStamped
from moveit_plain import FkRequest, PositionIKRequest, RobotState
from rclpy.node import Node
from sensor_msgs.msg import JointState
from small_arm import ALL_JOINTS, ARM_JOINTS, PARAMETERS, arm_urdf, folding_urdf

from ik_node.control.models import ArmModel, build_models
from ik_node.control.requests import Snapshot
from ik_node.control.settings import ArmSettings, RobotSettings
from ik_node.control.states import State
from ik_node.model.urdf.description import load_description
from ik_node.ros import moveit
from ik_node.ros.conversions import matrix_pose, pose_matrix
from ik_node.ros.frames import Frames
from ik_node.ros.moveit import Code, Query, RejectedError, forward, inverse
from ik_node.share import share_path
from ik_node.solver.solver import IkSolver
from ik_node.solver.trees import TreeSolver
from ik_node.steady import steady

Q = dict(zip(ARM_JOINTS, (0.4, 0.5, 0.9, 0.4, 0.6), strict=True))
COLLIDING = -0.05, -0.38, -0.55, -0.15  # of the folding arm; another solution does not collide
ENDED = 1e-9  # [s] over before the first look at the clock
LATER = 0.05  # [s] that a search takes
NO_NODE: Node = None  # only frames that are no links of the robot need one


@pytest.fixture(scope='module')
def little() -> ArmModel:
    return arm_model(arm_urdf(), ArmSettings(**PARAMETERS, self_collision='false'))


def asked(model: ArmModel, age: float = math.nan, **more: object) -> Query:
    """A query to an arm that stands at the middle of its limits."""
    values = model.joints.filled(dict(zip(model.first.arm.joint_names, model.first.arm.middle.tolist(), strict=True)))
    values = np.where(np.isin(model.joints.variables, ['finger']), 0.01, values)
    arm = Snapshot(model, model.first, State.HOLDING, values, values[model.index], 0.0, math.nan, age)
    return Query({'': arm}, Frames(NO_NODE), **more)


def state(**values: float) -> RobotState:
    return RobotState(JointState(name=list(values), position=list(map(float, values.values()))))


def at(model: ArmModel, link: str, frame: str = 'base_link', **values: float) -> PoseStamped:
    """The pose of a link at joint values."""
    pose = PoseStamped(pose=matrix_pose(model.link_in_base(link, model.joints.filled(values))))
    pose.header.frame_id = frame
    return pose


def rejected(query: Query, request: object, answer=inverse) -> RejectedError:
    with pytest.raises(RejectedError) as raised:
        answer(query, request)
    return raised.value


def test_a_seed_near_the_answer_gives_back_its_joints(little):
    request = PositionIKRequest(pose_stamped=at(little, 'tool0', **Q))
    request.robot_state = state(**{name: value + 0.05 for name, value in Q.items()}, finger=0.03)
    joints, said = inverse(asked(little), request)
    found = dict(zip(joints.name, joints.position, strict=True))
    assert tuple(joints.name) == ALL_JOINTS
    assert [found[name] for name in ARM_JOINTS] == pytest.approx(list(Q.values()), abs=1e-4)
    assert (found['finger'], found['other_finger']) == (0.03, -0.03)
    assert said == 'solved'


def test_of_several_solutions_that_with_the_roll_of_the_pose_is_returned(little):
    request = PositionIKRequest(pose_stamped=at(little, 'tool0', **Q))
    goal = little.first.pose_goal(pose_matrix(request.pose_stamped.pose))
    found = little.first.solver.solve_all(goal)
    other = max(found, key=lambda s: np.abs(s.q - list(Q.values())).max()).q
    other = np.clip(
        other + np.random.default_rng(0).uniform(-0.1, 0.1, 5), little.first.arm.lower, little.first.arm.upper
    )
    assert little.first.solver.solve(goal, other).lateral_error > 0.1  # the nearest one is turned
    request.robot_state = state(**dict(zip(ARM_JOINTS, other.tolist(), strict=True)))
    joints, said = inverse(asked(little), request)
    np.testing.assert_allclose(joints.position[:5], list(Q.values()), atol=1e-4)
    assert said == 'solved'


@pytest.mark.parametrize(
    ('names', 'positions'),
    [
        (['yaw', 'elbow'], [0.1]),
        (['yaw', 'yaw'], [0.1, 0.2]),
        (['yaw'], [math.nan]),
        ([], [0.1]),
        (['panda_joint1'], [0.1]),
    ],
)
def test_a_wrong_state_is_rejected(little, names, positions):
    wrong = RobotState(JointState(name=names, position=positions))
    request = PositionIKRequest(pose_stamped=at(little, 'tool0', **Q), robot_state=wrong)
    assert rejected(asked(little), request).code is Code.INVALID_ROBOT_STATE
    fk = FkRequest(fk_link_names=['tool0'], robot_state=wrong)
    assert rejected(asked(little), fk, forward).code is Code.INVALID_ROBOT_STATE


def test_an_arm_that_is_not_measured_yet_needs_a_whole_state(little):
    """Otherwise joints that the state lacks are where the arm has them."""
    request = PositionIKRequest(pose_stamped=at(little, 'tool0', **Q))
    request.robot_state = state(yaw=0.4, elsewhere=3.0)  # a joint of another robot
    joints = inverse(asked(little), request)[0]
    assert joints.position[joints.name.index('finger')] == 0.01
    query = asked(little, age=math.inf)
    rejection = rejected(query, request)
    assert rejection.code is Code.ROBOT_STATE_STALE
    assert 'shoulder' in str(rejection)
    request.robot_state = state(**Q)
    inverse(query, request)


def test_a_link_fixed_to_the_tip_is_as_good_and_another_one_is_not(little):
    request = PositionIKRequest(ik_link_name='l5', pose_stamped=at(little, 'l5', **Q), robot_state=state(**Q))
    assert inverse(asked(little), request)[0].position[:5] == pytest.approx(list(Q.values()), abs=1e-4)
    for link in ('l4', 'left', 'nonsense'):
        request.ik_link_name = link
        rejection = rejected(asked(little), request)
        assert rejection.code is Code.INVALID_LINK_NAME
        assert 'tool0' in str(rejection)
    pose = at(little, 'tool0', **Q)
    request = PositionIKRequest(ik_link_name='ignored', pose_stamped_vector=[pose], robot_state=state(**Q))
    assert inverse(asked(little), request)[1] == 'solved'  # the link of the group
    for names, poses in ((['tool0'], 2), (['tool0', 'l5'], 2)):  # one tool cannot have two poses
        request.ik_link_names, request.pose_stamped_vector = names, [pose] * poses
        assert rejected(asked(little), request).code is Code.INVALID_LINK_NAME


def two_tools(name: str, **more: object) -> tuple[Query, ArmModel, np.ndarray]:
    """A query to a shipped robot with two arms, its left arm, and where the joints are."""
    text = load_description(share_path('urdf', f'{name}.urdf.xacro'))
    own = {side: {'tip_link': f'{side}_tool0'} for side in ('left', 'right')}
    models = build_models(text, RobotSettings(ArmSettings(self_collision='false'), own), {})
    left = models['left']
    values = np.clip(left.joints.rest + 0.3, left.joints.lower, left.joints.upper)
    snapshots = {
        side: Snapshot(model, tool, State.HOLDING, values, values[tool.index], 0.0, math.nan, math.nan)
        for model in models.values()
        for side, tool in model.tools.items()
    }
    return Query(snapshots, Frames(NO_NODE), **more), left, values


@pytest.mark.slow
@pytest.mark.parametrize('name', ['two_arms', 'torso_arms'])
def test_several_tools_are_answered_together(name):
    query, left, values = two_tools(name)
    wanted = left.joints.named(values + 0.05)
    request = PositionIKRequest(
        ik_link_names=['right_tool0', 'left_tool0'],
        pose_stamped_vector=[at(left, f'{side}_tool0', '', **wanted) for side in ('right', 'left')],
    )
    joints, said = inverse(query, request)
    assert said.startswith('right: solved')
    found = left.joints.filled(dict(zip(joints.name, joints.position, strict=True)))
    for side in query.arms:
        reached, asked_for = (
            left.link_in_base(f'{side}_tool0', place) for place in (found, left.joints.filled(wanted))
        )
        np.testing.assert_allclose(reached[:3, 3], asked_for[:3, 3], atol=1e-4)
        np.testing.assert_allclose(reached[:3, 2], asked_for[:3, 2], atol=1e-3)
    request.robot_state = state(**wanted)
    joints, _ = inverse(query, request)
    found = left.joints.filled(dict(zip(joints.name, joints.position, strict=True)))
    np.testing.assert_allclose(found, values + 0.05, atol=2e-3)  # the torso stays where the seed has it
    request.pose_stamped_vector, request.ik_link_names = [], []
    request.group_name, request.pose_stamped = 'right', at(left, 'right_tool0', '', **wanted)
    assert inverse(query, request)[1].startswith('right: solved')
    request.group_name = 'arms'
    assert rejected(query, request).code is Code.INVALID_GROUP_NAME


@pytest.mark.slow
def test_tools_that_share_joints_get_the_rolls_of_their_poses(monkeypatch):
    query, left, values = two_tools('torso_arms')
    model = query.arm.model
    monkeypatch.setattr(moveit, 'TURNING', math.inf)
    wanted, seed = (left.joints.named(values) for _ in range(2))
    drawn = model.tree.sample(np.random.default_rng(0), 2)
    for named, q in zip((wanted, seed), drawn, strict=True):
        named.update(zip(model.joint_names, q.tolist(), strict=True))
    request = PositionIKRequest(
        ik_link_names=['right_tool0', 'left_tool0'],
        pose_stamped_vector=[at(left, f'{side}_tool0', '', **wanted) for side in ('right', 'left')],
        robot_state=state(**seed),
    )
    goals = {
        side: left.first.pose_goal(pose_matrix(pose.pose))
        for side, pose in zip(('right', 'left'), request.pose_stamped_vector, strict=True)
    }
    nearest = model.solve(goals, [seed[name] for name in model.joint_names])
    assert max(solution.lateral_error for solution in nearest.tools.values()) > 0.1
    assert inverse(query, request)[1] == 'right: solved; left: solved'


def test_frames_are_those_of_the_robot_where_it_is(little):
    query = asked(little)
    T = little.link_in_base('l1', query.arm.values)
    request = PositionIKRequest(pose_stamped=at(little, 'tool0', 'l1', **Q), robot_state=state(**Q))
    request.pose_stamped.pose = matrix_pose(np.linalg.inv(T) @ pose_matrix(request.pose_stamped.pose))
    assert inverse(query, request)[0].position[:5] == pytest.approx(list(Q.values()), abs=1e-4)
    request.pose_stamped.header.frame_id = 'l99'
    assert rejected(query, request).code is Code.FRAME_TRANSFORM_FAILURE
    fk = FkRequest(fk_link_names=['tool0'])
    fk.header.frame_id = 'l99'
    assert rejected(query, fk, forward).code is Code.FRAME_TRANSFORM_FAILURE


def test_what_cannot_be_reached_constraints_and_invalid_poses_are_rejected(little):
    for spoil, code, words in (
        (lambda r: setattr(r.pose_stamped.pose.position, 'x', 3.0), Code.NO_IK_SOLUTION, 'out of reach'),
        (lambda r: setattr(r.pose_stamped.pose.orientation, 'w', 7.0), Code.INVALID_GOAL_CONSTRAINTS, ''),
        (
            lambda r: setattr(r.constraints, 'orientation_constraints', [object()]),
            Code.INVALID_GOAL_CONSTRAINTS,
            'orientation_constraints',
        ),
    ):
        request = PositionIKRequest(pose_stamped=at(little, 'tool0', **Q))
        spoil(request)
        rejection = rejected(asked(little), request)
        assert rejection.code is code
        assert words in str(rejection)


def folding() -> ArmModel:
    """An arm whose hand can meet its base."""
    pytest.importorskip('coal')
    return arm_model(
        folding_urdf(),
        ArmSettings(tip_link='hand', tool_axis=(1.0, 0.0, 0.0), tool_point=(0.05, 0.0, 0.0)),
    )


@pytest.mark.slow
def test_collisions_are_avoided_or_the_answer_is_rejected():
    model = folding()
    for q, other in ((COLLIDING, True), ((0.0, -0.5, -0.1, 0.0), False)):
        named = dict(zip(model.first.arm.joint_names, q, strict=True))
        request = PositionIKRequest(pose_stamped=at(model, 'hand', 'base', **named))
        request.robot_state = state(**named)
        plain = inverse(asked(model), request)[0].position
        np.testing.assert_allclose(plain, q, atol=1e-4)
        assert model.collision.distance(np.array(plain))[0] < 0.0
        request.avoid_collisions = True
        if other:
            joints = inverse(asked(model), request)[0].position
            assert model.collision.distance(np.array(joints))[0] >= 1e-3
            np.testing.assert_allclose(model.first.arm.fk(joints)[0], model.first.arm.fk(q)[0], atol=1e-5)
        else:
            rejection = rejected(asked(model), request)
            assert rejection.code is Code.NO_IK_SOLUTION
            assert 'link "base" and link "' in str(rejection)
    request.robot_state.attached_collision_objects = [object()]
    assert rejected(asked(model), request).code is Code.COLLISION_CHECKING_UNAVAILABLE


def test_collisions_that_are_not_checked_are_left_to_the_caller_or_rejected(little):
    request = PositionIKRequest(pose_stamped=at(little, 'tool0', **Q), avoid_collisions=True)
    rejection = rejected(asked(little), request)
    assert rejection.code is Code.COLLISION_CHECKING_UNAVAILABLE
    assert 'self-collision is not checked' in str(rejection)
    assert inverse(asked(little, check_needed=False), request)[1].startswith('solved')


def test_a_search_ends_at_its_timeout(little):
    request = PositionIKRequest(pose_stamped=at(little, 'tool0', **Q), robot_state=state(**Q))
    assert inverse(asked(little, timeout=5.0), request)[1] == 'solved'
    turned = pose_matrix(request.pose_stamped.pose)
    turned[:3, 2] *= -1.0  # into its own arm
    turned[:3, 0] *= -1.0
    request.pose_stamped.pose = matrix_pose(turned)
    assert rejected(asked(little), request).code is Code.NO_IK_SOLUTION
    assert rejected(asked(little, timeout=ENDED), request).code is Code.TIMED_OUT


def spent(monkeypatch: pytest.MonkeyPatch, *searches: tuple[type, str]) -> list[float | None]:
    """Return the time budgets of all searches from now on, each of which takes LATER."""
    budgets: list[float | None] = []
    now = [0.0]

    def look() -> float:
        now[0] += 1e-6
        return now[0]

    monkeypatch.setattr(steady, 'read', look)

    def late(plain: Callable[..., object]) -> Callable[..., object]:
        def search(self, *given, **more):
            called = inspect.signature(plain).bind(self, *given, **more)
            budgets.append(called.arguments.get('time_budget'))
            now[0] += LATER
            return plain(self, *given, **more)

        return search

    for solver, name in searches:
        monkeypatch.setattr(solver, name, late(getattr(solver, name)))
    return budgets


@pytest.mark.slow
def test_tools_that_share_joints_are_searched_until_the_timeout(monkeypatch):
    query, left, values = two_tools('torso_arms', timeout=ENDED)
    one, other = (
        np.zeros_like(values),
        np.zeros_like(values),
    )  # both arms stretched, which leaves the torso no choice
    index = list(left.joints.variables).index('torso_yaw')
    one[index], other[index] = left.joints.lower[index], left.joints.upper[index]
    places = {'left': left.joints.named(one), 'right': left.joints.named(other)}
    request = PositionIKRequest(
        ik_link_names=['left_tool0', 'right_tool0'],
        pose_stamped_vector=[at(left, f'{side}_tool0', '', **place) for side, place in places.items()],
    )
    budgets = spent(monkeypatch, (TreeSolver, 'solve'))
    rejection = rejected(query, request)
    assert (rejection.code, len(budgets)) == (Code.TIMED_OUT, 1)
    assert 0.0 < budgets[0] <= ENDED
    assert 'too slow' in str(rejection)
    rejected(replace(query, timeout=0.25), request)
    assert budgets[1] <= 0.25
    request.pose_stamped_vector[1] = at(left, 'right_tool0', '', **places['left'])
    request.robot_state = state(**places['left'])
    assert inverse(replace(query, timeout=math.inf), request)[1].startswith('left: solved')
    assert budgets[2] is None


def test_other_solutions_have_what_the_first_search_left(monkeypatch):
    model = folding()
    named = dict(zip(model.first.arm.joint_names, COLLIDING, strict=True))
    request = PositionIKRequest(pose_stamped=at(model, 'hand', 'base', **named), avoid_collisions=True)
    request.robot_state = state(**named)
    budgets = spent(monkeypatch, (IkSolver, 'solve'), (IkSolver, 'solve_all'))
    inverse(asked(model, timeout=5.0), request)
    first, second = budgets
    assert (first, second) == pytest.approx((5.0, 5.0 - LATER), abs=1e-3)


def test_poses_of_any_links_are_those_at_the_given_joints(little):
    request = FkRequest(fk_link_names=['tool0', 'right', 'world'], robot_state=state(**Q, finger=0.02))
    poses, links, said = forward(asked(little), request)
    assert (links, said) == (['tool0', 'right', 'world'], '')
    for pose, link in zip(poses, links, strict=True):
        assert pose.header.frame_id == 'base_link'
        expected = little.link_in_base(link, little.joints.filled({**Q, 'finger': 0.02}))
        np.testing.assert_allclose(pose_matrix(pose.pose), expected, atol=1e-12)
    request.header.frame_id = 'l3'
    pose = forward(asked(little), request)[0][0]
    assert pose.header.frame_id == 'l3'
    values = little.joints.filled(Q)
    expected = np.linalg.inv(little.link_in_base('l3', values)) @ little.link_in_base('tool0', values)
    np.testing.assert_allclose(pose_matrix(pose.pose), expected, atol=1e-12)


def test_unknown_links_are_told_beside_the_poses_of_the_others(little):
    poses, links, said = forward(asked(little), FkRequest(fk_link_names=['tool0', 'tol0']))
    assert (len(poses), links) == (1, ['tool0'])
    assert 'tol0' in said
    assert rejected(asked(little), FkRequest(), forward).code is Code.INVALID_LINK_NAME
