# SPDX-License-Identifier: Apache-2.0
"""JointSet: which joints are free, what the others follow, and how fast they may go."""

import numpy as np
import pytest
from small_arm import ALL_JOINTS, arm_urdf

from ik_node.model.joint_set import JointSet
from ik_node.model.urdf.reader import read_urdf


@pytest.fixture
def joints() -> JointSet:
    return JointSet(read_urdf(arm_urdf()))


def test_mimic_joints_are_published_but_not_free(joints):
    assert sorted(joints.names) == sorted(ALL_JOINTS)
    assert 'other_finger' not in joints.variables
    values = dict(zip(joints.variables, np.arange(joints.n) / 100.0, strict=True))
    positions, velocities = joints.expand(joints.filled(values), joints.filled(values))
    found = dict(zip(joints.names, positions, strict=True))
    assert found['other_finger'] == -values['finger']
    assert all(found[name] == value for name, value in values.items())
    assert (positions == velocities).all()  # no offsets here


def test_offsets_move_the_place_but_not_the_speed():
    urdf = arm_urdf().replace('multiplier="-1"', 'multiplier="-0.5" offset="0.01"')
    joints = JointSet(read_urdf(urdf))
    values = joints.filled({'finger': 0.04})
    positions, velocities = joints.expand(values, values)
    assert positions[joints.names.index('other_finger')] == pytest.approx(0.01 - 0.02)
    assert velocities[joints.names.index('other_finger')] == pytest.approx(-0.02)


def test_no_follower_is_driven_faster_than_it_may_go():
    joints = JointSet(read_urdf(arm_urdf().replace('multiplier="-1"', 'multiplier="-4"')))
    assert joints.velocity[joints.variables.index('finger')] == pytest.approx(2.0 / 4.0)
    assert joints.velocity[joints.variables.index('yaw')] == 2.0


def test_a_follower_of_a_fixed_joint_stays_at_its_offset():
    joints = JointSet(
        read_urdf(arm_urdf().replace('joint="finger" multiplier="-1"', 'joint="stand" offset="-0.02"'))
    )
    positions, velocities = joints.expand(joints.upper, joints.velocity)
    assert positions[joints.names.index('other_finger')] == -0.02
    assert velocities[joints.names.index('other_finger')] == 0.0


def test_joints_without_a_value_rest_within_their_limits():
    joints = JointSet(read_urdf(arm_urdf(lower=0.5, upper=2.5)))
    values = joints.filled({'elbow': 0.3})
    assert values[joints.variables.index('yaw')] == 1.5
    assert values[joints.variables.index('elbow')] == 0.3
    assert values[joints.variables.index('roll')] == 0.0


def test_names_and_places_go_together(joints):
    values = np.arange(joints.n, dtype=float)
    assert joints.named(values)['elbow'] == values[joints.indices(['elbow'])[0]]


def test_a_group_whose_joints_all_follow_fixed_ones_has_no_variables():
    text = (
        '<robot name="r"><link name="a"/><link name="b"/><link name="c"/>'
        '<joint name="f" type="fixed"><parent link="a"/><child link="b"/></joint>'
        '<joint name="m" type="continuous"><parent link="b"/><child link="c"/>'
        '<limit velocity="1"/><mimic joint="f" offset="0.25"/></joint></robot>'
    )
    joints = JointSet(read_urdf(text))
    assert (joints.n, joints.names, joints.velocity.tolist()) == (0, ('m',), [])
    positions, velocities = joints.expand(np.empty(0), np.empty(0))
    assert (positions.tolist(), velocities.tolist()) == ([0.25], [0.0])
