# SPDX-License-Identifier: Apache-2.0
"""~/project_pose over DDS: what can be reached of a pose, without moving the arm."""

from __future__ import annotations

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from node_harness import Client, running
from sensor_msgs.msg import JointState
from small_arm import ARM_JOINTS, arm_urdf

from ik_node import Arm, Goal, IkSolver
from ik_node.ros.conversions import matrix_pose, pose_matrix
from ik_node.ros.qos import STREAM
from ik_node.tracks.curves import tip_pose

Z, ORIGIN = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)


class Asker:
    """Asks and waits for both answers."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.poses: list[PoseStamped] = []
        self.said: list[DiagnosticStatus] = []
        node = client.node
        self.queries = node.create_publisher(PoseStamped, 'ik_node/project_pose', 1)
        node.create_subscription(PoseStamped, 'ik_node/projected_pose', self.poses.append, STREAM)
        node.create_subscription(DiagnosticStatus, 'ik_node/projection', self.said.append, STREAM)
        client.wait(lambda: self.queries.get_subscription_count(), 'the subscription')

    def ask(
        self, position: object, direction: object
    ) -> tuple[PoseStamped, DiagnosticStatus, dict[str, str]]:
        count = len(self.said)
        message = PoseStamped(pose=matrix_pose(tip_pose(position, direction, Z, ORIGIN)))
        message.header.frame_id = 'base_link'
        message.header.stamp = self.client.now().to_msg()
        self.queries.publish(message)
        self.client.wait(lambda: len(self.said) > count and len(self.poses) > count, 'both answers')
        values = {pair.key: pair.value for pair in self.said[-1].values}
        assert self.poses[-1].header.stamp == message.header.stamp
        assert values['goal_stamp'] == f'{message.header.stamp.sec}.{message.header.stamp.nanosec:09d}'
        return self.poses[-1], self.said[-1], values


@pytest.fixture
def client():
    with running(arm_urdf()) as client:
        yield client


def test_the_nearest_pose_is_told_and_the_arm_stays_where_it_is(client):
    arm = Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')
    asker = Asker(client)
    before = client.position()
    point, axis = arm.fk([0.4, 0.5, 0.9, 0.4, 0.6])
    pose, said, values = asker.ask(point, axis)
    assert said.level == DiagnosticStatus.OK
    assert values['status'] == 'solved'
    assert float(values['roll_error']) >= 0.0
    assert pose.header.frame_id == 'base_link'
    np.testing.assert_allclose(pose_matrix(pose.pose)[:3, 3], point, atol=1e-5)
    q = [float(values[f'joint {name}']) for name in ARM_JOINTS]
    np.testing.assert_allclose(arm.fk(q)[0], point, atol=1e-5)

    far = np.add(point, [3.0, 0.0, 0.0])
    pose, said, values = asker.ask(far, axis)
    best = IkSolver(arm).solve(Goal(far, axis))
    assert values['status'] == 'unreachable'
    assert 'out of reach' in said.message
    assert float(values['position_error']) == pytest.approx(best.position_error, abs=1e-4)
    reached = pose_matrix(pose.pose)
    assert np.linalg.norm(reached[:3, 3] - far) == pytest.approx(best.position_error, abs=1e-4)
    np.testing.assert_array_equal(client.position(), before)
    assert all(status.message != 'moving' for status in client.about('~/project_pose'))


def test_a_stopped_arm_answers_and_an_invalid_pose_is_rejected(client):
    asker = Asker(client)
    client.call('ik_node/stop')
    asker.ask((0.1, 0.2, 0.3), (0.0, 0.0, 1.0))
    bad = PoseStamped()
    bad.header.frame_id = 'base_link'
    bad.pose.orientation.w = 3.0
    asker.queries.publish(bad)
    client.wait_said('~/project_pose rejected')


def test_joints_get_the_pose_of_the_tip_there(client):
    poses: list[PoseStamped] = []
    queries = client.node.create_publisher(JointState, 'ik_node/fk_joint_states', 1)
    client.node.create_subscription(PoseStamped, 'ik_node/fk_pose', poses.append, STREAM)
    client.wait(queries.get_subscription_count, 'the subscription')
    arm = Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')
    before = client.position()
    message = client.joints(elbow=0.9, yaw=0.4)
    message.header.stamp = client.now().to_msg()
    queries.publish(message)
    client.wait(lambda: poses, 'the answer')
    assert poses[0].header.stamp == message.header.stamp
    assert poses[0].header.frame_id == 'base_link'
    q = dict(zip(ARM_JOINTS, before, strict=True)) | {'elbow': 0.9, 'yaw': 0.4}
    point, axis = arm.fk([q[name] for name in ARM_JOINTS])
    T = pose_matrix(poses[0].pose)
    np.testing.assert_allclose(T[:3, 3], point, atol=1e-9)
    np.testing.assert_allclose(T[:3, 2], axis, atol=1e-9)
    queries.publish(client.joints(nonsense=1.0))
    client.wait_said('~/fk_joint_states rejected')
    np.testing.assert_array_equal(client.position(), before)
