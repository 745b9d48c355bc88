# SPDX-License-Identifier: Apache-2.0
"""ArmController: what is commanded, and what is not, when requests and measurements come in any order."""

from __future__ import annotations

import pytest
from control_harness import PERIOD, SETTINGS, Asked, Rig, largest_step, positions
from small_arm import ALL_JOINTS, ARM_JOINTS, arm_urdf

from ik_node import Goal
from ik_node.control.controller.controller import ArmController
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.state.report import Level
from ik_node.control.state.requests import HomeRequest
from ik_node.control.state.states import State
from ik_node.errors import InputError

# Nothing is commanded before the arm is known


def test_without_a_model_nothing_happens():
    controller = ArmController(print)
    controller.activate()
    controller.stop()
    controller.on_measured({'yaw': 1.0}, 0.0)
    assert controller.tick(0.0) is None
    assert controller.snapshot() is None
    assert controller.condition() == (Level.WARN, 'no robot model yet: waiting for robot_description')


def test_an_inactive_arm_commands_nothing(model):
    rig = Rig(model, active=False)
    assert rig.tick(10) is None
    assert 'inactive' in rig.go(yaw=1.0).message
    rig.controller.activate()
    assert rig.tick() is not None


def test_a_picture_starts_at_home_at_once(picture):
    assert positions(picture.tick()) == dict.fromkeys(ALL_JOINTS, 0.0)


def test_nothing_goes_out_before_every_joint_of_the_arm_is_measured(model):
    rig = Rig(model, measured=True)
    assert rig.tick(10) is None
    rig.measure(yaw=0.4, shoulder=0.1, roll=0.0)
    assert rig.tick() is None
    assert rig.reports[-1].message == 'waiting for measured joints: elbow, wrist'
    assert rig.go(yaw=0.0).status == 'rejected'
    rig.measure(elbow=0.2, wrist=0.3)
    sample = positions(rig.tick())
    assert sample == {'yaw': 0.4, 'shoulder': 0.1, 'elbow': 0.2, 'roll': 0.0, 'wrist': 0.3}
    assert 'effective DoF' in rig.reports[-1].message


def test_joints_that_are_not_of_the_arm_place_nothing(model):
    rig = Rig(model, measured=True)
    rig.measure(finger=0.01, camera=1.0)
    rig.measure(yaw=0.045, elbow=0.04)
    assert rig.tick() is None
    rig.measure(shoulder=0.0, roll=0.0, wrist=0.0)
    sample = positions(rig.tick())
    assert (sample['yaw'], sample['elbow']) == (0.045, 0.04)


def test_an_old_measurement_is_no_place(model):
    rig = Rig(model, measured=True)
    rig.measure(yaw=0.4, shoulder=0.1, roll=0.0)
    rig.tick(200)
    rig.measure(elbow=0.2, wrist=0.3)
    assert rig.tick() is None
    assert rig.reports[-1].message == 'waiting for measured joints: yaw, shoulder, roll'


def test_what_was_measured_before_the_description_came_counts(model):
    controller = ArmController(print)
    controller.expect_measured(True)
    controller.activate()
    controller.on_measured(dict.fromkeys(ARM_JOINTS, 0.3), 10.0)
    controller.configure(model, SETTINGS)
    assert set(controller.tick(10.0).positions) == {0.3}


def test_a_picture_falls_silent_when_measurements_appear(picture):
    picture.go(yaw=1.0)
    picture.tick(20)
    picture.controller.expect_measured(True)
    assert picture.tick(5) is None
    assert picture.state is State.WAITING
    picture.measure_all(yaw=-0.5)
    assert positions(picture.tick())['yaw'] == -0.5


# Measured positions do not drag the command along


def test_a_servo_that_hangs_below_its_command_does_not_draw_it_down(real):
    """As hobby servos do under load, after a stop too: the command must not follow."""
    for _ in range(3):
        for _ in range(100):
            real.measure_all(elbow=real.position('elbow') - 0.06)
            real.tick()
        assert real.position('elbow') == 0.0
        real.controller.stop()
        real.controller.resume()
    assert real.position('elbow') == 0.0


def test_a_joint_that_does_not_follow_stops_the_arm(real):
    real.go(elbow=1.5)
    for _ in range(300):
        real.measure_all()  # stuck
        real.tick()
    assert real.state is State.FAULTED
    report = real.reports[-1]
    assert report.level is Level.ERROR
    assert 'joint "elbow" is 0.4' in report.message
    assert 'rad away from its command; call ~/resume' in report.message
    assert real.tick() is None
    assert largest_step(real.output.samples) <= 0.5 * 2.0 * PERIOD + 1e-9
    # tolerance, delay times speed, and the braking distance with ramps of the acceleration
    assert real.position('elbow') < SETTINGS.max_following_error + 0.1 * 1.0 + 1.0 / (2 * 5.0) + 0.1
    assert real.go(elbow=0.0).status == 'rejected'


