# SPDX-License-Identifier: Apache-2.0
"""The arms in urdf/: read without a word of warning, shaped and numbered as documented."""

from __future__ import annotations

import shutil
from math import cos, hypot, radians, sin

import numpy as np
import pytest
from lxml import etree
from shared_files import shared_path

from ik_node import Arm, Tree
from ik_node.errors import FileError, InputError
from ik_node.model.arm import default_tip
from ik_node.model.urdf.link_lengths import LinkLengths
from ik_node.model.urdf.reader import load_description, read_urdf
from ik_node.startup.arguments import ROBOTS, SUFFIX, URDF, tools_file, tools_in

pytestmark = pytest.mark.slow

# name: effective degrees of freedom, movable joints off the arm
ARMS = {
    'ball_joint_arm': (5, []),
    'moveo_like': (5, []),
    'prismatic_arm': (5, []),
    'seed_arm': (5, []),
    'so101_like': (4, ['gripper']),
    'xarm5_like': (4, ['left_finger_joint', 'right_finger_joint']),
}
PAIRS = {'torso_arms': ['torso_yaw'], 'two_arms': []}  # name: joints that the tools left and right share
arms = pytest.mark.parametrize('name', ARMS)


def path(name):
    return URDF / f'{name}{SUFFIX}'


def read(name):
    return read_urdf(load_description(path(name)))


def elements(text):
    """Return <robot> without comments and white space: xacro writes the file's own path into a comment."""
    return etree.fromstring(text.encode(), etree.XMLParser(remove_comments=True, remove_blank_text=True))


def check_inertias(root):
    for inertia in root.iter('inertia'):
        xx, yy, zz = sorted(float(inertia.get(key)) for key in ('ixx', 'iyy', 'izz'))
        assert 0 < xx <= yy <= zz <= xx + yy


@pytest.mark.parametrize('name', [*ARMS, *PAIRS])
def test_robots_are_sound_wherever_their_folder_lies(name, tmp_path, monkeypatch):
    assert sorted([*ARMS, *PAIRS]) == list(ROBOTS)
    assert bool(tools_file(name)) == (name in PAIRS)
    robot, root = read(name), elements(load_description(path(name)))
    assert (robot.warnings, robot.name, robot.root) == ((), name, 'base_link')
    assert root.find('link').find('inertial') is None, 'KDL takes no inertia on the root link'
    materials = {material.get('name') for material in root.findall('material')}
    check_inertias(root)
    for link in root.findall('link'):
        looks, collides = (
            [etree.tostring(each.find('geometry')) for each in link.findall(tag)] for tag in ('visual', 'collision')
        )
        assert looks == collides
        assert {visual.find('material').get('name') for visual in link.findall('visual')} <= materials
        assert link.get('name').endswith('tool0') or looks
        if not link.get('name').endswith(('base_link', 'tool0')):
            assert float(link.find('inertial/mass').get('value')) > 0
    assert all(float(limit.get('effort')) > 0 for limit in root.iterfind('joint/limit'))
    folder = tmp_path / 'a folder with spaces'
    shutil.copytree(URDF, folder)
    monkeypatch.chdir(tmp_path)
    assert etree.tostring(elements(load_description(folder / path(name).name))) == etree.tostring(root)


@arms
def test_joints_and_effective_degrees_of_freedom(name):
    arm = Arm.from_file(path(name))
    effective, extra = ARMS[name]
    assert (arm.tip_link, arm.n, arm.effective_dof) == ('tool0', 5, effective)
    assert [j.name for j in arm.robot.movable if j.name not in arm.joint_names] == extra
    assert any(arm.prismatic) == (name == 'prismatic_arm')
    assert (arm.lower < arm.upper).all()
    assert not arm.continuous.any()
    assert arm.robot.chain('tool0')[-1].type == 'fixed'
    assert 'tool0' not in {joint.parent for joint in arm.robot.joints.values()}


