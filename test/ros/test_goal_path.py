# SPDX-License-Identifier: Apache-2.0
"""goal_path: straight lines are followed, or rejected with the place and the reason."""

from __future__ import annotations

import math

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseArray, PoseStamped
from node_harness import running
from small_arm import ARM_JOINTS, arm_urdf

from ik_node.model.arm import Arm
from ik_node.ros.conversions import matrix_pose
from ik_node.tracks.curves import tip_pose

START = {'yaw': 0.3, 'shoulder': 0.5, 'elbow': 0.9, 'roll': 0.4, 'wrist': 0.6}


@pytest.fixture(scope='module')
def arm() -> Arm:
    return Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')


@pytest.fixture
def client():
    with running(arm_urdf()) as client:
        client.send('goal_joints', client.joints(**START))
        client.wait(lambda: np.abs(client.position() - list(START.values())).max() < 1e-6, 'the start')
        client.wait_still()
        yield client


def path(*poses: tuple, frame: str = 'base_link') -> PoseArray:
    """A path through tools, each (position, direction)."""
    message = PoseArray(
        poses=[matrix_pose(tip_pose(*pose, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))) for pose in poses]
    )
    message.header.frame_id = frame
    return message


def test_a_path_is_followed_in_straight_lines(client, arm):
    start, direction = arm.fk(list(START.values()))
    corner, end = np.add(start, [0.0, 0.08, 0.03]), np.add(start, [-0.05, 0.0, 0.05])
    message = path((corner, direction), (end, direction))
    message.header.stamp = client.now().to_msg()
    mark = len(client.samples)
    status = client.answer('goal_path', message)
    assert status.level == DiagnosticStatus.OK
    values = {pair.key: pair.value for pair in status.values}
    assert (values['status'], values['state']) == ('solved', 'moving')
    assert values['goal_stamp'] == f'{message.header.stamp.sec}.{message.header.stamp.nanosec:09d}'
    client.wait_said('arrived at the end of the path')
    assert client.said()['goal_stamp'] == values['goal_stamp']

    rows = [[s.position[s.name.index(name)] for name in ARM_JOINTS] for s in client.samples[mark:]]
    tools = [arm.fk(q) for q in rows]
    points = np.array([tool[0] for tool in tools])
    away = []
    for a, b in ((start, corner), (corner, end)):
        share = np.clip((points - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
        away.append(np.linalg.norm(points - a - share[:, None] * (b - a), axis=1))
    assert np.min(away, axis=0).max() <= 2e-4
    assert max(np.linalg.norm(tool[1] - direction) for tool in tools) <= math.radians(0.1)
    np.testing.assert_allclose(points[-1], end, atol=1e-5)
    assert min(np.linalg.norm(points - corner, axis=1)) < 2e-3


def test_what_cannot_be_followed_is_rejected_with_the_place_and_the_reason(client, arm):
    start, direction = arm.fk(list(START.values()))
    before = client.position()
    status = client.answer('goal_path', path((np.add(start, [2.0, 0.0, 0.0]), direction)))
    assert status.level == DiagnosticStatus.ERROR
    assert status.message.startswith('goal_path rejected: after 0.')
    assert ' of 2 m: ' in status.message
    np.testing.assert_array_equal(client.wait_still(), before)


BAD = {
    'no pose': (lambda m: m.poses.clear(), 'from 1 to 100 poses, got 0'),
    'too many': (lambda m: m.poses.extend(m.poses * 100), 'from 1 to 100 poses, got 101'),
    'nan': (lambda m: setattr(m.poses[0].position, 'x', math.nan), 'pose 1: the position must be finite'),
    'quaternion': (lambda m: setattr(m.poses[0].orientation, 'w', 5.0), 'pose 1: the quaternion must have'),
    'far away': (lambda m: setattr(m.poses[0].position, 'x', 1e300), 'pose 1: position must be within'),
    'frame': (lambda m: setattr(m.header, 'frame_id', 'nowhere'), 'nowhere'),
    'stamp': (lambda m: setattr(m.header.stamp, 'sec', 5), 'the stamp is'),
}


def test_bad_messages_are_rejected(client, arm):
    start, direction = arm.fk(list(START.values()))
    before = client.position()
    for name, (spoil, reason) in BAD.items():
        message = path((np.add(start, [0.0, 0.05, 0.0]), direction))
        spoil(message)
        status = client.answer('goal_path', message)
        assert status.message.startswith('goal_path rejected: '), name
        assert reason in status.message, name
    np.testing.assert_array_equal(client.wait_still(), before)


def test_parameters_of_paths(client, arm):
    start, direction = arm.fk(list(START.values()))
    assert all(r.successful for r in client.set_parameters(path_partial=True, path_corners='blend'))
    status = client.answer('goal_path', path((np.add(start, [2.0, 0.0, 0.0]), direction)))
    assert status.level == DiagnosticStatus.WARN
    assert status.message.startswith('unreachable: after 0.')
    client.wait_said('arrived at the end of the part that can be followed')
    assert not client.set_parameters(path_corners='round')[0].successful


def test_a_path_waits_for_rest_and_a_stop_ends_it(client, arm):
    start, direction = arm.fk(list(START.values()))
    client.answer('goal_path', path((np.add(start, [0.0, 0.1, 0.0]), direction)))
    status = client.answer('goal_path', path((start, direction)))
    assert status.message == 'goal_path rejected: the arm is moving: a path begins at rest'
    assert client.call('ik_node/stop').success
    client.wait_said('stopped')
    client.wait_still()
    status = client.answer('goal_path', path((start, direction)))
    assert 'resume' in status.message


def test_goals_replace_paths(client, arm):
    start, direction = arm.fk(list(START.values()))
    client.answer('goal_path', path((np.add(start, [0.0, 0.1, 0.0]), direction)))
    pose = client.pose(tip_pose(start, direction, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)))
    assert isinstance(pose, PoseStamped)
    client.answer('goal_pose', pose)
    client.wait_said('arrived at the goal')
    np.testing.assert_allclose(arm.fk(client.position())[0], start, atol=2e-4)