def test_an_arm_that_was_moved_away_is_not_snapped_back(real):
    real.measure_all(yaw=1.0)
    assert real.state is State.FAULTED
    assert real.rest_at(yaw=1.0) is None
    real.controller.resume()
    assert real.tick() is None  # what was measured before the fault says nothing
    assert real.state is State.WAITING
    assert positions(real.rest_at(yaw=1.1))['yaw'] == 1.1


def test_a_lag_is_no_error(real):
    history = [0.0] * 20
    real.controller.set_limits(SETTINGS)
    real.go(yaw=2.4)
    while real.state is State.MOVING:
        real.tick()
        history.append(real.position('yaw'))
        real.measure_all(yaw=history[-20])  # 0.2 s late
    assert real.state is State.HOLDING


def test_a_continuous_joint_may_be_measured_a_turn_off():
    rig = Rig(ArmModel.build(arm_urdf(yaw='continuous'), SETTINGS), measured=True)
    rig.measure_all(yaw=3.0)
    rig.tick()
    rig.go(yaw=4.0)
    while rig.state is State.MOVING:
        rig.tick()
        yaw = rig.position('yaw')
        rig.measure_all(yaw=yaw - 6.283185307179586 if yaw > 3.14159 else yaw)
    assert rig.state is State.HOLDING


def test_silence_of_the_measurements_stops_the_arm(real):
    real.measure_all()
    real.go(yaw=1.0)
    real.tick(150)
    assert real.state is State.FAULTED
    assert 'has not been measured for 1 s' in real.reports[-1].message
    assert real.position('yaw') < 1.0
    assert real.tick(200) is None


def test_a_clock_that_is_set_back_ends_nothing(real):
    real.measure_all()
    real.time -= 1000.0
    for _ in range(50):
        real.measure_all()
        real.tick()
    assert real.state is State.HOLDING


# Only the joints of the arm move


def test_home_moves_the_arm_and_nothing_else(picture):
    picture.go(finger=0.03, yaw=0.5)
    picture.settle()
    picture.controller.submit(HomeRequest())
    picture.settle()
    assert picture.position('yaw') == pytest.approx(0.0, abs=1e-9)
    assert picture.position('finger') == pytest.approx(0.03)


def test_a_gripper_is_not_commanded_before_a_goal_names_it(real):
    real.measure(finger=0.02)
    assert set(real.tick().names) == set(ARM_JOINTS)
    real.go(yaw=0.1)
    real.settle()
    real.controller.submit(HomeRequest())
    assert set(real.tick().names) == set(ARM_JOINTS)
    real.go(finger=0.03)
    first = positions(real.tick())
    assert 0.02 <= first['finger'] < 0.021  # from where it was measured
    assert first['other_finger'] == -first['finger']


def test_a_gripper_that_was_never_measured_is_not_commanded(real):
    assert 'not measured recently: "finger"' in real.go(finger=0.03).message
    assert set(real.tick().names) == set(ARM_JOINTS)


def test_two_arms_of_one_robot_publish_their_own_joints_only(picture):
    picture.controller.expect_measured(False, alone=False)
    assert set(picture.tick().names) == set(ARM_JOINTS)


# Requests


def test_a_goal_is_announced_and_its_arrival_too(picture):
    goal = Goal(*picture.model.arm.fk([-0.4, 0.2, 0.9, 0.1, 0.2]))
    report = picture.ask(goal)
    assert (report.status, report.phase, report.number) == ('solved', 'moving', 1)
    assert picture.state is State.MOVING
    picture.settle()
    arrived = picture.reports[-1]
    assert (arrived.status, arrived.phase, arrived.number) == ('solved', 'arrived', 1)
    assert arrived.solution is report.solution
    assert picture.state is State.HOLDING


def test_with_hold_a_goal_out_of_reach_is_held(picture):
    picture.controller.set_limits(SETTINGS.__class__(**{**vars(SETTINGS), 'on_unreachable': 'hold'}))
    report = picture.ask(Goal((3.0, 0.0, 0.2)))
    assert (report.status, report.phase) == ('unreachable', 'held')
    assert report.message.endswith('; holding position')
    picture.tick(10)
    assert picture.position('yaw') == 0.0
    assert picture.state is State.HOLDING


@pytest.mark.parametrize(
    ('goal', 'real', 'phase'),
    [
        (Goal((3.0, 0.0, 0.2)), True, 'held'),
        (Goal((3.0, 0.0, 0.2)), False, 'moving'),
        (Goal((0.5, 0.0, 0.2), (-1.0, 0.0, 0.0)), True, 'moving'),  # the position alone can be met
    ],
)
def test_a_real_arm_does_not_stretch_out_to_a_position_out_of_reach(picture, goal, real, phase):
    controller = picture.controller
    if real:
        controller.expect_measured(True)
        controller.on_measured(dict.fromkeys(picture.model.arm.joint_names, 0.0), 0.0)
    report = picture.ask(goal)
    assert (report.status, report.phase) == ('unreachable', phase)


