# SPDX-License-Identifier: Apache-2.0
"""The arms in urdf/: read without a word of warning, shaped and numbered as documented."""

from __future__ import annotations

import shutil
from math import cos, hypot, radians, sin
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from shared_files import shared_path

from ik_node import Arm, Tree
from ik_node.errors import FileError, InputError
from ik_node.model.default_tip import default_tip
from ik_node.model.urdf.link_lengths import LinkLengths
from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.startup.robots import ROBOTS, SUFFIX, URDF, tools_file, tools_in

# name: effective degrees of freedom, movable joints off the arm
ARMS = {
    'ball_joint_arm': (5, []),
    'moveo_like': (5, []),
    'prismatic_arm': (5, []),
    'seed_arm': (5, []),
    'so101_like': (4, ['gripper']),
    'xarm5_like': (4, ['left_finger_joint', 'right_finger_joint']),
}
# name: joints that the tools left and right share
PAIRS = {'torso_arms': ['torso_yaw'], 'two_arms': []}
arms = pytest.mark.parametrize('name', ARMS)
pairs = pytest.mark.parametrize('name', PAIRS)
robots = pytest.mark.parametrize('name', [*ARMS, *PAIRS])


def path(name: str) -> Path:
    return URDF / f'{name}{SUFFIX}'


def elements(text: str) -> etree._Element:
    """Return <robot> without comments and white space: xacro writes the file's own path into a comment."""
    return etree.fromstring(text.encode(), etree.XMLParser(remove_comments=True, remove_blank_text=True))


def test_every_robot_is_known_here():
    assert sorted([*ARMS, *PAIRS]) == list(ROBOTS)
    assert {name for name in ROBOTS if tools_file(name)} == set(PAIRS)


@robots
def test_reads_without_a_warning(name):
    robot = read_urdf(load_description(path(name)))
    assert robot.warnings == ()
    assert (robot.name, robot.root) == (name, 'base_link')


@arms
def test_joints_and_effective_degrees_of_freedom(name):
    arm = Arm.from_file(path(name))
    effective, extra = ARMS[name]
    assert (arm.tip_link, arm.n, arm.effective_dof) == ('tool0', 5, effective)
    assert [j.name for j in arm.robot.movable if j.name not in arm.joint_names] == extra
    assert any(arm.prismatic) == (name == 'prismatic_arm')
    assert (arm.lower < arm.upper).all()
    assert not arm.continuous.any()


@arms
def test_tool0_is_fixed_at_the_end_of_the_arm(name):
    robot = read_urdf(load_description(path(name)))
    assert robot.chain('tool0')[-1].type == 'fixed'
    assert 'tool0' not in {joint.parent for joint in robot.joints.values()}


@robots
def test_expands_wherever_its_folder_lies(name, tmp_path, monkeypatch):
    folder = tmp_path / 'a folder with spaces'
    shutil.copytree(URDF, folder)
    monkeypatch.chdir(tmp_path)
    there, here = (elements(load_description(p)) for p in (folder / path(name).name, path(name)))
    assert etree.tostring(there) == etree.tostring(here)


@robots
def test_shapes_collide_as_they_look_and_masses_are_those_of_bodies(name):
    root = elements(load_description(path(name)))
    links = root.findall('link')
    assert links[0].find('inertial') is None, 'KDL takes no inertia on the root link'
    materials = {material.get('name') for material in root.findall('material')}
    for link in links:
        shapes = [
            [etree.tostring(e.find('geometry')) for e in link.findall(tag)] for tag in ('visual', 'collision')
        ]
        assert shapes[0] == shapes[1]
        assert {visual.find('material').get('name') for visual in link.findall('visual')} <= materials
        assert link.get('name').endswith('tool0') or shapes[0]
        if not link.get('name').endswith(('base_link', 'tool0')):
            inertia = link.find('inertial/inertia')
            xx, yy, zz = sorted(float(inertia.get(key)) for key in ('ixx', 'iyy', 'izz'))
            assert float(link.find('inertial/mass').get('value')) > 0
            assert 0 < xx <= yy <= zz <= xx + yy
    for joint in root.findall('joint[limit]'):
        assert float(joint.find('limit').get('effort')) > 0


