# SPDX-License-Identifier: Apache-2.0
"""Which link is the tip where none is given, and what is said of it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from shared_files import shared_path

from ik_node import Arm
from ik_node.cli import inspect, solve
from ik_node.errors import ChainError
from ik_node.model.default_tip import default_tip
from ik_node.model.joint_set import JointSet
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
JAW = {
    'so100': 'jaw',
    'koch_v1_1': 'gripper',
    'omx_l': 'link6',
    'low_cost_robot': 'gripper-moving-part-dumb_v2_1',
}


def chain(*joints: tuple[str, str, str, str]) -> str:
    """A robot of (name, type, parent, child)."""
    links = dict.fromkeys(link for joint in joints for link in joint[2:])
    return (
        '<robot name="r">'
        + ''.join(f'<link name="{link}"/>' for link in links)
        + ''.join(
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            '<origin xyz="0.1 0.02 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1"/></joint>'
            for name, kind, parent, child in joints
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


@pytest.mark.parametrize('name', RIGHT)
def test_real_arms_have_the_tip_that_is_meant(name: str, arms_index: dict[str, Any], shared: Any) -> None:
    robot = read_urdf(load_description(shared / 'arms' / f'{name}.urdf'))
    assert default_tip(robot).link == arms_index[name]['tips'][0]['tip_link']


@pytest.mark.parametrize('name', HAND)
def test_real_arms_end_in_the_link_that_carries_the_fingers(
    name: str, arms_index: dict[str, Any], shared: Any
) -> None:
    """One warning names the fingers; the joints are those that the arm has without its gripper."""
    arm = Arm.from_file(shared / 'arms' / f'{name}.urdf')
    assert arm.tip_link == HAND[name]
    assert list(arm.joint_names) == arms_index[name]['tips'][0]['joints']
    told = [warning for warning in arm.warnings if 'tip_link is not set' in warning]
    assert len(told) == 1
    finger = max(arm.robot.leaves().items(), key=lambda leaf: leaf[1])[0]
    assert f'movable joints); other ends: "{finger}"' in told[0]
    assert 'appears to belong to a gripper' not in told[0]


def test_two_arms_on_one_base_need_a_choice(shared: Any) -> None:
    with pytest.raises(ChainError, match=r'tip_link must be given; they branch at "ground"; .* "L_link_eef"'):
        Arm.from_file(shared / 'arms' / 'dual_xarm5.urdf')


@pytest.mark.parametrize('name', JAW)
def test_a_jaw_is_left_out_and_told(name: str, shared: Any) -> None:
    arm = Arm.from_file(shared / 'arms' / f'{name}.urdf')
    told = [warning for warning in arm.warnings if 'tip_link is not set' in warning]
    assert len(told) == 1
    assert f'use tip_link "{JAW[name]}" to include it' in told[0]
    assert Arm.from_file(shared / 'arms' / f'{name}.urdf', JAW[name]).n == arm.n + 1
    assert Arm.from_file(shared / 'arms' / f'{name}.urdf', arm.tip_link).warnings == arm.robot.warnings


def hobby_arm(
    name: str, child: str, axis: str, kind: str = 'revolute', upper: float = 1.0, n: int = 5
) -> str:
    """Joints that pitch, one that rolls about z, and a last one."""
    joints = [(f'j{k}', 'revolute', f'l{k}', f'l{k + 1}', '0 1 0', 1.0) for k in range(n - 1)]
    joints += [
        ('roll', 'revolute', f'l{n - 1}', 'hand', '0 0 1', 1.0),
        (name, kind, 'hand', child, axis, upper),
    ]
    return (
        '<robot name="r"><link name="l0"/>'
        + ''.join(
            f'<link name="{child}"/><joint name="{name}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{child}"/><origin xyz="0.01 0 0.05"/><axis xyz="{axis}"/>'
            f'<limit lower="0" upper="{upper}" velocity="1"/></joint>'
            for name, kind, parent, child, axis, upper in joints
        )
        + '</robot>'
    )


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
def test_the_last_joint_is_a_jaw_only_by_its_name_and_axis(last: tuple[Any, ...], tip: str) -> None:
    arm = Arm.from_urdf(hobby_arm(*last))
    assert arm.tip_link == tip
    assert bool(arm.warnings) == (tip == 'hand')


@pytest.mark.parametrize('jaws', [JAWS, JAWS[:1]])
def test_the_one_frame_between_fingers(jaws: tuple[tuple[str, str, str, str], ...]) -> None:
    arm = Arm.from_urdf(chain(*ARM, FRAME, *jaws))
    assert (arm.tip_link, arm.n) == ('between', 2)
    assert 'using "between" (2 movable joints); other ends: "left" (3)' in arm.warnings[-1]


@pytest.mark.parametrize(
    'joints',
    [
        (*ARM, FRAME, JAWS[0], ('flange', 'fixed', 'left', 'tcp')),  # the last joint carries a frame too
        (*ARM, FRAME, ('m', 'revolute', 'hand', 'more'), ('l', 'revolute', 'more', 'left')),
        (*ARM, JAWS[0], ('f', 'fixed', 'upper', 'between')),  # not where the finger is
        (*ARM, FRAME, ('f2', 'fixed', 'hand', 'camera'), JAWS[0]),  # which of the two?
    ],
)
def test_other_longest_chains_stay_the_arm(joints: tuple[tuple[str, str, str, str], ...]) -> None:
    assert default_tip(read_urdf(chain(*joints))).link in ('tcp', 'left')


def test_fingers_end_an_arm_where_they_branch() -> None:
    arm = Arm.from_urdf(chain(*ARM, *JAWS))
    assert (arm.tip_link, arm.n) == ('hand', 2)
    assert arm.warnings[-1] == (
        'tip_link is not set, using "hand" (2 movable joints); other ends: "left" (3), "right" (3); '
        'set tip_link to choose another'
    )
    tips = [(f'{side}_tip', 'fixed', side, f'{side}_pad') for side in ('left', 'right')]
    frames = [('f1', 'fixed', 'hand', 'camera'), ('f2', 'fixed', 'hand', 'frame')]
    assert default_tip(read_urdf(chain(*ARM, *JAWS, *tips, *frames))).link == 'hand'


def test_arms_on_a_torso_and_frames_on_a_flange_need_a_choice() -> None:
    longer = (('l2', 'revolute', 'left', 'l3'), ('r2', 'revolute', 'right', 'r3'))
    with pytest.raises(ChainError, match=r'tip_link must be given; they branch at "hand"; .* "l3" \(4\)'):
        Arm.from_urdf(chain(*ARM, *JAWS, *longer))
    with pytest.raises(ChainError, match=r'they branch at "wrist"; .* "hand" \(2\), "between" \(2\)'):
        Arm.from_urdf(chain(*ARM, FRAME))


def test_a_robot_of_thousands_of_ends_needs_a_choice_and_little_memory() -> None:
    joints = [(f'j{i}', 'continuous', f'l{i}', f'l{i + 1}') for i in range(3000)]
    fingers = [(f'f{i}', 'continuous', 'l3000', f't{i}') for i in range(3000)]
    robot = read_urdf(chain(*joints, *fingers))
    tracemalloc.start()
    with pytest.raises(
        ChainError, match=r'the longest movable chain has 3000 ends, so tip_link must be given'
    ):
        default_tip(robot)
    assert JointSet(robot).n == 6000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_nothing_is_said_where_nothing_else_could_be_meant() -> None:
    assert Arm.from_urdf(chain(*ARM)).warnings == ()
    assert Arm.from_urdf(chain(*ARM, *JAWS), 'hand').warnings == ()
    tool = chain(*ARM, *JAWS, ('t', 'fixed', 'hand', 'tool0'))
    assert Arm.from_urdf(tool).warnings == ()


def test_scripts_say_it(capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_path('arms', 'so101.urdf')
    inspect.main([str(path)])
    assert 'note: tip_link is not set, using "gripper_frame_link" (5' in capsys.readouterr().out
    solve.main([str(path), '0.2', '0', '0.1', '--json'])
    out, err = capsys.readouterr()
    assert out.startswith('{')
    assert 'note: tip_link is not set, using "gripper_frame_link" (5' in err


def test_a_chain_too_long_for_an_arm_is_rejected() -> None:
    joints = [(f'j{i}', 'revolute', f'l{i}', f'l{i + 1}') for i in range(65)]
    with pytest.raises(ChainError, match=r'65 movable joints are between .* an arm may have at most 64'):
        Arm.from_urdf(chain(*joints))
    assert Arm.from_urdf(chain(*joints[:64])).n == 64