@arms
def test_each_length_is_an_argument_that_moves_one_joint(name):
    lengths = LinkLengths.read(path(name))
    assert list(lengths.values) == ['upper_arm', 'forearm', 'hand']
    before = read_urdf(lengths.description())
    assert before.joints.keys() == read(name).joints.keys()
    for number, (link, length) in enumerate(lengths.values.items()):
        factor = (0.7, 1.5)[number % 2]  # the range of the sliders in the viewer
        text = lengths.changed(**{link: factor * length}).description()
        changes = [
            np.linalg.norm(joint.origin[:3, 3] - before.joints[joint.name].origin[:3, 3])
            for joint in read_urdf(text).chain('tool0')
        ]
        assert sorted(changes)[-2] == 0.0
        assert max(changes) == pytest.approx(abs(factor - 1.0) * length)
        root = elements(text)
        check_inertias(root)
        for size in root.iter('box', 'cylinder'):
            assert min(map(float, size.get('size', size.get('length', '')).split())) > 0


def test_other_lengths_are_rejected(tmp_path):
    lengths = LinkLengths.read(path('seed_arm'), {'hand_length': '0.1'})
    assert lengths.values == {'upper_arm': 0.32026, 'forearm': 0.30019, 'hand': 0.1}
    with pytest.raises(InputError, match=r'.leg.; lengths: .upper_arm., .forearm., .hand.'):
        lengths.changed(leg=1.0)
    with pytest.raises(InputError, match='hand'):
        lengths.changed(hand=0.0)
    (tmp_path / 'plain.urdf').write_text('<robot name="plain"/>')
    assert not LinkLengths.read(tmp_path / 'plain.urdf').values
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


def turn(axis, angle):
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


@pytest.mark.parametrize('name', PAIRS)
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
    ours, real = read(name), read_urdf(load_description(shared_path('arms', f'{other}.urdf')))
    joints = [joint for joint in ours.chain('tool0') if joint.type != 'fixed']
    for joint in joints:
        twin = real.joints[joint.name]
        assert (joint.lower, joint.upper) == pytest.approx((twin.lower, twin.upper), abs=1e-3), joint.name
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = {joint.name: rng.uniform(joint.lower, joint.upper) for joint in joints}
        place, twin_place = ours.link_pose(link, values), real.link_pose(other_link, values)
        np.testing.assert_allclose(place[:3, 3], twin_place[:3, 3], atol=tolerance)
    if name == 'so101_like':  # the tool looks where the real gripper does
        place, twin = ours.link_pose('tool0', values), real.link_pose('gripper_frame_link', values)
        np.testing.assert_allclose(place[:3, :3], twin[:3, :3], atol=2e-5)
        assert hypot(*(place[:3, 3] - twin[:3, 3])) == pytest.approx(0.0079, abs=3e-4)


def test_fingers_of_the_xarm_open_together_and_the_ball_joint_meets_in_one_point():
    xarm, ball = read('xarm5_like'), read('ball_joint_arm')
    fingers = [xarm.link_pose(f'{side}_finger', {'left_finger_joint': 0.03})[:3, 3] for side in ('left', 'right')]
    assert hypot(*(fingers[0] - fingers[1])) == pytest.approx(0.06)
    values = {'ball_yaw': radians(50), 'ball_pitch': radians(-40), 'ball_roll': radians(30)}
    places = [ball.link_pose(link, values)[:3, 3] for link in ('ball_outer', 'ball_middle', 'upper_arm')]
    assert np.ptp(places, axis=0) == pytest.approx(0, abs=1e-15)


def test_a_tool0_that_nothing_moves_is_no_tip():
    robot = read_urdf("""<robot name="r">
      <link name="base"/> <link name="tool0"/> <link name="hand"/>
      <joint name="a" type="fixed"> <parent link="base"/> <child link="tool0"/> </joint>
      <joint name="b" type="continuous"> <parent link="base"/> <child link="hand"/> </joint>
    </robot>""")
    assert default_tip(robot).link == 'hand'