def test_a_stream_of_goals_continues_from_the_last_target(picture):
    """A goal that comes while the arm lags behind must not pick another branch near where the arm is."""
    arm, q = picture.model.arm, [-0.4, 0.2, 0.9, 0.1, 0.2]
    picture.ask(Goal(*arm.fk(q)))
    first = picture.controller.snapshot().target
    largest = 0.0
    for k in range(1, 60):
        q[0] = -0.4 + 0.01 * k
        picture.ask(Goal(*arm.fk(q)))
        target = picture.controller.snapshot().target
        largest = max(largest, abs(target - first).max())
        first = target
    assert largest < 0.011
    assert picture.position('yaw') == 0.0  # nothing has moved yet


def test_the_newest_good_request_counts(picture):
    class Bad(Asked):
        def wanted(self, _):
            raise InputError('no')

    picture.controller.submit(Asked({'yaw': 0.1}), Asked({'yaw': 0.2}), Bad(None), Asked(None))
    assert [report.status for report in picture.reports[-2:]] == ['rejected', 'solved']
    picture.settle()
    assert picture.position('yaw') == pytest.approx(0.2)


def test_a_goal_solved_during_a_stop_is_void(picture):
    class Stopping(Asked):
        def wanted(self, _):
            picture.controller.stop()
            return self.what

    picture.go(yaw=1.0)
    picture.tick(30)
    picture.controller.submit(Stopping({'yaw': 2.0}))
    assert picture.reports[-1].status == 'rejected'
    picture.settle()
    assert 0.0 < picture.position('yaw') < 0.5


def test_a_stop_brakes_and_stays_until_resume(picture):
    picture.go(yaw=2.0)
    picture.tick(50)
    before = picture.position('yaw')
    picture.controller.stop()
    assert picture.state is State.STOPPING
    picture.settle()
    assert picture.state is State.STOPPED
    rest = picture.position('yaw')
    assert before < rest < 2.0
    assert 'call ~/resume' in picture.go(yaw=2.0).message
    picture.controller.resume()
    assert picture.state is State.HOLDING
    assert picture.position('yaw') == rest
    assert picture.go(yaw=0.0).status == 'solved'
    assert largest_step(picture.output.samples) <= 0.5 * 2.0 * PERIOD + 1e-9


def test_deactivated_the_arm_comes_to_rest_and_falls_silent(picture):
    picture.go(yaw=2.0)
    picture.tick(50)
    picture.controller.deactivate()
    picture.settle()
    assert picture.state is State.INACTIVE
    assert picture.tick() is None
    assert not picture.output.samples[-1].velocities.any()


# Other robots


def test_another_robot_takes_over_after_a_stop(picture):
    other = ArmModel.build(arm_urdf().replace('finger', 'jaw'), SETTINGS)
    picture.go(yaw=0.5)
    picture.tick(20)
    while not picture.controller.configure(other, SETTINGS):
        picture.tick()
    rest = picture.output.samples[-1]
    assert not rest.velocities.any()
    sample = positions(picture.tick())
    assert sample['yaw'] == positions(rest)['yaw']
    assert 'jaw' in sample


def test_another_robot_has_to_be_measured_anew(real):
    other = ArmModel.build(arm_urdf().replace('finger', 'jaw'), SETTINGS)
    real.tick(120)  # nothing measured for a while
    assert real.controller.configure(other, SETTINGS)
    assert real.tick() is None
    real.measure_all(yaw=0.2)
    assert real.controller.state in (State.HOLDING, State.FAULTED)


def test_other_settings_of_the_same_robot_do_not_void_a_goal(picture, model):
    picture.go(yaw=0.5)
    assert picture.controller.configure(ArmModel.build(model.text, SETTINGS, model), SETTINGS)
    picture.go(yaw=0.7)
    picture.settle()
    assert picture.position('yaw') == pytest.approx(0.7)


def test_no_sentence_on_the_arm_is_built_for_samples_and_goals(model, monkeypatch):
    rig = Rig(model, measured=True)
    rig.measure(**dict.fromkeys(ARM_JOINTS, 0.0))
    rig.tick()
    built = []
    describe = ArmModel.describe
    monkeypatch.setattr(ArmModel, 'describe', lambda self: built.append(self) or describe(self))
    rig.go(yaw=0.5)
    rig.settle()
    rig.measure(yaw=0.5)
    assert built == []
    rig.controller.condition()
    assert built == [model]