@arms
def test_each_length_is_an_argument_that_moves_one_joint(name):
    lengths = LinkLengths.read(path(name))
    assert list(lengths.values) == ['upper_arm', 'forearm', 'hand']
    before = read_urdf(lengths.description())
    assert before.joints.keys() == read_urdf(load_description(path(name))).joints.keys()
    for link, length in lengths.values.items():
        for factor in (0.7, 1.5):  # the range of the sliders in the viewer
            text = lengths.changed(**{link: factor * length}).description()
            changes = [
                np.linalg.norm(joint.origin[:3, 3] - before.joints[joint.name].origin[:3, 3])
                for joint in read_urdf(text).chain('tool0')
            ]
            assert sorted(changes)[-2] == 0.0
            assert max(changes) == pytest.approx(abs(factor - 1.0) * length)
            for inertia in elements(text).iter('inertia'):
                xx, yy, zz = sorted(float(inertia.get(key)) for key in ('ixx', 'iyy', 'izz'))
                assert 0 < xx <= yy <= zz <= xx + yy
            for size in elements(text).iter('box', 'cylinder'):
                assert min(map(float, size.get('size', size.get('length', '')).split())) > 0


def test_other_lengths_are_rejected(tmp_path):
    lengths = LinkLengths.read(path('seed_arm'), {'hand_length': '0.1'})
    assert lengths.values == {'upper_arm': 0.32026, 'forearm': 0.30019, 'hand': 0.1}
    with pytest.raises(InputError, match=r'no length .leg.; lengths: .upper_arm., .forearm., .hand.'):
        lengths.changed(leg=1.0)
    with pytest.raises(InputError, match='hand must be'):
        lengths.changed(hand=0.0)
    file = tmp_path / 'plain.urdf'
    file.write_text('<robot name="plain"/>')
    assert not LinkLengths.read(file).values
    with pytest.raises(FileError, match='plain'):
        LinkLengths.read(tmp_path / 'plain.txt')


# Offset from the joint before, axis and limit [deg] of each joint; then the tool point and the tool axis.
SEED = [
    ((0, 0, 0.1152), 'z', 180),
    ((-0.0655, 0, 0.046), 'x', 90),
    ((0.01247, 0.00074, 0.32026), 'x', 150),
    ((0.02984, 0, 0.30019), 'x', 130),
    ((0.04334, 0, 0.04200), 'z', 180),
]
SEED_TOOL, SEED_AXIS = (0.083, 0, 0.010), (1, 0, 0)


def turn(axis: str, angle: float) -> np.ndarray:
    c, s = cos(angle), sin(angle)
    return np.array({'x': [[1, 0, 0], [0, c, -s], [0, s, c]], 'z': [[c, -s, 0], [s, c, 0], [0, 0, 1]]}[axis])


def test_seed_arm_has_its_published_numbers():
    arm = Arm.from_file(path('seed_arm'))
    limits = np.radians([limit for _, _, limit in SEED])
    np.testing.assert_allclose([arm.lower, arm.upper], [-limits, limits], rtol=1e-15)
    for q in arm.sample(np.random.default_rng(0), 20):
        position, rotation = np.zeros(3), np.eye(3)
        for (offset, axis, _), angle in zip(SEED, q, strict=True):
            position = position + rotation @ offset
            rotation = rotation @ turn(axis, angle)
        found, direction = arm.fk(q)
        np.testing.assert_allclose(found, position + rotation @ SEED_TOOL, atol=1e-14)
        np.testing.assert_allclose(direction, rotation @ SEED_AXIS, atol=1e-14)


