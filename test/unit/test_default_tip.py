"""Which link is the tip where none is given, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import shared_path

from ik_node import Arm
from ik_node.cli import inspect, solve
from ik_node.errors import ChainError
from ik_node.model.urdf import load_description, read_urdf

RIGHT = ['so101', 'wx250', 'px150', 'px100', 'vx300s', 'xarm5', 'omx_f', 'hebi_a2085_05', 'lrmate200ic5h']
RIGHT += ['ur5e', 'scara_yguel', 'magician_rail', 'ikpy_prismatic_mixed', 'derived_ur5e_wrist3_fixed']
AMBIGUOUS = ['moveo', 'phantomx_reactor_wrist', 'braccio_ros2', 'magician', 'dual_xarm5', 'panda']
JAW = {'so100': 'gripper', 'koch_v1_1': 'gripper_tcp', 'omx_l': 'link5', 'low_cost_robot': None}


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
    assert robot.default_tip() == arms_index[name]['tips'][0]['tip_link']


@pytest.mark.parametrize('name', AMBIGUOUS)
def test_real_arms_that_need_a_word(name: str, shared: Any) -> None:
    with pytest.raises(ChainError, match='tip_link must say which is meant'):
        Arm.from_file(shared / 'arms' / f'{name}.urdf')


@pytest.mark.parametrize('name', JAW)
def test_a_jaw_that_is_taken_for_the_tip_is_told(name: str, shared: Any) -> None:
    arm = Arm.from_file(shared / 'arms' / f'{name}.urdf')
    told = [warning for warning in arm.warnings if 'tip_link is not given' in warning]
    assert len(told) == 1
    assert f'"{arm.tip_link}" ({arm.n} movable joints) is taken' in told[0]
    assert f'"{JAW[name] or "gripper-static-motor_v2_1"}"' in told[0]
    assert Arm.from_file(shared / 'arms' / f'{name}.urdf', arm.tip_link).warnings == arm.robot.warnings


@pytest.mark.parametrize('jaws', [JAWS, JAWS[:1]])
def test_the_one_frame_between_fingers(jaws: tuple[tuple[str, str, str, str], ...]) -> None:
    arm = Arm.from_urdf(chain(*ARM, FRAME, *jaws))
    assert (arm.tip_link, arm.n) == ('between', 2)
    assert '"between" (2 movable joints) is taken; other ends: "left" (3)' in arm.warnings[-1]


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
    assert read_urdf(chain(*joints)).default_tip() in ('tcp', 'left')


def test_nothing_is_said_where_nothing_else_could_be_meant() -> None:
    assert Arm.from_urdf(chain(*ARM)).warnings == ()
    assert Arm.from_urdf(chain(*ARM, *JAWS), 'hand').warnings == ()
    tool = chain(*ARM, *JAWS, ('t', 'fixed', 'hand', 'tool0'))
    assert Arm.from_urdf(tool).warnings == ()


def test_scripts_say_it(capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_path('arms', 'so101.urdf')
    inspect.main([str(path)])
    assert 'note: tip_link is not given, "gripper_frame_link" (5' in capsys.readouterr().out
    solve.main([str(path), '0.2', '0', '0.1', '--json'])
    out, err = capsys.readouterr()
    assert out.startswith('{')
    assert 'note: tip_link is not given, "gripper_frame_link" (5' in err


def test_a_chain_too_long_for_an_arm_is_refused() -> None:
    joints = [(f'j{i}', 'revolute', f'l{i}', f'l{i + 1}') for i in range(65)]
    with pytest.raises(ChainError, match=r'65 movable joints lie between .* at most 64 make an arm'):
        Arm.from_urdf(chain(*joints))
    assert Arm.from_urdf(chain(*joints[:64])).n == 64
