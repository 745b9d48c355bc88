# SPDX-License-Identifier: Apache-2.0
"""Arrived means measured: the commands rest, and the arm is where they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_harness import SETTINGS, Rig
from driven_rig import Driven
from small_arm import ARM_JOINTS

from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.state.states import State
from ik_node.model.urdf.description import load_description


def phases(rig: Rig) -> list[str]:
    return [report.phase for report in rig.reports]


def test_an_arm_arrives_when_it_is_measured_at_its_target(real: Rig) -> None:
    real.go(yaw=0.2)
    for k in range(100):
        real.tick()
        real.measure_all(yaw=min(0.2, 0.002 * k))
    assert real.position('yaw') == 0.2
    assert real.state is State.HOLDING
    assert phases(real)[-1] == 'arrived'
    at = next(k for k in range(100) if 0.002 * k >= 0.2 - SETTINGS.arrival_tolerance)
    real.go(yaw=0.0)
    for k in range(at - 1):
        real.tick()
        real.measure_all(yaw=0.2 - 0.002 * k)
        assert phases(real)[-1] == 'moving'


def test_an_arm_that_stays_away_ends_its_goal_and_says_which_joint_and_how_far(real: Rig) -> None:
    real.go(yaw=0.2)
    for _ in range(300):
        real.tick()
        real.measure_all(yaw=0.7 * real.position('yaw'), shoulder=-0.08)
    assert real.state is State.HOLDING
    assert phases(real)[-1] == 'stopped'
    message = real.reports[-1].message
    told = (
        'ended before the arm arrived',
        'yaw" is 0.06',
        'shoulder" is 0.08',
        ' mm off',
        'P gain',
        'arrival_tolerance',
    )
    assert all(part in message for part in told)
    real.go(yaw=0.3)
    for _ in range(100):
        real.tick()
        real.measure_all(yaw=real.position('yaw'))
    assert phases(real)[-1] == 'arrived'


def test_an_arm_that_sags_arrives_after_a_second_and_tells_how_far_it_is_off(real: Rig) -> None:
    real.go(yaw=0.2)
    for _ in range(300):
        real.tick()
        real.measure_all(yaw=real.position('yaw'), shoulder=-0.04)
        if real.position('yaw') < 0.2:
            assert phases(real)[-1] == 'moving'
    assert phases(real)[-1] == 'arrived'
    assert 'shoulder" is 0.04' in real.reports[-1].message
    assert ' mm off' in real.reports[-1].message


@pytest.mark.parametrize(('short', 'phase'), [(0.0008, 'arrived'), (0.003, 'stopped')])
def test_a_joint_that_slides_has_a_tolerance_of_its_own(short: float, phase: str) -> None:
    description = load_description('urdf/prismatic_arm.urdf.xacro')
    model = ArmModel.build(description, replace(SETTINGS, base_link='base_link', tip_link=''))
    rig = Rig(model, measured=True)
    joints = dict.fromkeys(rig.model.joint_names, 0.0)
    rig.measure(**joints)
    rig.tick()
    rig.go(lift=0.1)
    for _ in range(400):
        rig.tick()
        rig.measure(**{**joints, 'lift': max(rig.position('lift') - short, 0.0)})
    assert phases(rig)[-1] == phase


def test_an_arm_that_nobody_measures_arrives_with_its_commands(picture: Rig) -> None:
    picture.go(yaw=0.2)
    picture.settle()
    assert phases(picture)[-1] == 'arrived'


def test_an_arm_arrives_when_its_controller_has_ended_the_trajectory(rig: Driven) -> None:
    ended = [False]
    rig.output.done = lambda: ended[0]
    rig.go(yaw=0.5)
    rig.tick(80)
    assert rig.position('yaw') == 0.5
    assert rig.state is State.MOVING
    ended[0] = True
    rig.tick()
    assert rig.reports[-1].phase == 'arrived'


def test_a_controller_that_ends_nothing_is_named(rig: Driven) -> None:
    rig.output.done = lambda: False
    rig.go(yaw=0.5)
    rig.tick(300)
    assert rig.reports[-1].message.endswith('arrived: the controller has not ended its trajectory')
    assert rig.state is State.HOLDING


def test_a_joint_that_no_controller_moves_is_rejected(rig: Driven, model: ArmModel, picture: Rig) -> None:
    served = Driven(model, controller_joints=(*ARM_JOINTS, 'finger'))
    served.measure_all(finger=0.0)
    served.tick(2)
    assert served.go(finger=0.02).phase == 'moving'
    assert picture.go(finger=0.02).phase == 'moving'
    report = rig.go(finger=0.02)
    assert report.phase == 'rejected'
    assert 'not "finger": move it with its own controller' in report.message
    assert rig.state is State.HOLDING
