# SPDX-License-Identifier: Apache-2.0
"""An arm is commanded only where it is known to be, and what was stopped stays stopped."""

from __future__ import annotations

import itertools
import math

import pytest
from control_harness import SETTINGS, Rig, positions
from small_arm import ARM_JOINTS, arm_urdf

from ik_node.control.controller.controller import ArmController
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.states import State
from ik_node.errors import InputError


def with_settings(rig: Rig, **changes: object) -> None:
    rig.controller.set_limits(ArmSettings(**{**vars(SETTINGS), **changes}))


def test_one_measurement_is_not_enough_for_ever(model):
    rig = Rig(model, measured=True)
    rig.measure_all()
    rig.tick(5)
    assert rig.state is State.HOLDING
    rig.tick(200)
    assert rig.state is State.FAULTED
    assert 'has not been measured for 1 s' in rig.reports[-1].message


def test_a_timeout_of_zero_waives_later_measurements(model):
    rig = Rig(model, measured=True)
    with_settings(rig, measured_timeout=0.0)
    rig.measure_all()
    rig.tick(500)
    assert rig.state is State.HOLDING


def test_a_stop_before_the_arm_is_known_holds(model):
    controller = ArmController(print)
    controller.stop()
    controller.activate()
    controller.configure(model, SETTINGS)
    assert controller.state is State.STOPPED
    controller.resume()
    assert controller.tick(0.0) is not None
    assert controller.state is State.HOLDING


def test_a_stop_while_inactive_holds(picture):
    picture.controller.deactivate()
    picture.controller.stop()
    picture.controller.activate()
    assert picture.state is State.STOPPED
    assert picture.go(yaw=1.0).status == 'rejected'


@pytest.mark.parametrize('fault', [False, True])
def test_an_arm_that_was_inactive_starts_where_it_is_measured(real, fault):
    if fault:
        real.measure_all(yaw=0.8)
        assert real.state is State.FAULTED
    real.controller.deactivate()
    real.measure_all(yaw=0.8, elbow=0.5)
    real.tick(10)
    real.controller.activate()
    assert real.tick() is None
    sample = positions(real.rest_at(yaw=0.8, elbow=0.5))
    assert (sample['yaw'], sample['elbow']) == (0.8, 0.5)


def test_a_gripper_starts_only_from_a_recent_measurement(real):
    real.measure(finger=0.03)
    for _ in range(300):
        real.measure(**dict.fromkeys(ARM_JOINTS, 0.0))
        real.tick()
    assert 'not measured recently: "finger"' in real.go(finger=0.01).message
    real.measure(finger=0.02)
    assert real.go(finger=0.01).status == 'solved'
    assert positions(real.tick())['finger'] == pytest.approx(0.02, abs=1e-4)


def test_a_commanded_gripper_that_falls_silent_stops_the_arm(real):
    real.measure(finger=0.02)
    real.go(finger=0.01)
    for _ in range(300):
        real.measure(**dict.fromkeys(ARM_JOINTS, 0.0))
        real.tick()
    assert real.state is State.FAULTED
    assert 'joint "finger" has not been measured' in real.reports[-1].message


def test_hand_guiding_ends_by_itself_though_the_clock_is_set_back(real):
    real.controller.guide(True, real.time)
    real.time = 0.0
    for _ in range(7000):
        real.measure_all()
        real.tick()
    assert real.state is State.HOLDING


def test_a_stopped_picture_shows_another_robot_too(picture):
    picture.controller.stop()
    other = ArmModel.build(arm_urdf().replace('finger', 'jaw'), SETTINGS)
    assert picture.controller.configure(other, SETTINGS)
    sample = picture.tick()
    assert sample is not None
    assert 'jaw' in sample.names
    assert picture.state is State.STOPPED


def test_an_arm_that_brakes_after_a_fault_comes_to_rest_though_it_is_deactivated(real):
    real.measure_all()
    real.tick()
    real.go(yaw=1.5)
    for _ in range(60):
        real.tick()
        real.measure_all(yaw=real.position('yaw'))
    real.controller.fault('the driver is gone')
    real.tick()
    real.controller.deactivate()
    assert real.state is State.FAULTED
    real.tick(200)
    assert real.state is State.INACTIVE
    assert not real.output.samples[-1].velocities.any()


def test_a_goal_that_ends_before_the_arrival_is_reported_under_its_number(picture):
    number = picture.go(yaw=1.5).number
    picture.tick(20)
    picture.controller.stop()
    ended = [report for report in picture.reports if report.phase == 'stopped' and report.request]
    assert [report.number for report in ended] == [number]
    assert ended[0].message == 'test ended before the arm arrived: stopped'
    picture.settle()
    picture.controller.resume()
    picture.go(yaw=1.5)
    picture.settle()
    picture.controller.stop()  # it had arrived
    assert len([r for r in picture.reports if r.phase == 'stopped' and r.request]) == 1


def test_the_share_of_a_motion_grows_from_0_to_1(picture):
    picture.tick()
    assert math.isnan(picture.controller.snapshot().share)
    picture.go(yaw=1.5)
    shares = []
    while picture.state is not State.HOLDING:
        shares.append(picture.controller.snapshot().share)
        picture.tick()
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert max(b - a for a, b in itertools.pairwise(shares)) < 0.1
    assert picture.controller.snapshot().share == 1.0
    picture.go(yaw=0.0)
    picture.controller.stop()
    assert math.isnan(picture.controller.snapshot().share)


def test_goals_wait_while_the_driver_takes_no_commands(real):
    real.controller.refuse('the driver holds')
    assert (real.state, real.controller.condition()[1]) == (State.HOLDING, 'the driver holds')
    rejected = real.ask({'yaw': 0.3})
    assert (rejected.status, 'the driver holds' in rejected.message) == ('rejected', True)
    assert not real.controller.steer(real.controller.snapshot().target, 0.0)
    with pytest.raises(InputError, match='the driver holds'):
        real.controller.guide(True, 0.0)
    real.controller.refuse('')
    assert real.ask({'yaw': 0.3}).phase == 'moving'


def test_a_moving_arm_stops_when_its_driver_takes_no_commands(real):
    real.ask({'yaw': 0.3})
    real.tick(5)
    real.controller.refuse('the driver holds')
    assert real.state is State.FAULTED
    real.tick(100)
    with pytest.raises(InputError, match='the driver holds'):
        real.controller.resume()
    real.controller.refuse('')
    with pytest.raises(InputError, match='has not been measured'):
        real.controller.resume()
    real.measure_all()
    real.controller.resume()
    real.measure_all()
    real.tick(5)
    assert real.state is State.HOLDING


def test_an_arm_that_must_wait_for_another_program_is_not_ready(real):
    real.controller.bar('another one')
    assert real.state is State.FAULTED, 'it was ready before the other one was found'
    real.tick(100)
    with pytest.raises(InputError, match='another one'):
        real.controller.resume()
    real.controller.bar('')
    real.measure_all()
    real.controller.resume()
    real.controller.bar('another one')
    real.measure_all()
    real.tick(5)
    assert (real.state, real.controller.condition()[1]) == (State.WAITING, 'another one')
    real.controller.bar('')
    assert real.state is State.HOLDING
