# SPDX-License-Identifier: Apache-2.0
"""Ball joints in a URDF: three revolute joints in one point, and the limits of the whole."""

from __future__ import annotations

import copy
import io
import math
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from ik_node import Arm
from ik_node.errors import ChainError, ElementError
from ik_node.model.ball import ANY, Ball, Order
from ik_node.model.urdf.reader import load_description, read_urdf

SHIPPED = Path(__file__).resolve().parents[2] / 'urdf' / 'ball_joint_arm.urdf.xacro'
JOINT = """<link name="{name}_link"/><joint name="{name}" type="{kind}"><parent link="{parent}"/>
<child link="{name}_link"/><origin xyz="{xyz}"/><axis xyz="{axis}"/>
<limit lower="{low}" upper="{high}" velocity="1" effort="1"/>{more}</joint>"""


def ball_urdf(
    axes='100 010 001', element='', xyz='0 0 0', low=-2.0, high=2.0, kind='revolute', more=''
) -> str:
    """A robot of a ball a, b, c and a joint d on a link of 0.3 m along z; the element on line 1."""
    rows = [f'<robot name="r">{element}<link name="base"/>']
    parent = 'base'
    for name, axis in zip('abcd', [*axes.split(), '010'], strict=True):
        place = {'a': '0 0 0.1', 'd': '0 0 0.3'}.get(name, xyz)
        given = {'low': low, 'high': high} if name != 'd' else {'low': -1, 'high': 1}
        own = {'kind': kind, 'more': ''} if name != 'd' else {'kind': 'revolute', 'more': more}
        rows.append(JOINT.format(name=name, parent=parent, xyz=place, axis=' '.join(axis), **own, **given))
        parent = f'{name}_link'
    return '\n'.join([*rows, '</robot>'])


def declared(attributes: str) -> str:
    return f'<ik_node><ball joints="a b c" {attributes}/></ik_node>'


def ball_of(text: str) -> Ball:
    (ball,) = read_urdf(text).balls
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
    ball = ball_of(ball_urdf(axes))
    assert ball.joints == ('a', 'b', 'c')
    assert (ball.order, ball.hand) == (order, hand)
    assert not ball.declared
    assert not ball.limited


def test_opposite_outer_axes_have_the_other_hand():
    text = ball_urdf('001 010 001').replace('<axis xyz="0 0 1"/>', '<axis xyz="0 0 -1"/>', 1)
    assert (ball_of(text).order, ball_of(text).hand) == (Order.PROPER, -1.0)


@pytest.mark.parametrize(
    'text',
    [
        ball_urdf(xyz='0 0 0.001'),  # not in one point
        ball_urdf('100 110 001'),  # not perpendicular
        ball_urdf('100 010 011'),  # the outer axes neither perpendicular nor in one line
        ball_urdf(kind='prismatic'),
        ball_urdf(more='<mimic joint="b"/>'),  # a joint that another one follows
    ],
)
def test_other_joints_are_no_ball(text):
    assert read_urdf(text).balls == ()


def test_joints_without_an_element_keep_their_limits_and_their_arrays():
    arm = Arm.from_urdf(ball_urdf())
    assert arm.limits.shape == (2, 4)
    assert not arm.has_cones
    assert 'joints a, b, c form a ball joint: swing by "a" and "b"' in arm.describe()


def test_an_element_gives_cone_and_twist():
    robot = read_urdf(ball_urdf(element=declared('swing="0.8" twist_lower="-0.5" twist_upper="1"')))
    (ball,) = robot.balls
    assert (ball.swing, ball.twist, ball.declared, ball.limited) == (0.8, (-0.5, 1.0), True, True)
    spans = {name: (joint.lower, joint.upper) for name, joint in robot.joints.items()}
    assert spans == {'a': (-0.8, 0.8), 'b': (-0.8, 0.8), 'c': (-0.5, 1.0), 'd': (-1.0, 1.0)}
    assert ball.given == ((-2.0, 2.0),) * 3
    assert robot.warnings == ()
    said = Arm(robot).describe()
    assert 'swing by "a" and "b" up to 0.8 rad, twist by "c" from -0.5 to 1 rad' in said


def test_the_cone_of_proper_angles_is_a_limit_of_the_middle_joint():
    robot = read_urdf(ball_urdf('001 010 001', declared('swing="0.8" twist_upper="1"')))
    assert [(robot.joints[name].lower, robot.joints[name].upper) for name in 'abc'] == [
        (-2.0, 2.0),
        (-0.8, 0.8),
        (-2.0, 2.0),
    ]
    assert robot.balls[0].limited
    assert not ball_of(ball_urdf('001 010 001', declared('swing="0.8"'))).limited


def test_the_twist_joint_can_be_chosen():
    assert ball_of(ball_urdf(element=declared('swing="1" twist_joint="a"'))).swing_joints == ('b', 'c')
    assert ball_of(ball_urdf(element=declared('swing="1" twist_joint="c"'))).swing_joints == ('a', 'b')


def test_a_continuous_joint_gets_the_limits_of_the_cone():
    robot = read_urdf(ball_urdf(element=declared('swing="0.8"'), kind='continuous'))
    assert [robot.joints[name].type for name in 'abc'] == ['revolute', 'revolute', 'continuous']
    assert robot.joints['a'].upper == 0.8


