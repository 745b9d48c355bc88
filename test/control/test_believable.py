# SPDX-License-Identifier: Apache-2.0
"""What cannot be true is not believed: no command while a joint is measured where it cannot be."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from control_harness import SETTINGS, Rig, positions
from driven_rig import Driven
from small_arm import ARM_JOINTS, arm_urdf

from ik_node import Goal
from ik_node.control.paths.tool_path import ToolPath
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.state.states import State
from ik_node.errors import InputError

WRONG = [('degrees', 28.6), ('a whole turn', 0.3 + 2.0 * math.pi), ('a whole turn', 0.3 - 2.0 * math.pi)]


@pytest.mark.parametrize(('asked', 'value'), WRONG)
def test_the_first_measurement_is_not_believed(model, asked: str, value: float) -> None:
    rig = Rig(model, measured=True)
    for _ in range(100):
        rig.measure_all(elbow=value)
        assert rig.tick() is None
    said = [report.message for report in rig.reports if 'elbow' in report.message and asked in report.message]
    assert len(said) == 1, 'it is said once'
    assert 'is measured at' in said[0]
    assert rig.go(yaw=0.1).status == 'rejected'
    assert positions(rig.rest_at(elbow=0.3))['elbow'] == 0.3
    assert rig.state is State.HOLDING


@pytest.mark.parametrize(('asked', 'value'), WRONG)
@pytest.mark.parametrize('during', ['holding', 'moving', 'hand-guided', 'teleoperated', 'stopped'])
def test_an_arm_faults_and_brakes_from_where_it_was_believed(
    real: Rig, asked: str, value: float, during: str
) -> None:
    if during == 'moving':
        real.go(yaw=1.0)
    elif during == 'hand-guided':
        real.controller.guide(True, real.time)
    elif during == 'teleoperated':
        assert real.controller.steer(np.full(5, 0.2), real.time)
    elif during == 'stopped':
        real.controller.stop()
        real.settle()
    real.tick(20)
    before = {name: real.position(name) for name in ARM_JOINTS}
    real.measure(**before | {'elbow': value})
    assert real.state is State.FAULTED
    assert asked in real.controller.condition()[1]
    for _ in range(200):
        real.measure(**before | {'elbow': value})
        real.tick()
    assert abs(real.position('elbow') - before['elbow']) < 0.2
    assert real.tick() is None
    with pytest.raises(InputError, match=asked):
        real.controller.resume()
    for _ in range(60):
        real.measure(**before)
        assert real.tick() is None
    real.controller.resume()
    sample = real.rest_at(**before)
    assert positions(sample)['elbow'] == before['elbow']


def test_a_leap_is_not_believed_until_measurements_are_calm(model) -> None:
    rig = Rig(model, measured=True)
    rig.measure(**dict.fromkeys(ARM_JOINTS[:-1], 0.0))
    rig.measure(yaw=1.2)
    rig.measure_all()
    assert rig.tick() is None
    assert 'faster than it can move' in rig.controller.condition()[1]
    assert positions(rig.rest_at())['yaw'] == 0.0


@pytest.mark.parametrize('outside', [0.05, 0.4])
def test_a_joint_slightly_outside_is_brought_back(model, outside: float) -> None:
    rig = Rig(model, measured=True)
    rig.measure_all(yaw=2.5 + outside)
    assert positions(rig.tick())['yaw'] == 2.5 + outside
    assert rig.go(yaw=2.0).status == 'solved'
    rig.settle()
    assert rig.position('yaw') == pytest.approx(2.0)


def test_a_controller_of_trajectories_is_held_and_sent_nowhere(rig: Driven) -> None:
    rig.go(yaw=1.5)
    rig.tick(60)
    place = rig.position('yaw')
    rig.measure_all(yaw=place, elbow=57.0)
    rig.tick()
    trajectory = rig.output.sent[-1][1]
    assert trajectory.braking
    assert np.ptp(trajectory.positions, axis=0).max() < 0.3
    count = len(rig.output.sent)
    for _ in range(100):
        rig.measure_all(yaw=place, elbow=57.0)
        Rig.tick(rig)
    assert len(rig.output.sent) == count


def test_a_rail_in_millimetres_is_not_believed() -> None:
    text = arm_urdf().replace('<joint name="elbow" type="revolute">', '<joint name="elbow" type="prismatic">')
    rig = Rig(ArmModel.build(text, SETTINGS), measured=True)
    rig.measure_all(elbow=250.0)
    assert rig.tick() is None
    assert 'millimetres' in rig.controller.condition()[1]


def test_a_gripper_beside_the_arm_may_be_measured_in_percent_until_it_is_named(real) -> None:
    real.measure_all(finger=45.0)
    assert real.tick() is not None
    assert 'millimetres' in real.go(finger=0.01).message
    assert real.state is State.HOLDING


@pytest.mark.parametrize('goal', [Goal((300.0, 0.0, 200.0)), ToolPath(np.array([[300.0, 0.0, 200.0]]))])
def test_a_goal_in_millimetres_is_rejected(real, goal: object) -> None:
    report = real.ask(goal)
    assert report.status == 'rejected'
    assert 'millimetres' in report.message


def test_joint_positions_in_degrees_are_questioned(real) -> None:
    assert 'degrees' in real.go(yaw=90.0).message
    with pytest.raises(InputError, match='parameter home: joint'):
        ArmModel.build(arm_urdf(), replace(SETTINGS, home=(0.0, -90.0, 90.0, 0.0, 0.0)))
