# SPDX-License-Identifier: Apache-2.0
"""Which link is the tip where none is given, and what is said of it."""

from __future__ import annotations

import tracemalloc

import pytest

from ik_node import Arm
from ik_node.errors import ChainError
from ik_node.model.arm import default_tip
from ik_node.model.robot import JointSet
from ik_node.model.urdf.reader import load_description, read_urdf

RIGHT = ['so101', 'wx250', 'px150', 'px100', 'vx300s', 'xarm5', 'omx_f', 'hebi_a2085_05', 'lrmate200ic5h']
RIGHT += ['ur5e', 'scara_yguel', 'magician_rail', 'ikpy_prismatic_mixed', 'derived_ur5e_wrist3_fixed']
RIGHT += ['so100', 'koch_v1_1', 'omx_l', 'low_cost_robot']  # without their only jaw
HAND = {
    'moveo': 'Link_5',
    'phantomx_reactor_wrist': 'gripper_guide_link',
    'braccio_ros2': 'link_5',
    'magician': 'magician_link_gripper_core',
    'panda': 'panda_hand',  # its tcp is one of many ends of fixed joints
}
JAW = {'so100': 'jaw', 'koch_v1_1': 'gripper', 'low_cost_robot': 'gripper-moving-part-dumb_v2_1'}


def chain(*joints, xyz='0.1 0.02 0'):
    """A robot of (name, type, parent, child)."""
    links = dict.fromkeys(link for joint in joints for link in joint[2:4])
    return (
        '<robot name="r">'
        + ''.join(f'<link name="{link}"/>' for link in links)
        + ''.join(
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{xyz}"/><axis xyz="{(*more, "0 0 1")[0]}"/>'
            f'<limit lower="-1" upper="{(*more, 1, 1)[1]}" velocity="1"/></joint>'
            for name, kind, parent, child, *more in joints
        )
        + '</robot>'
    )


ARM = (
    ('a', 'revolute', 'base', 'upper'),
    ('b', 'revolute', 'upper', 'wrist'),
    ('c', 'fixed', 'wrist', 'hand'),
)
JAWS = (('l', 'prismatic', 'hand', 'left'), ('r', 'prismatic', 'hand', 'right'))
FRAME = ('f', 'fixed', 'wrist', 'between')


def notes(arm):
    return [warning for warning in arm.warnings if 'tip_link is not set' in warning]


@pytest.mark.slow
def test_real_arms_have_the_tip_that_is_meant(shared, arms_index):
    """Fingers are left out and named in one note."""
    for name in RIGHT:
        robot = read_urdf(load_description(shared / 'arms' / f'{name}.urdf'))
        assert default_tip(robot).link == arms_index[name]['tips'][0]['tip_link'], name
    for name, hand in HAND.items():
        arm = Arm.from_file(shared / 'arms' / f'{name}.urdf')
        assert (arm.tip_link, list(arm.joint_names)) == (hand, arms_index[name]['tips'][0]['joints'])
        finger = max(arm.robot.leaves().items(), key=lambda leaf: leaf[1])[0]
        (note,) = notes(arm)
        assert f'other ends: "{finger}"' in note
    for name, jaw in JAW.items():
        arm = Arm.from_file(shared / 'arms' / f'{name}.urdf')
        (note,) = notes(arm)
        assert f'"{jaw}"' in note
        assert Arm.from_file(shared / 'arms' / f'{name}.urdf', jaw).n == arm.n + 1
        assert Arm.from_file(shared / 'arms' / f'{name}.urdf', arm.tip_link).warnings == arm.robot.warnings
    with pytest.raises(ChainError, match=r'branch at "ground"; .* "L_link_eef"'):
        Arm.from_file(shared / 'arms' / 'dual_xarm5.urdf')


