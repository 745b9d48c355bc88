# SPDX-License-Identifier: Apache-2.0
"""Arm and JointSet: from URDF to arrays, kinematics, limits, mimic joints and effective DoF."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import few_cases
from small_arm import ALL_JOINTS, arm_urdf

from ik_node import Arm, Goal, IkSolver, InputError, UrdfError
from ik_node.errors import ChainError
from ik_node.model.arm import tool_at
from ik_node.model.robot import JointSet
from ik_node.model.urdf.reader import read_urdf


def joint(name, kind, parent, child, axis='0 0 1', xyz='0 0 0', rpy='0 0 0', extra='', limit=(-1, 2)):
    """One URDF joint and its child link."""
    bounds = '' if kind in ('fixed', 'continuous') else f'lower="{limit[0]}" upper="{limit[1]}" '
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        f'<limit {bounds}effort="1" velocity="3"/>{extra}</joint><link name="{child}"/>'
    )


def robot(*joints):
    """URDF text of a robot with these joints."""
    return f'<robot name="tiny"><link name="base"/>{"".join(joints)}</robot>'


MIXED = robot(
    joint('turn', 'continuous', 'base', 'a', xyz='0 0 0.1'),
    joint('lift', 'prismatic', 'a', 'b', axis='0 0 1', limit=(0.05, 0.4)),
    joint('bend', 'revolute', 'b', 'c', axis='0 1 0', xyz='0.2 0 0', limit=(-1.5, 0.5)),
    joint('tip_mount', 'fixed', 'c', 'tip', xyz='0.1 0 0', rpy='0 1.5707963267948966 0'),
)


@pytest.mark.slow
@pytest.mark.parametrize('case', few_cases(), ids=lambda case: case.label)
def test_kinematics_limits_and_freedom(case):
    """Against plain FK, central differences and the ranks that are known."""
    arm, plain, h = case.arm(), case.plain(), 6e-6
    points = arm.sample(np.random.default_rng(3), 300)
    assert ((points >= arm.lower) & (points <= arm.upper)).all()
    distances = [np.linalg.norm(arm.fk(q)[0] - arm.joints[0, 3:6]) for q in points]
    assert 0.3 * arm.reach < max(distances) <= arm.reach
    for q in points[:10]:
        values = dict(zip(arm.joint_names, q.tolist(), strict=True))
        found = arm.fk(q)
        np.testing.assert_allclose(found, plain.fk(values), rtol=0, atol=1e-12)
        at_tip = tool_at(arm, arm.link_in_base(arm.tip_link, values))
        np.testing.assert_allclose(at_tip, found, rtol=0, atol=1e-12)
        ahead, behind = (
            np.array([np.concatenate(arm.fk(q + sign * step)) for step in np.eye(arm.n) * h]) for sign in (1, -1)
        )
        np.testing.assert_allclose(arm.jacobian(q), ((ahead - behind) / (2 * h)).T, rtol=0, atol=5e-10)
    assert not case.rank or arm.effective_dof == case.rank
    said = arm.describe()
    assert f'{arm.effective_dof} effective DoF' in said
    assert ('in many directions' in said) == (arm.effective_dof == arm.practical_dof == 5)
    assert (len(arm.joint_names), len(arm.joints)) == (arm.n, arm.n + case.mimics)
    for name in ('lower', 'upper', 'velocity', 'middle', 'tool_axis', 'tool_lateral', 'joints', 'limits'):
        assert not getattr(arm, name).flags.writeable
    assert (np.isinf([arm.lower, arm.upper]) == arm.continuous).all()
    assert abs(arm.tool_lateral @ arm.tool_axis) < 1e-15


def test_mixed_joints_by_hand():
    arm = Arm.from_urdf(MIXED)
    assert (arm.name, arm.base_link, arm.tip_link) == ('tiny', 'base', 'tip')
    assert arm.joint_names == ('turn', 'lift', 'bend')
    assert arm.continuous.tolist() == [True, False, False]
    assert arm.prismatic.tolist() == [False, True, False]
    assert arm.limits.tolist() == [[-math.inf, 0.05, -1.5], [math.inf, 0.4, 0.5]]
    np.testing.assert_allclose(arm.middle, [0, 0.225, -0.5])
    assert arm.velocity.tolist() == [3, 3, 3]
    # A quarter turn, 0.3 m up, then the forearm of 0.1 m a quarter turn up (-y is up for axis y).
    q = np.array([math.pi / 2, 0.3, -math.pi / 2])
    position, direction = arm.fk(q)
    np.testing.assert_allclose([position, direction], [[0, 0.2, 0.5], [0, 0, 1]], atol=1e-15)
    arm.fk(q + 0.1)  # returns new arrays
    np.testing.assert_allclose(position, [0, 0.2, 0.5], atol=1e-15)
    # With the first joint at 0, link a stands 0.1 m above base.
    part = Arm.from_urdf(MIXED, 'tip', base_link='a')
    assert part.joint_names == ('lift', 'bend')
    np.testing.assert_allclose(part.fk([0.2, 0.1])[0] + [0, 0, 0.1], arm.fk([0, 0.2, 0.1])[0], atol=1e-15)
    # The tip frame is turned a quarter about y: its x is down, its z is forward.
    tool = Arm.from_urdf(MIXED, tool_axis=(0, 0.6, 0.8004), tool_point=(0.01, 0.02, 0.03))
    np.testing.assert_allclose(tool.fk([0, 0.1, 0])[0], [0.33, 0.02, 0.19], atol=1e-15)
    np.testing.assert_allclose(tool.fk([0, 0.1, 0])[1], [0.8, 0.6, 0], atol=3e-4)
    assert np.linalg.norm(tool.tool_axis) == pytest.approx(1.0, abs=1e-15)


def test_a_mimic_inside_the_arm_is_no_variable_but_moves():
    follows = '<mimic joint="master" multiplier="-1" offset="0.5"/>'
    text = robot(
        joint('master', 'revolute', 'base', 'a', axis='0 1 0'),
        joint('slave', 'revolute', 'a', 'b', axis='0 1 0', xyz='1 0 0', extra=follows),
        joint('mount', 'fixed', 'b', 'tip', xyz='1 0 0'),
    )
    arm = Arm.from_urdf(text, 'tip', tool_axis=(1, 0, 0))
    assert arm.joint_names == ('master',)
    position, direction = arm.fk([0.3])
    np.testing.assert_allclose(direction, [math.cos(0.5), 0, -math.sin(0.5)], atol=1e-15)
    expected = [math.cos(0.3) + math.cos(0.5), 0, -math.sin(0.3) - math.sin(0.5)]
    np.testing.assert_allclose(position, expected, atol=1e-15)
    # The forearm keeps its direction: the master only carries it along a circle.
    expected = [-math.sin(0.3), 0, -math.cos(0.3), 0, 0, 0]
    np.testing.assert_allclose(arm.jacobian([0.3])[:, 0], expected, atol=1e-15)


def test_a_mimic_whose_master_is_off_the_arm_still_has_one_variable():
    text = robot(
        joint('elsewhere', 'revolute', 'base', 'side', axis='0 1 0'),
        joint('follower', 'revolute', 'base', 'a', extra='<mimic joint="elsewhere" multiplier="2"/>'),
        joint('mount', 'fixed', 'a', 'tip', xyz='1 0 0'),
    )
    arm = Arm.from_urdf(text, 'tip')
    assert arm.joint_names == ('elsewhere',)
    np.testing.assert_allclose(arm.fk([0.25])[0], [math.cos(0.5), math.sin(0.5), 0], atol=1e-15)


NO_NUMBERS = (b'abc', {0.0, 1.0, 2.0}, {0: 1, 1: 2, 2: 3}, (0j, 0, 1), ('0', '0', '1'), None, 'abc')


@pytest.mark.parametrize(
    ('given', 'named'),
    [
        ({'tool_axis': (0, 0, 0)}, ['tool_axis', 'zero']),
        ({'tool_axis': (0, math.nan, 1)}, ['tool_axis', 'finite']),
        ({'tool_axis': 5}, ['tool_axis', '(3,)', '5']),
        ({'tool_point': (0, 0)}, ['tool_point', '(3,)']),
        ({'tool_point': (0, 0, math.inf)}, ['tool_point', 'finite']),
        ({'tool_point': (0, -1.1e9, 0)}, ['tool_point', '1e+09']),
        *(({'tool_point': one}, ['tool_point', 'three numbers', repr(one)]) for one in NO_NUMBERS),
        ({'tip_link': 5}, ['tip_link', '5', '"base", "a", "b", "c", "tip"']),
        ({'tip_link': 'nowhere'}, ['tip_link', '"nowhere"']),
        ({'tip_link': 'base'}, ['tip_link', '"base"']),
        ({'base_link': b'tip'}, ['base_link', "b'tip'"]),
        ({'base_link': 'nowhere'}, ['base_link', '"nowhere"']),
    ],
)
def test_bad_tools_and_links_are_named(given, named):
    with pytest.raises((InputError, UrdfError)) as caught:
        Arm.from_urdf(MIXED, **given)
    assert [word for word in named if word not in str(caught.value)] == [], str(caught.value)


@pytest.mark.parametrize('q', [(0, 0), 0.0, (0, math.nan, 0), (0, 0, math.inf), [[0, 0, 0]], *NO_NUMBERS])
def test_bad_joints_are_rejected(q):
    arm = Arm.from_urdf(MIXED)
    for call in (arm.fk, arm.jacobian):
        with pytest.raises(InputError, match='turn, lift, bend'):
            call(q)
    with pytest.raises(InputError, match='robot must be'):
        Arm(q)


def test_vectors_of_any_real_numbers_are_welcome():
    for point in ([0, 1, 2], np.arange(3, dtype=np.int8), map(float, range(3))):
        assert Arm.from_urdf(MIXED, tool_point=point).tool_point.tolist() == [0, 1, 2]
    assert Arm.from_urdf(MIXED, tool_point=(Fraction(1, 2), Decimal(1), np.float64(2))).tool_point[0] == 0.5
    assert Arm.from_urdf(MIXED).checked([0, Fraction(1, 2), 1]).tolist() == [0, 0.5, 1]


def test_effective_dof_does_not_depend_on_the_unit_of_length():
    slide = Arm.from_urdf(robot(joint('slide', 'prismatic', 'base', 'tip', axis='1 0 0', limit=(0, 0.5))))
    assert (slide.effective_dof, slide.reach) == (1, pytest.approx(0.5))
    for scale in (1e-3, 1.0, 1e3):
        axes, links = ['0 0 1', '0 1 0', '0 1 0', '0 1 0', '1 0 0'], ['base', 'a', 'b', 'c', 'd', 'tip']
        joints = [
            joint(f'j{i}', 'revolute', links[i], links[i + 1], axis=axes[i], xyz=f'{scale * x} 0 0')
            for i, x in enumerate((0.0, 0.3, 0.25, 0.1, 0.05))
        ]
        offset = {'tool_point': (0.05 * scale, 0, 0.01 * scale)}
        assert Arm.from_urdf(robot(*joints), tool_axis=(1, 0, 0)).effective_dof == 4
        assert Arm.from_urdf(robot(*joints), tool_axis=(1, 0, 0), **offset).effective_dof == 5
        assert Arm.from_urdf(robot(*joints), tool_axis=(0, 1, 0)).effective_dof == 5


# --- JointSet ------------------------------------------------------------------------------------------


def test_mimic_joints_are_published_but_not_free():
    joints = JointSet(read_urdf(arm_urdf()))
    assert sorted(joints.names) == sorted(ALL_JOINTS)
    assert 'other_finger' not in joints.variables
    values = dict(zip(joints.variables, np.arange(joints.n) / 100.0, strict=True))
    positions, velocities = joints.expand(joints.filled(values), joints.filled(values))
    found = dict(zip(joints.names, positions, strict=True))
    assert found['other_finger'] == -values['finger']
    assert all(found[name] == value for name, value in values.items())
    assert (positions == velocities).all()  # no offsets here
    numbers = np.arange(joints.n, dtype=float)
    assert joints.named(numbers)['elbow'] == numbers[joints.indices(['elbow'])[0]]


@pytest.mark.parametrize(
    ('mimic', 'position', 'velocity'),
    [
        ('joint="finger" multiplier="-0.5" offset="0.01"', -0.01, -0.02),
        ('joint="stand" offset="-0.02"', -0.02, 0.0),  # a fixed joint
    ],
)
def test_offsets_move_the_place_but_not_the_speed(mimic, position, velocity):
    joints = JointSet(read_urdf(arm_urdf().replace('joint="finger" multiplier="-1"', mimic)))
    values, place = joints.filled({'finger': 0.04}), joints.names.index('other_finger')
    found = [each[place] for each in joints.expand(values, values)]
    assert found == pytest.approx([position, velocity])


def test_no_follower_is_driven_faster_than_it_may_go():
    joints = JointSet(read_urdf(arm_urdf().replace('multiplier="-1"', 'multiplier="-4"')))
    assert joints.velocity[joints.variables.index('finger')] == pytest.approx(2.0 / 4.0)
    assert joints.velocity[joints.variables.index('yaw')] == 2.0


def test_joints_without_a_value_rest_within_their_limits():
    joints = JointSet(read_urdf(arm_urdf(lower=0.5, upper=2.5)))
    values = joints.filled({'elbow': 0.3})
    assert [values[joints.variables.index(name)] for name in ('yaw', 'elbow', 'roll')] == [1.5, 0.3, 0.0]


def test_a_group_whose_joints_all_follow_fixed_ones_has_no_variables():
    follows = '<mimic joint="f" offset="0.25"/>'
    text = robot(joint('f', 'fixed', 'base', 'b'), joint('m', 'continuous', 'b', 'c', extra=follows))
    joints = JointSet(read_urdf(text))
    assert (joints.n, joints.names, joints.velocity.tolist()) == (0, ('m',), [])
    positions, velocities = joints.expand(np.empty(0), np.empty(0))
    assert (positions.tolist(), velocities.tolist()) == ([0.25], [0.0])


# --- limits of followers -------------------------------------------------------------------------------

ROOM = '<limit lower="-1" upper="1" velocity="1" effort="1"/>'


def followed(mimic='multiplier="2"', room=ROOM, follower='revolute', driver='revolute'):
    """Two hinges j1 and j2, and j3 beyond them that follows j2, each on a line."""
    joints = [('j1', 'revolute', ROOM), ('j2', driver, ROOM)]
    joints.append(('j3', follower, f'{room}<mimic joint="j2" {mimic}/>'))
    return (
        '<robot name="m"><link name="l0"/><link name="l1"/><link name="l2"/><link name="l3"/>'
        + ''.join(
            f'\n<joint name="{name}" type="{kind}"><parent link="l{i}"/><child link="l{i + 1}"/>'
            f'<origin xyz="0.3 0 0"/><axis xyz="0 0 1"/>{rest}</joint>'
            for i, (name, kind, rest) in enumerate(joints)
        )
        + '</robot>'
    )


@pytest.mark.parametrize(
    ('mimic', 'room', 'lower', 'upper'),
    [
        ('multiplier="2"', ROOM, -0.5, 0.5),
        ('multiplier="-2" offset="0.5"', ROOM, -0.25, 0.75),
        ('offset="0.5"', ROOM, -1.0, 0.5),
        ('multiplier="0.1"', ROOM, -1.0, 1.0),
        ('multiplier="0" offset="0.5"', ROOM, -1.0, 1.0),  # it stands still
        ('multiplier="2"', '<limit velocity="1" effort="1"/>', -1.0, 1.0),  # none is given
        ('multiplier="2"', '<limit lower="-1e9" upper="1" velocity="1"/>', -1.0, 0.5),  # a placeholder
        ('multiplier="2"', '<limit upper="1" velocity="1"/>', 0.0, 0.5),  # the other one is 0 in URDF
        ('multiplier="-1"', '<limit lower="0" upper="6.2832" velocity="1"/>', -1.0, 1.0),  # any angle
        ('offset="2"', '<limit lower="3.0000000000001" upper="4" velocity="1"/>', 1.0, 1.0),
    ],
)
def test_the_followers_limits_are_the_drivers_too(mimic, room, lower, upper):
    robot = read_urdf(followed(mimic, room))
    joints, chain = JointSet(robot), Arm(robot, 'l2')  # j3 is off this one, and counts all the same
    for found in (joints, chain):
        assert (found.lower[1], found.upper[1]) == pytest.approx((lower, upper))
    told = [warning for warning in robot.warnings if 'narrows' in warning]
    assert len(told) == ((lower, upper) != (-1.0, 1.0))
    assert all('"j3" (line 4)' in warning and '"j2"' in warning for warning in told)


@pytest.mark.slow
def test_no_answer_leaves_the_limits_of_a_follower():
    robot, free = read_urdf(followed()), read_urdf(followed(room='<limit velocity="1"/>'))
    for q in ([0.2, 0.95], [0.2, 0.4], [-1.0, -0.5]):
        place = free.link_pose('l3', {'j1': q[0], 'j2': q[1]})
        first, second = IkSolver(Arm(robot)).solve(Goal(place[:3, 3])).q
        assert abs(robot.joint_values({'j1': first, 'j2': second})['j3']) <= 1.0 + 1e-9


def test_continuous_drivers_and_followers():
    chain = Arm.from_urdf(followed(driver='continuous'))
    assert (chain.continuous[1], chain.lower[1], chain.upper[1]) == (False, -0.5, 0.5)
    assert Arm.from_urdf(followed(follower='continuous')).upper[1] == 1.0
    assert math.isinf(Arm.from_urdf(followed(follower='continuous', driver='continuous')).upper[1])


def test_limits_that_share_no_value_are_a_fault_of_the_arm():
    text = followed('multiplier="2" offset="5"')
    with pytest.raises(ChainError) as caught:
        Arm.from_urdf(text)
    named = ['"j2" (line 3)', '"j3" (line 4)', '-3 and -2', '-1 and 1']
    assert [word for word in named if word not in str(caught.value)] == []
    assert [one.name for one in read_urdf(text).chain('l1')] == ['j1']  # an arm without j2 is one


def test_the_parallelograms_of_a_real_arm_keep_their_room(shared, arms_index):
    chain = Arm.from_file(shared / 'arms' / 'magician.urdf', 'magician_link_gripper_core')
    assert chain.upper[chain.joint_names.index('magician_joint_2')] == pytest.approx(math.pi / 2)
    assert arms_index['magician']['tips'][0]['joints'] == list(chain.joint_names)


def test_an_axis_is_named_and_a_guess_is_said():
    with pytest.warns(UserWarning, match='the z axis of link "tip"'):
        guessed = Arm.from_urdf(MIXED)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        named = Arm.from_urdf(MIXED, tool_axis='-x')
    assert guessed.tool_axis.tolist() == [0.0, 0.0, 1.0]
    assert named.tool_axis.tolist() == [-1.0, 0.0, 0.0]
    assert repr(named) == f'<Arm {named.name}: {named.n} joints from {named.base_link} to tip, tool axis (-1, 0, 0)>'
    assert named.name in repr(IkSolver(named))
    with pytest.raises(InputError, match='one of x, -x'):
        Arm.from_urdf(MIXED, tool_axis='up')


def test_a_shipped_robot_is_read_by_its_name(tmp_path, monkeypatch):
    assert Arm.from_file('so101_like', tool_axis='z').n == 5
    (tmp_path / 'so101_like').write_text(arm_urdf())
    monkeypatch.chdir(tmp_path)
    assert Arm.from_file('so101_like', tool_axis='z').tip_link == 'tool0', 'a file with that name'


def test_an_axis_that_is_none_is_answered_in_the_words_of_python():
    with pytest.raises(InputError, match=r"such as \(0, 0.6, 0.8\), got 'w'"):
        Arm.from_urdf(arm_urdf(), tool_axis='w')


def test_the_default_is_no_name_of_a_method():
    with pytest.raises(InputError, match="got 'default'; leave method out for the default"):
        IkSolver(Arm.from_urdf(arm_urdf(), tip_link='tool0'), method='default')
