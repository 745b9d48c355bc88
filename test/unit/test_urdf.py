# SPDX-License-Identifier: Apache-2.0
"""Reading URDF: real arms against other forward kinematics, and what a Robot answers."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import GOOD, broken
from oracles.plain import PlainArm, random_values
from shared_files import shared_names

from ik_node.errors import ChainError, InputError
from ik_node.model.default_tip import default_tip
from ik_node.model.urdf.reader import load_description, read_urdf

ARMS = shared_names('arms')


@pytest.mark.parametrize('name', ARMS)
def test_real_arms_agree_with_yourdfpy(name: str, shared: Path, arms_index: dict[str, Any]) -> None:
    import yourdfpy  # here: make quick, which leaves this test out, does not wait for it

    file = shared / 'arms' / name
    robot = read_urdf(load_description(file))
    logging.disable(logging.ERROR)
    other = yourdfpy.URDF.load(str(file), load_meshes=False, load_collision_meshes=False)
    logging.disable(logging.NOTSET)
    entry = arms_index[file.stem]
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = random_values(robot, rng)
        other.update_cfg(values)
        for tip in entry['tips']:
            for base in (entry['base_link'], robot.root):
                expected = other.get_transform(tip['tip_link'], base)
                ours = np.linalg.solve(
                    robot.link_pose(base, values), robot.link_pose(tip['tip_link'], values)
                )
                np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)
    for tip in entry['tips']:
        chain = robot.chain(tip['tip_link'], entry['base_link'])
        drivers = dict.fromkeys(robot.driver(joint.name).joint for joint in chain if joint.movable)
        assert list(drivers) == tip['joints']


@pytest.mark.parametrize('name', ARMS)
def test_every_link_of_real_arms_agrees_with_fk_from_the_text(name: str, shared: Path) -> None:
    text = load_description(shared / 'arms' / name)
    robot = read_urdf(text)
    rng = np.random.default_rng(2)
    for _ in range(3):
        values = random_values(robot, rng)
        poses = robot.link_poses(values)
        assert poses.keys() == set(robot.links)
        for link, pose in poses.items():
            np.testing.assert_allclose(pose, PlainArm(text, link).pose(values), rtol=0, atol=1e-9)
            np.testing.assert_allclose(pose, robot.link_pose(link, values), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ('tip', 'base', 'words'),
    [
        (
            'tol',
            None,
            ['tip_link "tol" does not exist', '"base", "upper", "tool", "finger"', 'did you mean "tool"?'],
        ),
        ('tool', 'bse', ['base_link "bse" does not exist', '"base", "upper"', 'did you mean "base"?']),
        (
            'upper',
            'finger',
            ['base_link "finger" is not between the root', 'tip_link "upper"', '"base", "upper"'],
        ),
        ('base', None, ['no movable joint is between base_link "base" and tip_link "base"', '"finger" (3)']),
    ],
)
def test_links_that_make_no_chain(tip: str, base: str | None, words: list[str]) -> None:
    with pytest.raises(ChainError) as caught:
        read_urdf(GOOD).chain(tip, base)
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)


def test_tip_behind_fixed_joints_only() -> None:
    text = broken(('"shoulder" type="revolute"', '"shoulder" type="fixed"'))
    with pytest.raises(ChainError, match='no movable joint is between base_link "base" and tip_link "upper"'):
        read_urdf(text).chain('upper')


def test_default_tip_that_is_ambiguous_lists_the_leaves() -> None:
    text = broken(('<parent link="tool"/>', '<parent link="upper"/>'))
    with pytest.raises(
        ChainError, match=r'tip_link must be given; they branch at "upper"; .* "tool" \(2\), "finger" \(2\)'
    ):
        default_tip(read_urdf(text))


def test_default_tip_of_a_rigid_robot() -> None:
    text = GOOD.replace('"revolute"', '"fixed"').replace('"prismatic"', '"fixed"')
    with pytest.raises(ChainError, match='no movable joint'):
        default_tip(read_urdf(text))


def test_default_tip_ends_the_longest_movable_chain() -> None:
    assert default_tip(read_urdf(GOOD)).link == 'tool'  # without the jaw
    assert default_tip(read_urdf(GOOD.replace('"jaw"', '"slide"').replace('"finger"', '"rod"'))).link == 'rod'
    assert (
        default_tip(read_urdf(broken(('"jaw" type="prismatic"', '"jaw" type="floating"')))).link == 'finger'
    )
    two_fingers = broken(
        ('<link name="tool"/>', '<link name="tool"/><link name="stub"/>'),
        (
            '</robot>',
            '<joint name="f" type="fixed"><parent link="upper"/><child link="stub"/></joint></robot>',
        ),
    )
    assert default_tip(read_urdf(two_fingers)).link == 'tool'


def test_joints_come_parents_first_however_they_are_written() -> None:
    start = GOOD.index('  <joint name="shoulder"')
    end = GOOD.index('  <joint name="jaw"')
    text = GOOD[:start] + GOOD[end:].replace('</robot>', GOOD[start:end] + '</robot>')
    robot = read_urdf(text)
    assert list(robot.joints) == ['shoulder', 'wrist', 'jaw']
    assert [joint.name for joint in robot.chain('finger')] == ['shoulder', 'wrist', 'jaw']
    assert [joint.name for joint in robot.chain('tool', 'upper')] == ['wrist']
    assert robot.root == 'base'


def test_defaults_that_are_stated() -> None:
    robot = read_urdf(
        broken(
            ('<limit lower="-1" upper="1.5" velocity="2" effort="5"/>', ''),
            ('"wrist" type="revolute"', '"wrist" type="continuous"'),
            ('<limit lower="-2" upper="0.5" velocity="3" effort="5"/>', ''),
            ('<limit lower="-0.05" upper="0.05" velocity="0.2" effort="5"/>', ''),
        )
    )
    limits = {joint.name: (joint.lower, joint.upper, joint.velocity) for joint in robot.movable}
    assert limits == {
        'shoulder': (-math.pi, math.pi, 1.0),
        'wrist': (-math.inf, math.inf, 1.0),
        'jaw': (-1.0, 1.0, 0.1),
    }


@pytest.mark.parametrize(
    ('lower', 'upper', 'expected'),
    [
        ('-0.5', '1e16', (-0.5, math.pi)),
        ('-inf', 'inf', (-math.pi, math.pi)),
        ('-1.7e308', '0.5', (-math.pi, 0.5)),
        ('5', '1e16', (5.0, 5.0 + math.pi)),
        ('-1e16', '-5', (-5.0 - math.pi, -5.0)),
        ('1e16', '1e17', (-math.pi, math.pi)),
        ('-6.2831853', '6.2831853', (-6.2831853, 6.2831853)),
    ],
)
def test_placeholders_give_way_side_by_side(lower: str, upper: str, expected: tuple[float, float]) -> None:
    robot = read_urdf(broken(('lower="-1" upper="1.5"', f'lower="{lower}" upper="{upper}"')))
    shoulder = robot.chain('tool')[0]
    assert (shoulder.lower, shoulder.upper) == pytest.approx(expected, abs=1e-15)


def test_crossed_limits_off_the_arm_are_read_the_other_way_round() -> None:
    jaw = read_urdf(broken(('upper="0.05"', 'upper="-0.06"'))).joints['jaw']
    assert (jaw.lower, jaw.upper) == (-0.06, -0.05)


CHAIN_OF_MIMICS = broken(
    (
        'velocity="3" effort="5"/>',
        'velocity="3" effort="5"/><mimic joint="shoulder" multiplier="-2" offset="0.5"/>',
    ),
    ('<mimic joint="wrist" multiplier="0.01"/>', '<mimic joint="wrist" multiplier="0.01" offset="0.001"/>'),
)


def test_a_mimic_of_a_mimic_follows_the_first() -> None:
    robot = read_urdf(CHAIN_OF_MIMICS)
    assert robot.driver('shoulder') == ('shoulder', 1.0, 0.0)
    assert robot.driver('wrist') == ('shoulder', -2.0, 0.5)
    assert robot.driver('jaw').joint == 'shoulder'
    assert robot.driver('jaw')[1:] == pytest.approx((-0.02, 0.006))
    values = robot.joint_values({'shoulder': 0.4, 'wrist': 9.0})
    assert values == pytest.approx({'shoulder': 0.4, 'wrist': -0.3, 'jaw': -0.002})
    assert list(values) == ['shoulder', 'wrist', 'jaw']
    expected = read_urdf(broken(('<mimic joint="wrist" multiplier="0.01"/>', ''))).link_pose('finger', values)
    np.testing.assert_allclose(robot.link_pose('finger', {'shoulder': 0.4}), expected, rtol=0, atol=1e-15)


def test_a_joint_without_a_value_rests_within_its_limits() -> None:
    robot = read_urdf(broken(('lower="-2" upper="0.5"', 'lower="0.1" upper="0.5"')))
    assert robot.joint_values({}) == pytest.approx({'shoulder': 0.0, 'wrist': 0.3, 'jaw': 0.003})
    np.testing.assert_array_equal(
        robot.link_pose('finger', {}), robot.link_pose('finger', robot.joint_values({}))
    )


def test_a_joint_that_follows_a_fixed_one_stays_at_its_offset() -> None:
    robot = read_urdf(
        broken(
            ('"wrist" type="revolute"', '"wrist" type="fixed"'),
            ('multiplier="0.01"', 'multiplier="0.01" offset="0.02"'),
        )
    )
    assert robot.joint_values({'wrist': 3.0}) == {'shoulder': 0.0, 'jaw': 0.02}


@pytest.mark.parametrize('kind', ['planar', 'floating'])
def test_planar_and_floating_joints_stay_at_their_origin(kind: str) -> None:
    robot = read_urdf(broken(('"shoulder" type="revolute"', f'"shoulder" type="{kind}"')))
    assert [joint.name for joint in robot.movable] == ['wrist', 'jaw']
    assert [joint.name for joint in robot.chain('tool', 'upper')] == ['wrist']
    expected = np.eye(4)
    expected[2, 3] = 0.1
    np.testing.assert_array_equal(robot.link_pose('upper', {'shoulder': 1.0}), expected)


def test_wrong_values_are_rejected() -> None:
    robot = read_urdf(GOOD)
    with pytest.raises(ChainError, match=r'link "tol" does not exist; links: .* \(did you mean "tool"\?\)'):
        robot.link_pose('tol', {})
    for ask in (robot.joint_values, robot.link_poses, lambda values: robot.link_pose('base', values)):
        with pytest.raises(InputError, match=r'unknown joint "elbow"; joints: "shoulder", "wrist", "jaw"'):
            ask({'elbow': 1.0})
        for value in (math.nan, math.inf, 'much', None):
            with pytest.raises(InputError, match='"wrist" must be a finite number'):
                ask({'wrist': value})
    with pytest.raises(InputError, match='unknown joint "elbow"'):
        robot.driver('elbow')


def test_what_is_read_cannot_be_changed() -> None:
    robot = read_urdf(GOOD)
    for array in (robot.joints['wrist'].origin, robot.joints['wrist'].axis):
        with pytest.raises(ValueError, match='read-only'):
            array[...] = 7.0
    with pytest.raises(TypeError):
        robot.joints['wrist'] = robot.joints['jaw']
    robot.link_pose('base', {})[...] = 7.0
    robot.link_poses({})['upper'][...] = 7.0
    np.testing.assert_array_equal(robot.link_pose('base', {}), np.eye(4))


def test_ten_thousand_lines_are_read() -> None:
    """A chain of 2,500 joints, each on four lines: nothing recurses, and every pose is finite."""
    count = 2500
    links = '\n'.join(f'<link name="l{i}"/>' for i in range(count + 1))
    joints = '\n'.join(
        f'<joint name="j{i}" type="revolute">\n<parent link="l{i}"/><child link="l{i + 1}"/>\n'
        f'<origin xyz="0.01 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1"/>\n</joint>'
        for i in range(count)
    )
    robot = read_urdf(f'<robot name="snake">\n{links}\n{joints}\n</robot>')
    assert default_tip(robot).link == f'l{count}'
    assert len(robot.chain(f'l{count}')) == count
    turn = [[math.cos(5), -math.sin(5)], [math.sin(5), math.cos(5)]]
    poses = robot.link_poses({f'j{i}': 0.002 for i in range(count)})
    np.testing.assert_allclose(poses[f'l{count}'][:2, :2], turn, rtol=0, atol=1e-9)