@pytest.mark.parametrize(
    ('last', 'tip'),
    [
        (('gripper', 'moving_jaw', '0 1 0'), 'hand'),
        (('joint_6', 'Left_Finger', '1 0 0'), 'hand'),
        (('claw', 'l', '0 1 0', 'prismatic', 0.03), 'hand'),
        (('joint_6', 'gripper', '0 1 0'), 'hand'),
        (('joint_5', 'gripper', '0 1 0', 'revolute', 1.0, 4), 'gripper'),  # the fifth joint of an arm
        (('wrist_pitch', 'gripper', '0 1 0'), 'gripper'),
        (('joint_6', 'gripper_base_link', '0 0 1'), 'gripper_base_link'),  # it rolls the tool
        (('lift', 'gripper', '0 0 1', 'prismatic', 0.3), 'gripper'),
        (('joint_6', 'flange', '0 1 0'), 'flange'),
    ],
)
def test_the_last_joint_is_a_jaw_only_by_its_name_and_axis(last, tip):
    """Joints that pitch, one that rolls about z, and a last one."""
    name, child, axis, kind, upper, n = (*last, *('revolute', 1.0, 5)[len(last) - 3 :])
    joints = [(f'j{k}', 'revolute', f'l{k}', f'l{k + 1}', '0 1 0') for k in range(n - 1)]
    joints += [('roll', 'revolute', f'l{n - 1}', 'hand'), (name, kind, 'hand', child, axis, upper)]
    arm = Arm.from_urdf(chain(*joints, xyz='0.01 0 0.05').replace('lower="-1"', 'lower="0"'))
    assert arm.tip_link == tip
    assert bool(arm.warnings) == (tip == 'hand')


@pytest.mark.parametrize(
    ('joints', 'tip'),
    [
        ((*ARM, FRAME, *JAWS), 'between'),  # the one frame between fingers
        ((*ARM, FRAME, JAWS[0]), 'between'),
        ((*ARM, FRAME, JAWS[0], ('flange', 'fixed', 'left', 'tcp')), 'tcp'),  # the last joint carries one too
        ((*ARM, FRAME, ('m', 'revolute', 'hand', 'more'), ('l', 'revolute', 'more', 'left')), 'left'),
        ((*ARM, JAWS[0], ('f', 'fixed', 'upper', 'between')), 'left'),  # not where the finger is
        ((*ARM, FRAME, ('f2', 'fixed', 'hand', 'camera'), JAWS[0]), 'left'),  # which of the two?
        ((*ARM, *JAWS), 'hand'),
        ((*ARM, *JAWS, ('f1', 'fixed', 'hand', 'camera'), ('f2', 'fixed', 'hand', 'frame')), 'hand'),
        ((*ARM, *JAWS, ('t', 'fixed', 'hand', 'tool0')), 'tool0'),
        (ARM, 'hand'),
    ],
)
def test_fingers_end_an_arm_where_they_branch(joints, tip):
    robot = read_urdf(chain(*joints))
    assert default_tip(robot).link == tip
    assert bool(default_tip(robot).note) == (tip != 'tool0' and joints != ARM)
    assert not notes(Arm(robot, tip))


@pytest.mark.parametrize(
    ('joints', 'named'),
    [
        ((*ARM, *JAWS, ('l2', 'revolute', 'left', 'l3'), ('r2', 'revolute', 'right', 'r3')), '"l3" (4)'),
        ((*ARM, FRAME), '"hand" (2), "between" (2)'),
        ([(f'j{i}', 'revolute', f'l{i}', f'l{i + 1}') for i in range(65)], '65'),  # too long for an arm
    ],
)
def test_other_robots_need_a_choice(joints, named):
    with pytest.raises(ChainError) as caught:
        Arm.from_urdf(chain(*joints))
    assert named in str(caught.value)


@pytest.mark.slow
def test_a_robot_of_thousands_of_ends_needs_a_choice_and_little_memory():
    joints = [(f'j{i}', 'continuous', f'l{i}', f'l{i + 1}') for i in range(1500)]
    fingers = [(f'f{i}', 'continuous', 'l1500', f't{i}') for i in range(1500)]
    robot = read_urdf(chain(*joints, *fingers))
    tracemalloc.start()
    with pytest.raises(ChainError, match='1500 ends'):
        default_tip(robot)
    assert JointSet(robot).n == 3000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6
