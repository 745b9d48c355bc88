# SPDX-License-Identifier: Apache-2.0
"""Which joints are the gripper of an arm, and where they are when it is closed and when it is open."""

from __future__ import annotations

import pytest
from small_arm import arm_urdf

from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.gripper import gripper_of
from ik_node.startup.arguments import URDF

MIMICS = '<mimic joint="finger" multiplier="-1"/>'


def arm(text: str) -> Arm:
    return Arm.from_urdf(text, 'tool0')


@pytest.mark.parametrize(
    ('positions', 'closed', 'opened'),
    [
        ((0.0, 0.0), (0.0, 0.0), (0.04, -0.04)),
        ((0.01, 0.03), (0.01, -0.01), (0.03, -0.03)),
        ((0.04, 0.0), (0.04, -0.04), (0.0, 0.0)),
    ],
)
def test_two_fingers_that_mimic_nothing_move_together(positions, closed, opened):
    """Also between positions that a user gives, in either sense."""
    found = gripper_of(arm(arm_urdf().replace(MIMICS, '')), positions=positions)
    assert found.positions(0.0) == pytest.approx(dict(zip(('finger', 'other_finger'), closed, strict=True)))
    assert found.positions(1.0) == pytest.approx(dict(zip(('finger', 'other_finger'), opened, strict=True)))


def test_a_finger_that_mimics_another_is_not_commanded():
    found = gripper_of(arm(arm_urdf()), positions=(0.01, 0.03))
    assert found.positions(1.0) == {'finger': 0.03}
    assert found.clipped(0.03005) == 0.03
    assert found.clipped(0.04) == 0.04
    with pytest.raises(InputError, match='gripper_positions'):
        gripper_of(arm(arm_urdf()), positions=(0.0, 4.0))


def test_a_gripper_joint_that_the_arm_does_not_carry_is_rejected_with_those_it_has():
    with pytest.raises(InputError, match=r'no joint "thumb" that moves by itself, it has "?finger'):
        gripper_of(arm(arm_urdf()), 'thumb')
    with pytest.raises(InputError, match=r'no joint "thumb" that moves by itself, it has none'):
        gripper_of(Arm.from_file(URDF / 'seed_arm.urdf.xacro'), 'thumb')
