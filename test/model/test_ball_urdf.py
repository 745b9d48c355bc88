# SPDX-License-Identifier: Apache-2.0
"""Ball joints in a URDF: three revolute joints in one point, and the limits of the whole."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from cases import arm_of
from scipy.spatial.transform import Rotation

from ik_node import Arm
from ik_node.errors import ChainError, ElementError
from ik_node.model.ball import ANY, Ball, Order
from ik_node.model.urdf.reader import read_urdf

JOINT = """<link name="{name}_link"/><joint name="{name}" type="{kind}"><parent link="{parent}"/>
<child link="{name}_link"/><origin xyz="{xyz}"/><axis xyz="{axis}"/>
<limit lower="{low}" upper="{high}" velocity="1" effort="1"/>{more}</joint>"""


def ball_urdf(axes='100 010 001', limits='', element='', xyz='0 0 0', low=-2.0, kind='revolute', more=''):
    """A robot of a ball a, b, c and a joint d on a link of 0.3 m along z; the element on line 1."""
    element = element or (limits and f'<ik_node><ball joints="a b c" {limits}/></ik_node>')
    rows = [f'<robot name="r">{element}<link name="base"/>']
    parent = 'base'
    for name, axis in zip('abcd', [*axes.split(), '010'], strict=True):
        place = {'a': '0 0 0.1', 'd': '0 0 0.3'}.get(name, xyz)
        given = {'low': low, 'high': 2.0} if name != 'd' else {'low': -1, 'high': 1}
        own = {'kind': kind, 'more': ''} if name != 'd' else {'kind': 'revolute', 'more': more}
        rows.append(JOINT.format(name=name, parent=parent, xyz=place, axis=' '.join(axis), **own, **given))
        parent = f'{name}_link'
    return '\n'.join([*rows, '</robot>'])


def ball_of(*given, **more) -> Ball:
    (ball,) = read_urdf(ball_urdf(*given, **more)).balls
    return ball


@pytest.mark.parametrize(
    ('axes', 'order', 'hand'),
    [
        ('100 010 001', Order.TWIST_LAST, 1.0),
        ('010 100 001', Order.TWIST_LAST, -1.0),
        ('001 010 100', Order.TWIST_FIRST, -1.0),
        ('001 010 001', Order.PROPER, 1.0),
    ],
)
def test_three_axes_in_one_point_are_a_ball(axes, order, hand):
    ball = ball_of(axes)
    assert (ball.joints, ball.order, ball.hand) == (('a', 'b', 'c'), order, hand)
    assert not ball.declared
    assert not ball.limited


def test_opposite_outer_axes_have_the_other_hand():
    text = ball_urdf('001 010 001').replace('<axis xyz="0 0 1"/>', '<axis xyz="0 0 -1"/>', 1)
    (ball,) = read_urdf(text).balls
    assert (ball.order, ball.hand) == (Order.PROPER, -1.0)


@pytest.mark.parametrize(
    'other',
    [
        {'xyz': '0 0 0.001'},  # not in one point
        {'axes': '100 110 001'},  # not perpendicular
        {'axes': '100 010 011'},  # the outer axes neither perpendicular nor in one line
        {'kind': 'prismatic'},
        {'more': '<mimic joint="b"/>'},  # a joint that another one follows
    ],
)
def test_other_joints_are_no_ball(other):
    assert read_urdf(ball_urdf(**other)).balls == ()


def test_the_element_limits_the_cone_and_the_twist():
    arm = Arm.from_urdf(ball_urdf())
    assert arm.limits.shape == (2, 4)  # without an element joints keep their limits and arrays
    assert not arm.has_cones
    robot = read_urdf(ball_urdf(limits='swing="0.8" twist_lower="-0.5" twist_upper="1"'))
    (ball,) = robot.balls
    assert (ball.swing, ball.twist, ball.declared, ball.limited) == (0.8, (-0.5, 1.0), True, True)
    spans = {name: (joint.lower, joint.upper) for name, joint in robot.joints.items()}
    assert spans == {'a': (-0.8, 0.8), 'b': (-0.8, 0.8), 'c': (-0.5, 1.0), 'd': (-1.0, 1.0)}
    assert ball.given == ((-2.0, 2.0),) * 3
    assert robot.warnings == ()
    assert ball_of(limits='swing="1" twist_joint="a"').swing_joints == ('b', 'c')
    assert ball_of(limits='swing="1" twist_joint="c"').swing_joints == ('a', 'b')
    continuous = read_urdf(ball_urdf(limits='swing="0.8"', kind='continuous'))
    assert [continuous.joints[name].type for name in 'abc'] == ['revolute', 'revolute', 'continuous']
    assert continuous.joints['a'].upper == 0.8


def test_the_cone_of_proper_angles_is_a_limit_of_the_middle_joint():
    robot = read_urdf(ball_urdf('001 010 001', 'swing="0.8" twist_upper="1"'))
    spans = [(robot.joints[name].lower, robot.joints[name].upper) for name in 'abc']
    assert spans == [(-2.0, 2.0), (-0.8, 0.8), (-2.0, 2.0)]
    assert robot.balls[0].limited
    assert not ball_of('001 010 001', 'swing="0.8"').limited


@pytest.mark.parametrize(
    ('given', 'named'),
    [
        ({'limits': 'swing="1.7"'}, ['swing="1.7"', '1.561 rad']),
        ({'limits': 'swing="0"'}, ['swing="0"', 'greater than 0']),
        ({'limits': 'swing="wide"'}, ['swing="wide"']),
        ({'limits': 'swing="nan"'}, ['swing="nan"']),
        ({'limits': 'swing="1" twist_joint="b"'}, ['twist_joint="b"', '"a", "c"']),
        ({'limits': 'twist_lower="2" twist_upper="1"'}, ['twist_lower="2"', 'twist_upper="1"']),
        ({'limits': 'twist_lower="3"'}, ['"c"', '3 to inf rad', '-2 to 2 rad']),
        ({'limits': 'size="1"'}, ['"size"', '"twist_upper"']),
        ({'limits': 'swing="1.1"', 'low': 0.98}, ['1.255 rad']),  # limits leave nothing of the cone
        ({'element': '<ik_node><ball joints="a b x"/></ik_node>'}, ['"x"', '"a", "b"']),
        ({'element': '<ik_node><ball joints="b c d"/></ik_node>'}, ['of this robot: a b c']),
        ({'element': '<ik_node><ball/></ik_node>'}, ['three revolute joints']),
        ({'element': '<ik_node><cone/></ik_node>'}, ['<cone>', '<ball>']),
        ({'element': 2 * '<ik_node><ball joints="a b c"/></ik_node>'}, ['duplicate <ball>']),
    ],
)
def test_wrong_elements_are_rejected_with_what_is_allowed(given, named):
    with pytest.raises(ElementError) as error:
        read_urdf(ball_urdf(**given))
    assert [part for part in [*named, 'line 1'] if part not in str(error.value)] == [], str(error.value)


def test_limits_narrowed_later_that_leave_nothing_of_the_cone_are_rejected():
    robot = read_urdf(ball_urdf(limits='swing="1.1"'))
    narrow = {name: replace(robot.joints[name], lower=0.98) for name in 'ab'}
    with pytest.raises(ChainError, match='swing below'):
        Arm(robot.with_joints({**robot.joints, **narrow}))


@pytest.mark.slow
@pytest.mark.parametrize('order', list(Order))
@pytest.mark.parametrize('hand', [-1.0, 1.0])
def test_swing_and_twist_go_there_and_back(order, hand):
    """The swing is the angle of the twist axis from its rest."""
    ball, rng = Ball(('a', 'b', 'c'), order, hand), np.random.default_rng(3)
    axes, rest = ('XYX' if order is Order.PROPER else 'XYZ'), np.eye(3)[2 if order is Order.TWIST_LAST else 0]
    for q in rng.uniform(-1.0, 1.0, (200, 3)).tolist():
        x, y, twist = ball.swing_twist(tuple(q))
        np.testing.assert_allclose(ball.joint_positions(x, y, twist, q), q, atol=1e-12)
        if hand > 0.0:
            turn = Rotation.from_euler(axes, q).as_matrix()
            assert math.hypot(x, y) == pytest.approx(math.acos(rest @ turn @ rest), abs=1e-9)
    at_rest = ball.joint_positions(0.0, 0.0, 0.4, (0.1, 0.2, 0.3))
    np.testing.assert_allclose(ball.swing_twist(at_rest), (0.0, 0.0, 0.4), atol=1e-12)


def test_copies_and_samples_keep_the_cone():
    arm = arm_of('ball_joint_arm')
    for other in (pickle.loads(pickle.dumps(arm)), copy.deepcopy(arm)):
        assert other.balls == arm.balls
        np.testing.assert_array_equal(other.limits, arm.limits)
    assert arm.balls[0].twist == ANY
    narrow = Arm.from_urdf(ball_urdf(limits='swing="1.1"', low=-0.2))
    assert max(map(narrow.ball_excess, narrow.sample(np.random.default_rng(0), 500))) == 0.0
    assert narrow.ball_excess(narrow.middle) == 0.0
