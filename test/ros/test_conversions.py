# SPDX-License-Identifier: Apache-2.0
"""Conversions: what goes in comes out, and what must not go in is rejected with the reason."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion
from hypothesis import given
from hypothesis import strategies as st
from sensor_msgs.msg import JointState

from ik_node.errors import InputError
from ik_node.ros.conversions import (
    check_stamp,
    joint_state,
    joint_values,
    matrix_pose,
    point_array,
    pose_matrix,
    seconds,
)

NOW = 1_700_000_000_500_000_000
SECOND = 1_000_000_000


def turned(x: float, y: float, z: float, w: float, place=(0.1, 0.2, 0.3)) -> Pose:
    return Pose(
        position=Point(x=place[0], y=place[1], z=place[2]), orientation=Quaternion(x=x, y=y, z=z, w=w)
    )


def test_a_quarter_turn_about_z_takes_x_to_y():
    T = pose_matrix(turned(0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5)))
    assert T[:3, :3] @ [1.0, 0.0, 0.0] == pytest.approx([0.0, 1.0, 0.0])
    assert T[:3, 3].tolist() == [0.1, 0.2, 0.3]
    assert T[3].tolist() == [0.0, 0.0, 0.0, 1.0]


@given(st.lists(st.floats(-1.0, 1.0), min_size=4, max_size=4).filter(lambda q: sum(x * x for x in q) > 0.01))
def test_poses_survive_the_way_there_and_back(quat):
    quat = np.array(quat) / np.linalg.norm(quat)
    T = pose_matrix(turned(*quat.tolist()))
    assert np.abs(T[:3, :3].T @ T[:3, :3] - np.eye(3)).max() < 1e-12
    assert np.abs(pose_matrix(matrix_pose(T)) - T).max() < 1e-12


@pytest.mark.parametrize('length', [0.9995, 1.0005])
def test_a_nearly_unit_quaternion_is_normalised(length):
    T = pose_matrix(turned(length, 0.0, 0.0, 0.0))
    assert pytest.approx(np.diag([1.0, -1.0, -1.0]), abs=1e-15) == T[:3, :3]


@pytest.mark.parametrize(
    ('pose', 'says'),
    [
        (Pose(orientation=Quaternion(w=0.0)), 'length 1 .* of length 0'),
        (turned(0.0, 0.0, 0.0, 1.01), 'of length 1.01'),
        (turned(0.0, 0.0, 0.0, 2.0), 'of length 2'),
        (turned(math.nan, 0.0, 0.0, 1.0), 'quaternion must be finite'),
        (turned(0.0, math.inf, 0.0, 1.0), 'quaternion must be finite'),
        (turned(1e308, 1e308, 0.0, 1.0), 'length'),
        (turned(0.0, 0.0, 0.0, 1.0, place=(math.nan, 0.0, 0.0)), 'position must be finite'),
        (turned(0.0, 0.0, 0.0, 1.0, place=(0.0, -math.inf, 0.0)), 'position must be finite'),
    ],
)
def test_bad_poses_are_rejected(pose, says):
    with pytest.raises(InputError, match=says):
        pose_matrix(pose)


def test_bad_points_are_rejected():
    assert point_array(Point(x=1.0, y=2.0, z=3.0)).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(InputError, match='finite'):
        point_array(Point(z=math.nan))


@pytest.mark.parametrize('offset', [0.0, 0.9, -0.9])
def test_stamps_near_now_pass(offset):
    then = NOW - int(offset * SECOND)
    check_stamp(Time(sec=then // SECOND, nanosec=then % SECOND), NOW, 1.0)


def test_a_zero_stamp_is_now():
    check_stamp(Time(), NOW, 1.0)


@pytest.mark.parametrize(
    ('offset', 'says'),
    [
        (1.1, '1.1 s old, but goal_timeout allows 1 s$'),
        (-2.5, '2.5 s in the future'),
        (1.6e9, 'is use_sim_time the same everywhere'),
    ],
)
def test_stale_and_future_stamps_are_rejected(offset, says):
    then = NOW - int(offset * SECOND)
    with pytest.raises(InputError, match=says):
        check_stamp(Time(sec=then // SECOND, nanosec=then % SECOND), NOW, 1.0)


def test_joint_values_are_by_name():
    message = JointState(name=['b', 'a'], position=[2.0, 1.0])
    assert joint_values(message, ['a', 'b', 'c']) == {'a': 1.0, 'b': 2.0}


@pytest.mark.parametrize(
    ('names', 'positions', 'says'),
    [
        ([], [], 'got 0 positions for 0 names'),
        (['a'], [], 'got 0 positions for 1 names'),
        (['a'], [1.0, 2.0], 'got 2 positions for 1 names'),
        (['a', 'x'], [1.0, 2.0], 'unknown joints: "x"; joints: "a", "b"'),
        (['a', 'a'], [1.0, 2.0], 'given twice: "a"'),
        (['a', 'b'], [math.nan, 2.0], 'not finite: "a"'),
        (['a', 'b'], [1.0, -math.inf], 'not finite: "b"'),
    ],
)
def test_bad_joint_states_are_rejected(names, positions, says):
    with pytest.raises(InputError, match=says):
        joint_values(JointState(name=names, position=positions), ['a', 'b'])


def test_joint_state_holds_what_it_is_given():
    stamp = Time(sec=3, nanosec=500_000_000)
    message = joint_state(stamp, ('a', 'b'), np.array([1.0, 2.0]), np.array([0.5, 0.0]))
    assert list(message.name) == ['a', 'b']
    assert list(message.position) == [1.0, 2.0]
    assert list(message.velocity) == [0.5, 0.0]
    assert seconds(message.header.stamp) == 3.5