@pairs
def test_both_limbs_of_a_pair_are_seed_arms(name):
    tree = Tree.from_file(path(name), tools_in([tools_file(name)]))
    seed, shared = Arm.from_file(path('seed_arm')), PAIRS[name]
    assert list(tree.arms) == ['left', 'right']
    assert tree.joint_names[: len(shared)] == tuple(shared)
    rng, mounts = np.random.default_rng(0), []
    for side, arm in tree.arms.items():
        assert arm.joint_names[len(shared) :] == tuple(f'{side}_{joint}' for joint in seed.joint_names)
        np.testing.assert_array_equal(arm.limits[:, len(shared) :], seed.limits)
        mounts.append(arm.fk(np.zeros(arm.n))[0] - seed.fk(np.zeros(5))[0])
        for q in seed.sample(rng, 10):
            found, direction = arm.fk([*np.zeros(len(shared)), *q])
            point, axis = seed.fk(q)
            np.testing.assert_allclose(found, point + mounts[-1], atol=1e-14)
            np.testing.assert_allclose(direction, axis, atol=1e-14)
    left, right = mounts
    assert left[1] > 0.2, 'the left arm is on the left: y, REP 103'
    np.testing.assert_allclose(left * [1, -1, 1], right, atol=1e-15)


@pytest.mark.parametrize(
    ('name', 'link', 'other', 'other_link', 'tolerance'),
    [
        ('so101_like', 'gripper_link', 'so101', 'gripper_link', 3e-4),  # the real one is 0.2 mm off its plane
        ('xarm5_like', 'tool0', 'xarm5', 'link_tcp', 1e-5),  # the real file writes pi/2 as 1.5708
    ],
)
def test_moves_as_the_real_arm(name, link, other, other_link, tolerance):
    """Same joint names, limits and places, so that a real arm's joint values show the real arm's pose."""
    ours = read_urdf(load_description(path(name)))
    real = read_urdf(load_description(shared_path('arms', f'{other}.urdf')))
    joints = [joint for joint in ours.chain('tool0') if joint.type != 'fixed']
    for joint in joints:
        twin = real.joints[joint.name]
        assert (joint.lower, joint.upper) == pytest.approx((twin.lower, twin.upper), abs=1e-3), joint.name
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = {joint.name: rng.uniform(joint.lower, joint.upper) for joint in joints}
        place, twin_place = ours.link_pose(link, values), real.link_pose(other_link, values)
        np.testing.assert_allclose(place[:3, 3], twin_place[:3, 3], atol=tolerance)


def test_so101_tool_looks_where_the_real_gripper_does():
    ours = read_urdf(load_description(path('so101_like')))
    real = read_urdf(load_description(shared_path('arms', 'so101.urdf')))
    values = {
        'shoulder_pan': 0.4,
        'shoulder_lift': -0.3,
        'elbow_flex': 0.9,
        'wrist_flex': 0.5,
        'wrist_roll': 1.1,
    }
    place, twin = ours.link_pose('tool0', values), real.link_pose('gripper_frame_link', values)
    np.testing.assert_allclose(place[:3, :3], twin[:3, :3], atol=2e-5)
    assert hypot(*(place[:3, 3] - twin[:3, 3])) == pytest.approx(0.0079, abs=3e-4)


def test_fingers_of_the_xarm_open_and_close_together():
    robot = read_urdf(load_description(path('xarm5_like')))
    places = {
        side: robot.link_pose(f'{side}_finger', {'left_finger_joint': 0.03})[:3, 3]
        for side in ('left', 'right')
    }
    assert hypot(*(places['left'] - places['right'])) == pytest.approx(0.06)


def test_ball_joint_meets_in_one_point():
    robot = read_urdf(load_description(path('ball_joint_arm')))
    values = {'ball_yaw': radians(50), 'ball_pitch': radians(-40), 'ball_roll': radians(30)}
    places = [robot.link_pose(link, values)[:3, 3] for link in ('ball_outer', 'ball_middle', 'upper_arm')]
    assert np.ptp(places, axis=0) == pytest.approx(0, abs=1e-15)


def test_a_tool0_that_nothing_moves_is_no_tip():
    robot = read_urdf("""<robot name="r">
      <link name="base"/> <link name="tool0"/> <link name="hand"/>
      <joint name="a" type="fixed"> <parent link="base"/> <child link="tool0"/> </joint>
      <joint name="b" type="continuous"> <parent link="base"/> <child link="hand"/> </joint>
    </robot>""")
    assert default_tip(robot).link == 'hand'
