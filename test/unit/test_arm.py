# SPDX-License-Identifier: Apache-2.0
"""Arm: from URDF to arrays, forward kinematics, Jacobian, limits and effective DoF."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import Case, few_cases

from ik_node import Arm, InputError, UrdfError
from ik_node.model.arm import tool_at

CASES = [pytest.param(case, id=case.label) for case in few_cases()]


def joint(name, kind, parent, child, axis='0 0 1', xyz='0 0 0', rpy='0 0 0', extra='', limit=(-1, 2)):
    """One URDF joint and its child link."""
    bounds = '' if kind in ('fixed', 'continuous') else f'lower="{limit[0]}" upper="{limit[1]}" '
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        f'<limit {bounds}effort="1" velocity="3"/>{extra}</joint><link name="{child}"/>'
    )


def robot(*joints, root='base'):
    """URDF text of a robot with these joints."""
    return f'<robot name="tiny"><link name="{root}"/>{"".join(joints)}</robot>'


MIXED = robot(
    joint('turn', 'continuous', 'base', 'a', xyz='0 0 0.1'),
    joint('lift', 'prismatic', 'a', 'b', axis='0 0 1', limit=(0.05, 0.4)),
    joint('bend', 'revolute', 'b', 'c', axis='0 1 0', xyz='0.2 0 0', limit=(-1.5, 0.5)),
    joint('tip_mount', 'fixed', 'c', 'tip', xyz='0.1 0 0', rpy='0 1.5707963267948966 0'),
)


@pytest.mark.parametrize('case', CASES)
def test_fk_equals_two_other_readers(case: Case):
    """Against plain numpy, and that in turn against yourdfpy's scene graph."""
    import yourdfpy  # here: make quick, which leaves this test out, does not wait for it

    arm, plain = case.arm(), case.plain()
    library = (
        yourdfpy.URDF(
            yourdfpy.URDF.load(case.path, load_meshes=False, build_scene_graph=True).robot,
            load_meshes=False,
            build_scene_graph=True,
        )
        if case.path.endswith('.urdf')
        else None
    )
    rng = np.random.default_rng(1)
    for q in arm.sample(rng, 20):
        values = dict(zip(arm.joint_names, q, strict=True))
        position, direction = arm.fk(q)
        expected = plain.fk(values)
        np.testing.assert_allclose(position, expected[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(direction, expected[1], rtol=0, atol=1e-12)
        if library is not None:
            library.update_cfg({name: values.get(name, 0.0) for name in library.actuated_joint_names})
            pose = library.get_transform(arm.tip_link, arm.base_link)
            np.testing.assert_allclose(plain.pose(values), pose, rtol=0, atol=1e-9)


@pytest.mark.parametrize('case', CASES)
def test_the_tool_at_the_pose_of_the_tip_is_that_of_fk(case: Case):
    arm = case.arm()
    q = arm.sample(np.random.default_rng(2), 1)[0]
    values = dict(zip(arm.joint_names, q.tolist(), strict=True))
    for found, expected in zip(tool_at(arm, arm.link_in_base(arm.tip_link, values)), arm.fk(q), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize('case', CASES)
def test_jacobian_equals_central_differences(case: Case):
    arm, h = case.arm(), 6e-6
    for q in arm.sample(np.random.default_rng(2), 5):
        ahead = np.array([np.concatenate(arm.fk(q + step)) for step in np.eye(arm.n) * h])
        behind = np.array([np.concatenate(arm.fk(q - step)) for step in np.eye(arm.n) * h])
        np.testing.assert_allclose(arm.jacobian(q), ((ahead - behind) / (2 * h)).T, rtol=0, atol=5e-10)


@pytest.mark.parametrize('case', CASES)
def test_effective_dof_and_its_sentence(case: Case):
    arm = case.arm()
    if case.label == 'ikpy_prismatic_mixed':
        # A planar arm but for slants of 4e-6 in its file, too small for RANK_TOLERANCE: 3, not 4.
        assert arm.effective_dof == 3
    elif case.rank:
        assert arm.effective_dof == case.rank
    assert f'{arm.effective_dof} effective DoF' in arm.describe()
    assert f'{arm.n} joints from {arm.base_link} to {arm.tip_link}' in arm.describe()
    assert '\n' not in arm.describe()
    # Independent only where the fifth singular value is no trace of an offset.
    assert ('varied independently' in arm.describe()) == (arm.effective_dof == arm.practical_dof == 5)


@pytest.mark.parametrize('case', CASES)
def test_arrays_have_their_shapes_and_are_read_only(case: Case):
    arm = case.arm()
    assert len(arm.joint_names) == arm.n
    assert len(arm.joints) == arm.n + case.mimics
    for array in (arm.lower, arm.upper, arm.velocity, arm.continuous, arm.prismatic, arm.middle):
        assert array.shape == (arm.n,)
    for array in (arm.tool_axis, arm.tool_point, arm.tool_lateral):
        assert array.shape == (3,)
    for array in (
        *(arm.lower, arm.upper, arm.velocity, arm.continuous, arm.prismatic, arm.middle),
        *(arm.tool_axis, arm.tool_point, arm.tool_lateral, arm.joints, arm.tool, arm.limits),
    ):
        with pytest.raises(ValueError, match='read-only'):
            array.flat[0] = 1
    assert (arm.velocity > 0).all()
    assert (arm.lower <= arm.middle).all()
    assert (arm.middle <= arm.upper).all()
    assert (np.isinf(arm.lower) == arm.continuous).all()
    assert (np.isinf(arm.upper) == arm.continuous).all()
    assert abs(arm.tool_lateral @ arm.tool_axis) < 1e-15
    assert abs(np.linalg.norm(arm.tool_lateral) - 1) < 1e-15


@pytest.mark.parametrize('case', CASES)
def test_samples_stay_within_the_limits_and_the_reach(case: Case):
    arm = case.arm()
    points = arm.sample(np.random.default_rng(3), 300)
    assert points.shape == (300, arm.n)
    assert (points >= arm.lower).all()
    assert (points <= arm.upper).all()
    np.testing.assert_array_equal(points, arm.sample(np.random.default_rng(3), 300))
    first = arm.joints[0, 3:6]
    farthest = max(np.linalg.norm(arm.fk(q)[0] - first) for q in points)
    assert farthest <= arm.reach
    # A bound far above what the arm can do would prove nothing about goals out of reach.
    assert farthest > 0.3 * arm.reach


def test_mixed_joints_by_hand():
    arm = Arm.from_urdf(MIXED)
    assert (arm.name, arm.base_link, arm.tip_link) == ('tiny', 'base', 'tip')
    assert arm.joint_names == ('turn', 'lift', 'bend')
    assert arm.continuous.tolist() == [True, False, False]
    assert arm.prismatic.tolist() == [False, True, False]
    assert arm.lower.tolist() == [-math.inf, 0.05, -1.5]
    assert arm.upper.tolist() == [math.inf, 0.4, 0.5]
    np.testing.assert_allclose(arm.middle, [0, 0.225, -0.5])
    assert arm.velocity.tolist() == [3, 3, 3]
    # A quarter turn, 0.3 m up, then the forearm of 0.1 m a quarter turn up (-y is up for axis y).
    position, direction = arm.fk([math.pi / 2, 0.3, -math.pi / 2])
    np.testing.assert_allclose(position, [0, 0.2, 0.1 + 0.3 + 0.1], atol=1e-15)
    np.testing.assert_allclose(direction, [0, 0, 1], atol=1e-15)


def test_a_mimic_inside_the_arm_is_no_variable_but_moves():
    text = robot(
        joint('master', 'revolute', 'base', 'a', axis='0 1 0'),
        joint(
            'slave',
            'revolute',
            'a',
            'b',
            axis='0 1 0',
            xyz='1 0 0',
            extra='<mimic joint="master" multiplier="-1" offset="0.5"/>',
        ),
        joint('mount', 'fixed', 'b', 'tip', xyz='1 0 0'),
    )
    arm = Arm.from_urdf(text, 'tip', tool_axis=(1, 0, 0))
    assert arm.joint_names == ('master',)
    position, direction = arm.fk([0.3])
    np.testing.assert_allclose(direction, [math.cos(0.5), 0, -math.sin(0.5)], atol=1e-15)
    expected = [math.cos(0.3) + math.cos(0.5), 0, -math.sin(0.3) - math.sin(0.5)]
    np.testing.assert_allclose(position, expected, atol=1e-15)
    # The forearm keeps its direction: the master only carries it along a circle.
    np.testing.assert_allclose(
        arm.jacobian([0.3])[:, 0], [-math.sin(0.3), 0, -math.cos(0.3), 0, 0, 0], atol=1e-15
    )


def test_a_mimic_whose_master_is_off_the_arm_still_has_one_variable():
    text = robot(
        joint('elsewhere', 'revolute', 'base', 'side', axis='0 1 0'),
        joint('follower', 'revolute', 'base', 'a', extra='<mimic joint="elsewhere" multiplier="2"/>'),
        joint('mount', 'fixed', 'a', 'tip', xyz='1 0 0'),
    )
    arm = Arm.from_urdf(text, 'tip')
    assert arm.joint_names == ('elsewhere',)
    np.testing.assert_allclose(arm.fk([0.25])[0], [math.cos(0.5), math.sin(0.5), 0], atol=1e-15)


def test_base_link_other_than_the_root():
    whole = Arm.from_urdf(MIXED)
    part = Arm.from_urdf(MIXED, 'tip', base_link='a')
    assert part.base_link == 'a'
    assert part.joint_names == ('lift', 'bend')
    q = [0.2, 0.1]
    # With the first joint at 0, link a stands 0.1 m above base.
    np.testing.assert_allclose(part.fk(q)[0] + [0, 0, 0.1], whole.fk([0, *q])[0], atol=1e-15)


def test_tool_point_and_axis_are_in_the_tip_frame():
    arm = Arm.from_urdf(MIXED, tool_axis=(0, 0.6, 0.8), tool_point=(0.01, 0.02, 0.03))
    position, direction = arm.fk([0, 0.1, 0])
    # The tip frame is turned a quarter about y: its x is down, its z is forward.
    np.testing.assert_allclose(position, [0.3 + 0.03, 0.02, 0.2 - 0.01], atol=1e-15)
    np.testing.assert_allclose(direction, [0.8, 0.6, 0], atol=1e-15)


@pytest.mark.parametrize(
    ('tool', 'words'),
    [
        ({'tool_axis': (0, 0, 0)}, ['tool_axis', 'unit']),
        ({'tool_axis': (0, 0, 2)}, ['tool_axis', 'unit', 'length 2']),
        ({'tool_axis': (0, math.nan, 1)}, ['tool_axis', 'finite']),
        ({'tool_axis': (0, 1)}, ['tool_axis', '(3,)']),
        ({'tool_axis': 'z'}, ['tool_axis', 'three numbers']),
        ({'tool_point': (0, 0)}, ['tool_point', '(3,)']),
        ({'tool_point': (0, 0, math.inf)}, ['tool_point', 'finite']),
        ({'tool_point': (1e300, 0, 0)}, ['tool_point', 'at most 1e+09', '[1e+300, 0.0, 0.0]']),
        ({'tool_point': (0, -1.1e9, 0)}, ['tool_point', 'at most 1e+09']),
        *(
            ({name: value}, [name, 'three numbers', repr(value)])
            for name in ('tool_axis', 'tool_point')
            for value in (
                *(
                    b'abc',
                    bytearray(b'abc'),
                    {0.0, 1.0, 2.0},
                    frozenset((0.0, 1.0, 2.0)),
                    {0: 'a', 1: 'b', 2: 'c'},
                ),
                *((0j, 0.0, 1.0), np.array([0, 0, 1j]), [np.complex64(0), 0.0, 1.0], ('0', '0', '1'), None),
                *(np.array(['0', '0', '1']), (b'0', b'0', b'1')),
            )
        ),
        ({'tool_axis': 5}, ['tool_axis', '(3,)', '5']),
        ({'tip_link': 5}, ['tip_link must be the name of a link, got 5', '"base", "a", "b", "c", "tip"']),
        ({'tip_link': b'tip'}, ["tip_link must be the name of a link, got b'tip'"]),
        ({'tip_link': ['tip']}, ["tip_link must be the name of a link, got ['tip']"]),
        ({'base_link': 5}, ['base_link must be the name of a link, got 5']),
    ],
)
def test_bad_tools_are_rejected(tool, words):
    with pytest.raises(InputError) as caught:
        Arm.from_urdf(MIXED, **tool)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize('given', [None, 'arm.urdf', MIXED])
def test_what_is_not_a_robot_is_rejected(given):
    with pytest.raises(InputError, match='robot must be a Robot, as read_urdf returns it, got'):
        Arm(given)


def test_vectors_of_any_real_numbers_are_welcome():
    for point in (
        [0, 1, 2],
        np.arange(3, dtype=np.int8),
        np.arange(3, dtype=np.float32),
        map(float, range(3)),
    ):
        assert Arm.from_urdf(MIXED, tool_point=point).tool_point.tolist() == [0, 1, 2]
    assert Arm.from_urdf(MIXED, tool_point=(Fraction(1, 2), Decimal(1), np.float64(2))).tool_point[0] == 0.5
    arm = Arm.from_urdf(MIXED)
    np.testing.assert_array_equal(arm.checked([0, Fraction(1, 2), 1]), [0, 0.5, 1])
    np.testing.assert_array_equal(arm.checked(np.arange(3)), [0, 1, 2])


@pytest.mark.parametrize('links', [{'tip_link': 'nowhere'}, {'base_link': 'nowhere'}, {'tip_link': 'base'}])
def test_bad_links_are_rejected_with_a_list_or_a_reason(links):
    with pytest.raises(UrdfError) as caught:
        Arm.from_urdf(MIXED, **links)
    assert next(iter(links.values())) in str(caught.value)


def test_a_nearly_unit_tool_axis_is_normalised():
    arm = Arm.from_urdf(MIXED, tool_axis=(0, 0, 1.0005))
    assert arm.tool_axis.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    'q',
    [
        *((0, 0), (0, 0, 0, 0), 0.0, (0, math.nan, 0), (0, 0, math.inf), 'abc', None, [[0, 0, 0]]),
        *(b'abc', {0.0, 0.1, 0.2}, {'turn': 0}, (0j, 0, 0), np.zeros(3, dtype=complex), ['0', '0', '0']),
        [np.complex64(0), 0, 0],
    ],
)
def test_bad_joints_are_rejected(q):
    arm = Arm.from_urdf(MIXED)
    for call in (arm.fk, arm.jacobian):
        with pytest.raises(InputError, match=r'3 finite numbers \(turn, lift, bend\)'):
            call(q)


def test_fk_does_not_change_its_argument_and_returns_new_arrays():
    arm = Arm.from_urdf(MIXED)
    q = np.array([0.1, 0.2, 0.3])
    position, _ = arm.fk(q)
    assert q.tolist() == [0.1, 0.2, 0.3]
    before = position.copy()
    arm.fk(q + 0.1)
    np.testing.assert_array_equal(position, before)


def test_a_single_slide_has_one_effective_dof():
    text = robot(joint('slide', 'prismatic', 'base', 'tip', axis='1 0 0', limit=(0, 0.5)))
    arm = Arm.from_urdf(text)
    assert arm.effective_dof == 1
    assert arm.reach == pytest.approx(0.5)


def test_tiny_arms_have_the_effective_dof_of_large_ones():
    """A rank test must not depend on the unit of length."""
    for scale in (1e-3, 1.0, 1e3):
        lengths = [f'{scale * x} 0 0' for x in (0.0, 0.3, 0.25, 0.1, 0.05)]
        axes = ['0 0 1', '0 1 0', '0 1 0', '0 1 0', '1 0 0']
        links = ['base', 'a', 'b', 'c', 'd', 'tip']
        joints = [
            joint(f'j{i}', 'revolute', links[i], links[i + 1], axis=axes[i], xyz=lengths[i]) for i in range(5)
        ]
        offset = {'tool_point': (0.05 * scale, 0, 0.01 * scale)}
        assert Arm.from_urdf(robot(*joints), tool_axis=(1, 0, 0)).effective_dof == 4
        assert Arm.from_urdf(robot(*joints), tool_axis=(1, 0, 0), **offset).effective_dof == 5
        assert Arm.from_urdf(robot(*joints), tool_axis=(0, 1, 0)).effective_dof == 5
