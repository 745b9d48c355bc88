# SPDX-License-Identifier: Apache-2.0
"""A joint that others follow goes only as far as all of them may."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.errors import ChainError, InputError
from ik_node.model.arm import Arm
from ik_node.model.joint_set import JointSet
from ik_node.model.urdf.reader import read_urdf
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver

ROOM = '<limit lower="-1" upper="1" velocity="1" effort="1"/>'


def arm(mimic: str = 'multiplier="2"', room: str = ROOM, follower: str = 'revolute', j2: str = '') -> str:
    """Two hinges j1 and j2, and j3 beyond them that follows j2."""
    joints = [('j1', 'revolute', ROOM), ('j2', 'revolute', j2 or ROOM)]
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
        ('multiplier="-20"', ROOM, -0.05, 0.05),
        ('multiplier="-2" offset="0.5"', ROOM, -0.25, 0.75),
        ('offset="0.5"', ROOM, -1.0, 0.5),
        ('multiplier="0.1"', ROOM, -1.0, 1.0),
        ('multiplier="0" offset="0.5"', ROOM, -1.0, 1.0),  # it stands still
        ('multiplier="2"', '<limit velocity="1" effort="1"/>', -1.0, 1.0),  # none is given
        ('multiplier="2"', '<limit lower="-1e9" upper="1" velocity="1"/>', -1.0, 0.5),  # a placeholder
        ('multiplier="2"', '<limit upper="1" velocity="1"/>', 0.0, 0.5),  # the other one is 0 in URDF
        ('multiplier="-1"', '<limit lower="0" upper="6.2832" velocity="1"/>', -1.0, 1.0),  # any angle
    ],
)
def test_the_followers_limits_are_the_drivers_too(mimic: str, room: str, lower: float, upper: float) -> None:
    robot = read_urdf(arm(mimic, room))
    assert (robot.joints['j2'].lower, robot.joints['j2'].upper) == pytest.approx((lower, upper))
    joints = JointSet(robot)
    assert (joints.lower[1], joints.upper[1]) == pytest.approx((lower, upper))
    chain = Arm(robot, 'l2')  # j3 is off this one, and counts all the same
    assert (chain.lower[1], chain.upper[1]) == pytest.approx((lower, upper))
    told = [warning for warning in robot.warnings if 'narrows' in warning]
    assert len(told) == ((lower, upper) != (-1.0, 1.0))
    assert all('joint "j3" (line 4) leaves "j2"' in warning for warning in told)


def test_no_answer_leaves_the_limits_of_a_follower() -> None:
    robot = read_urdf(arm())
    solver = IkSolver(Arm(robot))
    free = read_urdf(arm(room='<limit velocity="1"/>'))
    for q in ([0.2, 0.95], [0.2, 0.4], [-1.0, -0.5]):
        place = free.link_pose('l3', {'j1': q[0], 'j2': q[1]})
        first, second = solver.solve(Goal(place[:3, 3])).q
        assert abs(robot.joint_values({'j1': first, 'j2': second})['j3']) <= 1.0 + 1e-9


def test_a_joint_goal_beyond_the_follower_is_rejected() -> None:
    model = ArmModel.build(arm('multiplier="-20"'), ArmSettings())
    with pytest.raises(InputError, match=r'joint "j2" cannot move to 0.9, its limits are -0.05 to 0.05'):
        model.joint_targets({'j2': 0.9})


def test_a_continuous_driver_gets_the_limits_of_its_follower() -> None:
    text = arm().replace('"j2" type="revolute"', '"j2" type="continuous"')
    chain = Arm.from_urdf(text)
    assert (chain.continuous[1], chain.lower[1], chain.upper[1]) == (False, -0.5, 0.5)
    assert Arm.from_urdf(arm(follower='continuous')).upper[1] == 1.0
    free = arm(follower='continuous').replace('"j2" type="revolute"', '"j2" type="continuous"')
    assert math.isinf(Arm.from_urdf(free).upper[1])


def test_limits_that_share_no_value_are_a_fault_of_the_arm() -> None:
    text = arm('multiplier="2" offset="5"')
    with pytest.raises(ChainError) as caught:
        Arm.from_urdf(text)
    words = ['joint "j2" (line 3)', 'joint "j3" (line 4)', 'between -3 and -2', 'are -1 and 1', 'multiplier']
    assert [word for word in words if word not in str(caught.value)] == []
    robot = read_urdf(text)
    assert [warning[:39] for warning in robot.warnings] == ['no position is within the limits of bot']
    assert [joint.name for joint in robot.chain('l1')] == ['j1']  # an arm without j2 is one


def test_limits_that_meet_but_for_rounding_leave_one_value() -> None:
    exact = arm('offset="2"', '<limit lower="3.0000000000001" upper="4" velocity="1"/>')
    joint = read_urdf(exact).joints['j2']
    assert joint.lower == joint.upper == pytest.approx(1.0)


def test_real_arms_keep_their_room(arms_index: dict[str, Any], shared: Any) -> None:
    """Limits of a whole turn on the parallelograms of the Magician would leave it a twentieth of its room."""
    chain = Arm.from_file(shared / 'arms' / 'magician.urdf', 'magician_link_gripper_core')
    assert chain.upper[chain.joint_names.index('magician_joint_2')] == pytest.approx(math.pi / 2)
    assert arms_index['magician']['tips'][0]['joints'] == list(chain.joint_names)
