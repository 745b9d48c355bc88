# SPDX-License-Identifier: Apache-2.0
"""Conversions: what goes in comes out, and what must not go in is rejected, by content or by size."""

from __future__ import annotations

import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, PointStamped, Pose, PoseStamped, Quaternion
from hypothesis import given
from hypothesis import strategies as st
from sensor_msgs.msg import JointState
from small_arm import arm_urdf
from std_msgs.msg import Header

from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.ros import interfaces
from ik_node.ros.conversions import (
    check_stamp,
    joint_state,
    joint_values,
    matrix_pose,
    point_array,
    pose_matrix,
    seconds,
)
from ik_node.ros.frames import goal_in_base

NOW = 1_700_000_000_500_000_000
SECOND = 1_000_000_000


def turned(x: float, y: float, z: float, w: float, place=(0.1, 0.2, 0.3)) -> Pose:
    return Pose(position=Point(x=place[0], y=place[1], z=place[2]), orientation=Quaternion(x=x, y=y, z=z, w=w))


@pytest.mark.parametrize('length', [1.0, 0.9995, 1.0005])
def test_a_quarter_turn_about_z_takes_x_to_y(length):
    half = length * math.sqrt(0.5)
    T = pose_matrix(turned(0.0, 0.0, half, half))
    assert T[:3, :3] @ [1.0, 0.0, 0.0] == pytest.approx([0.0, 1.0, 0.0], abs=1e-15)
    assert T[:3, 3].tolist() == [0.1, 0.2, 0.3]
    assert T[3].tolist() == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.slow
@given(st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4).filter(lambda q: sum(x * x for x in q) > 0.01))
def test_poses_survive_the_way_there_and_back(quat):
    quat = np.array(quat) / np.linalg.norm(quat)
    T = pose_matrix(turned(*quat.tolist()))
    assert np.abs(T[:3, :3].T @ T[:3, :3] - np.eye(3)).max() < 1e-12
    assert np.abs(pose_matrix(matrix_pose(T)) - T).max() < 1e-12


@pytest.mark.parametrize(
    ('pose', 'says'),
    [
        (turned(0.0, 0.0, 0.0, 0.0), 'of length 0'),
        (turned(0.0, 0.0, 0.0, 1.01), 'of length 1.01'),
        (turned(math.nan, 0.0, 0.0, 1.0), 'quaternion'),
        (turned(0.0, math.inf, 0.0, 1.0), 'quaternion'),
        (turned(1e308, 1e308, 0.0, 1.0), 'length'),
        (turned(0.0, 0.0, 0.0, 1.0, place=(math.nan, 0.0, 0.0)), 'position'),
        (turned(0.0, 0.0, 0.0, 1.0, place=(0.0, -math.inf, 0.0)), 'position'),
    ],
)
def test_bad_poses_are_rejected(pose, says):
    with pytest.raises(InputError, match=says):
        pose_matrix(pose)
    if 'position' in says:
        with pytest.raises(InputError):
            point_array(pose.position)


@pytest.mark.parametrize('offset', [0.0, 0.9, -0.9, NOW / SECOND])  # a stamp of zero is now
def test_stamps_near_now_pass(offset):
    then = NOW - int(offset * SECOND)
    check_stamp(Time(sec=then // SECOND, nanosec=then % SECOND), NOW, 1.0)


@pytest.mark.parametrize(('offset', 'says'), [(1.1, '1.1 s old'), (-2.5, '2.5 s in'), (1.6e9, 'use_sim_time')])
def test_stale_and_future_stamps_are_rejected(offset, says):
    then = NOW - int(offset * SECOND)
    with pytest.raises(InputError, match=says):
        check_stamp(Time(sec=then // SECOND, nanosec=then % SECOND), NOW, 1.0)


@pytest.mark.parametrize(
    ('names', 'positions', 'says'),
    [
        ([], [], '0 positions for 0 names'),
        (['a'], [], '0 positions for 1 names'),
        (['a'], [1.0, 2.0], '2 positions for 1 names'),
        (['a', 'x'], [1.0, 2.0], 'unknown joints: "x"'),
        (['a', 'a'], [1.0, 2.0], 'given twice: "a"'),
        (['a', 'b'], [math.nan, 2.0], 'not finite: "a"'),
        (['a', 'b'], [1.0, -math.inf], 'not finite: "b"'),
    ],
)
def test_bad_joint_states_are_rejected(names, positions, says):
    good = JointState(name=['b', 'a'], position=[2.0, 1.0])
    assert joint_values(good, ['a', 'b', 'c']) == {'a': 1.0, 'b': 2.0}
    with pytest.raises(InputError, match=says):
        joint_values(JointState(name=names, position=positions), ['a', 'b'])


def test_joint_state_holds_what_it_is_given():
    stamp = Time(sec=3, nanosec=500_000_000)
    message = joint_state(stamp, ('a', 'b'), np.array([1.0, 2.0]), np.array([0.5, 0.0]))
    assert list(message.name) == ['a', 'b']
    assert list(message.position) == [1.0, 2.0]
    assert list(message.velocity) == [0.5, 0.0]
    assert seconds(message.header.stamp) == 3.5


ARM = Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')


@pytest.mark.parametrize('kind', [PoseStamped, PointStamped])
@pytest.mark.parametrize('far', [2e9, 1.7e308, float('nan')])
def test_a_goal_where_none_may_be_is_none(kind: type, far: float) -> None:
    message = kind()
    place = message.pose.position if kind is PoseStamped else message.point
    place.x, place.y, place.z = far, -far, far
    message.header.frame_id = 'l2'
    assert goal_in_base(ARM, message, {'yaw': 0.3, 'shoulder': 0.7}) is None
    place.x = place.y = place.z = 0.1
    assert goal_in_base(ARM, message, {'yaw': 0.3, 'shoulder': 0.7}) is not None


PACKAGE = Path(interfaces.__file__).parents[1]


def test_no_program_subscribes_without_a_limit():
    known = {'demo.py', 'interfaces.py', 'neighbours.py', 'recording.py', 'outputs.py'}
    found = {
        path.name
        for path in PACKAGE.rglob('*.py')
        if re.search(r'\bcreate_subscription\(', path.read_text(encoding='utf-8'))
    }
    assert found <= known | {'teleop_keys.py'}


@pytest.mark.parametrize(
    'topic',
    [
        value
        for value in vars(interfaces).values()
        if isinstance(value, interfaces.SubscribedTopic) and value.type is not None  # its package is installed
    ],
)
def test_large_messages_are_refused_before_they_are_converted(topic, monkeypatch):
    """Without a node: what rclpy gives to the callback of a subscription."""
    taken, converted, logged, refused = [], [], [], []
    log = SimpleNamespace(error=lambda text, **_: logged.append(text))
    node = SimpleNamespace(create_subscription=lambda *arguments, **_: arguments[2], get_logger=lambda: log)
    monkeypatch.setattr(interfaces, 'deserialize_message', lambda data, _: converted.append(len(data)) or Header())
    large, small = bytes(topic.largest + 1), bytes(topic.largest)
    topic.subscription(node, taken.append)(large, {})
    assert (len(taken), len(logged)) == (0, 1)
    topic.subscription(node, taken.append, refuse=lambda *_: refused.append(1))(large, {})
    assert (len(taken), len(logged), len(refused)) == (0, 1, 1)
    assert max(converted, default=0) <= interfaces.HEADER
    topic.subscription(node, taken.append)(small, {})
    assert len(taken) == 1
