# SPDX-License-Identifier: Apache-2.0
"""The services of MoveIt with their queue, with the services of moveit_msgs or their stand-ins."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from control_harness import arm_model
from moveit_plain import PositionIKRequest, srv
from node_harness import Client, running
from small_arm import ALL_JOINTS, ARM_JOINTS, PARAMETERS, arm_urdf

from ik_node import Arm
from ik_node.control.settings import ArmSettings
from ik_node.ros import moveit
from ik_node.ros.conversions import matrix_pose, pose_matrix
from ik_node.ros.frames import Frames
from ik_node.ros.interfaces import COMPUTE_FK, COMPUTE_IK, SOLVE_IK
from ik_node.ros.moveit import Code, MoveItServices, Query
from ik_node.steady import steady
from ik_node.tracks import tip_pose

Z, ORIGIN = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
Q = (0.4, 0.5, 0.9, 0.4, 0.6)
SUCCESS, FAILURE, TIMED_OUT, NO_IK_SOLUTION, COLLISION_CHECKING_UNAVAILABLE = 1, 99999, -6, -31, -22


class Worker:
    """Stands in for the thread of the services: does at once what it is given."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def submit(self, work: Callable[..., Any], *given: Any) -> Future:
        done: Future = Future()
        done.set_result(work(*given))
        return done

    def shutdown(self, **_: Any) -> None: ...


@pytest.fixture(autouse=True)
def served_moveit(monkeypatch: pytest.MonkeyPatch) -> None:
    for service, kind in ((COMPUTE_IK, srv.GetPositionIK), (SOLVE_IK, srv.GetPositionIK)):
        monkeypatch.setitem(vars(service), 'type', kind)
    monkeypatch.setitem(vars(COMPUTE_FK), 'type', srv.GetPositionFK)
    monkeypatch.setattr(moveit, 'ThreadPoolExecutor', Worker)


@pytest.fixture
def client():
    with running(arm_urdf()) as client:
        yield client


def query(client: Client, q: Any = Q, away: float = 0.0) -> Any:
    arm = Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')
    point, axis = arm.fk(q)
    request = srv.GetPositionIK.Request()
    request.ik_request.pose_stamped = client.pose(tip_pose(np.add(point, [away, 0.0, 0.0]), axis, Z, ORIGIN))
    return request


def ask(client: Client, request: Any, name: str = 'ik_node/compute_ik') -> Any:
    return client._call(srv.GetPositionIK, name, request)


@pytest.mark.slow
def test_joints_that_reach_a_pose_are_answered_and_the_arm_stays(client):
    before = client.position()
    request = query(client)
    seed = request.ik_request.robot_state.joint_state
    seed.name, seed.position = list(ARM_JOINTS), list(Q)
    response = ask(client, request)
    assert response.error_code.val == SUCCESS
    assert response.error_code.message.startswith('solved')
    assert response.error_code.source == '/ik_node'
    found = response.solution.joint_state
    assert tuple(found.name) == ALL_JOINTS
    arm = Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')
    np.testing.assert_allclose(arm.fk(found.position[:5])[0], arm.fk(Q)[0], atol=1e-5)
    np.testing.assert_array_equal(client.wait_still(), before)

    response = ask(client, query(client, away=3.0))
    assert response.error_code.val == NO_IK_SOLUTION
    assert 'out of reach' in response.error_code.message
    assert list(response.solution.joint_state.name) == []


def test_the_plugin_may_ask_for_collisions_that_are_not_checked(client):
    request = query(client)
    request.ik_request.avoid_collisions = True
    request.ik_request.group_name = 'arm'
    request.ik_request.ik_link_name = 'tool0'
    assert ask(client, request, 'solve_ik').error_code.val == SUCCESS
    assert ask(client, request).error_code.val == COLLISION_CHECKING_UNAVAILABLE