@pytest.mark.parametrize(
    ('attributes', 'parts'),
    [
        ('swing="1.7"', ['swing="1.7"', 'at most 1.561 rad', 'a and b, which lock at a right angle']),
        ('swing="0"', ['swing="0"', 'greater than 0']),
        ('swing="wide"', ['swing="wide"', 'finite number in rad']),
        ('swing="nan"', ['swing="nan"', 'finite number in rad']),
        ('swing="1" twist_joint="b"', ['twist_joint="b"', 'first or the last joint', '"a", "c"']),
        ('twist_lower="2" twist_upper="1"', ['twist_lower="2" above twist_upper="1"']),
        ('twist_lower="3"', ['3 to inf rad for joint "c"', '-2 to 2 rad', 'nothing is left']),
        ('size="1"', ['"size"', 'attributes of <ball>', '"twist_upper"']),
    ],
)
def test_wrong_limits_are_rejected_with_what_is_allowed(attributes, parts):
    with pytest.raises(ElementError) as error:
        read_urdf(ball_urdf(element=declared(attributes)))
    for part in [*parts, 'line 1']:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ('element', 'parts'),
    [
        ('<ik_node><ball joints="a b x"/></ik_node>', ['unknown joint "x"', 'joints: "a", "b"']),
        ('<ik_node><ball joints="b c d"/></ik_node>', ['do not form a ball joint', 'of this robot: a b c']),
        ('<ik_node><ball/></ik_node>', ['do not form a ball joint', 'Name three revolute joints']),
        ('<ik_node><cone/></ik_node>', ['unknown element <cone>', 'allowed: <ball>']),
        (2 * declared('swing="1"'), ['duplicate <ball>']),
    ],
)
def test_an_element_that_fits_no_ball_is_rejected(element, parts):
    with pytest.raises(ElementError) as error:
        read_urdf(ball_urdf(element=element))
    for part in parts:
        assert part in str(error.value)


def test_limits_that_leave_nothing_of_the_cone_are_rejected():
    with pytest.raises(ElementError, match=r'allow no swing below 1\.255 rad'):
        read_urdf(ball_urdf(element=declared('swing="1.1"'), low=0.98))


def test_limits_narrowed_later_that_leave_nothing_of_the_cone_are_rejected():
    robot = read_urdf(ball_urdf(element=declared('swing="1.1"')))
    joints = dict(robot.joints)
    for name in 'ab':
        joints[name] = replace(joints[name], lower=0.98)
    with pytest.raises(ChainError, match='allow no swing below'):
        Arm(robot.with_joints(joints))


@pytest.mark.parametrize('order', list(Order))
@pytest.mark.parametrize('hand', [-1.0, 1.0])
def test_swing_and_twist_go_there_and_back(order, hand):
    ball, rng = Ball(('a', 'b', 'c'), order, hand), np.random.default_rng(3)
    for _ in range(200):
        q = tuple(rng.uniform(-1.0, 1.0, 3).tolist())
        np.testing.assert_allclose(ball.joint_positions(*ball.swing_twist(q), q), q, atol=1e-12)
    at_rest = ball.joint_positions(0.0, 0.0, 0.4, (0.1, 0.2, 0.3))
    np.testing.assert_allclose(ball.swing_twist(at_rest), (0.0, 0.0, 0.4), atol=1e-12)


@pytest.mark.parametrize(
    ('order', 'axes'), [(Order.TWIST_LAST, 'XYZ'), (Order.TWIST_FIRST, 'XYZ'), (Order.PROPER, 'XYX')]
)
def test_the_swing_is_the_angle_of_the_twist_axis(order, axes):
    ball, rng = Ball(('a', 'b', 'c'), order, 1.0), np.random.default_rng(4)
    rest = np.eye(3)[2 if order is Order.TWIST_LAST else 0]
    for _ in range(100):
        q = rng.uniform(-1.2, 1.2, 3)
        turn = Rotation.from_euler(axes, q).as_matrix()
        swing_x, swing_y, _ = ball.swing_twist(tuple(q.tolist()))
        assert math.hypot(swing_x, swing_y) == pytest.approx(math.acos(rest @ turn @ rest), abs=1e-9)


def test_copies_keep_the_balls():
    arm = Arm.from_file(SHIPPED)
    for other in (pickle.loads(pickle.dumps(arm)), copy.deepcopy(arm)):
        assert other.balls == arm.balls
        np.testing.assert_array_equal(other.limits, arm.limits)
    assert arm.balls[0].twist == ANY


def test_samples_and_the_middle_are_inside_the_cone():
    arm = Arm.from_urdf(ball_urdf(element=declared('swing="1.1"'), low=-0.2))
    assert max(map(arm.ball_excess, arm.sample(np.random.default_rng(0), 500))) == 0.0
    assert arm.ball_excess(arm.middle) == 0.0


def test_other_readers_skip_the_element():
    text = load_description(SHIPPED)
    assert '<ik_node>' in text
    yourdfpy = pytest.importorskip('yourdfpy')
    robot = yourdfpy.URDF.load(io.StringIO(text), load_meshes=False, build_scene_graph=False)
    assert len(robot.robot.joints) == len(read_urdf(text).joints)
    mujoco = pytest.importorskip('mujoco')
    assert mujoco.MjModel.from_xml_string(text).njnt == 5