def test_poses_of_links_are_answered(client):
    request = srv.GetPositionFK.Request(fk_link_names=['tool0', 'left'])
    request.robot_state.joint_state.name = list(ARM_JOINTS)
    request.robot_state.joint_state.position = list(Q)
    response = client._call(srv.GetPositionFK, 'ik_node/compute_fk', request)
    assert response.error_code.val == SUCCESS
    arm = Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')
    pose = response.pose_stamped[0]
    assert pose.header.frame_id == 'base_link'
    np.testing.assert_allclose(pose_matrix(pose.pose)[:3, 3], arm.fk(Q)[0], atol=1e-9)
    request.fk_link_names = ['tool0', 'nonsense']
    response = client._call(srv.GetPositionFK, 'ik_node/compute_fk', request)
    assert response.error_code.val == -18
    assert (list(response.fk_link_names), len(response.pose_stamped)) == (['tool0'], 1)


@pytest.mark.slow
def test_many_questions_do_not_hold_up_goals(client):
    asker = client.node.create_client(srv.GetPositionIK, 'ik_node/compute_ik')
    client.wait(asker.service_is_ready, 'the service')
    rng = np.random.default_rng(1)
    futures = []
    for k in range(60):
        futures.append(asker.call_async(query(client, rng.uniform(-2.0, 2.0, 5), 3.0 * (k % 2))))
        if k == 30:
            client.send('goal_joints', client.joints(yaw=0.5))
            client.wait(lambda: client.about('goal_joints'), 'the answer of the goal')
    client.wait(lambda: all(future.done() for future in futures), 'all answers')
    codes = [future.result().error_code.val for future in futures]
    assert codes == [NO_IK_SOLUTION if k % 2 else SUCCESS for k in range(len(codes))]


def test_an_answer_that_comes_too_late_is_none(client, monkeypatch):
    request = query(client)
    request.ik_request.timeout.nanosec = 1
    with monkeypatch.context() as patch:
        times = iter(range(10))
        patch.setattr(moveit, 'steady', lambda: next(times))  # each look takes a second
        response = ask(client, request)
    assert response.error_code.val == TIMED_OUT
    request.ik_request.timeout.sec = 5
    assert ask(client, request).error_code.val == SUCCESS


def test_without_a_robot_there_is_no_answer():
    with running(None) as client:
        request = srv.GetPositionIK.Request()
        request.ik_request.pose_stamped.pose = matrix_pose(np.eye(4))
        response = ask(client, request)
        assert response.error_code.val == FAILURE
        assert 'robot_description' in response.error_code.message


WAITED = 2.0  # [s] in the queue


@pytest.mark.parametrize(('timeout', 'left'), [(5, 3.0), (0, float('inf'))])
def test_the_wait_in_the_queue_counts_as_part_of_the_timeout(timeout, left):
    model = arm_model(arm_urdf(), ArmSettings(**PARAMETERS, self_collision='false'))
    node: Any = SimpleNamespace(
        context=SimpleNamespace(on_shutdown=lambda _: None),
        create_service=lambda *_, **__: None,
        get_logger=lambda: SimpleNamespace(debug=lambda _: None),
        get_fully_qualified_name=lambda: '/ik_node',
    )
    tool: Any = SimpleNamespace(tool='', snapshot=lambda: SimpleNamespace(model=model))
    moveit = MoveItServices(node, [tool], Frames(node))
    given: list[Query] = []

    def answer(*asked: Any) -> str:
        given.append(asked[-1])
        return 'solved'

    request = SimpleNamespace(ik_request=PositionIKRequest(timeout=Duration(sec=timeout)))
    response: Any = SimpleNamespace(error_code=SimpleNamespace(val=0))
    moveit._work(answer, request, response, steady() - WAITED)
    moveit.close()
    assert response.error_code.val == Code.SUCCESS
    assert given[0].timeout <= left
    assert (given[0].timeout == left) == (timeout == 0)
