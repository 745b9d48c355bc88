# SPDX-License-Identifier: Apache-2.0
"""ArmController: what is commanded, and when an arm moves, stops, rests and has arrived."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from control_harness import PERIOD, SETTINGS, Asked, Driven, Rig, arm_model, largest_step, positions
from small_arm import ALL_JOINTS, ARM_JOINTS, arm_urdf

from ik_node import Goal
from ik_node.control.controller import ArmController
from ik_node.control.models import ArmModel
from ik_node.control.requests import HomeRequest, Level
from ik_node.control.settings import ArmSettings
from ik_node.control.states import State
from ik_node.errors import InputError
from ik_node.model.urdf.description import load_description


def test_without_a_model_nothing_happens():
    controller = ArmController(print)
    controller.activate()
    controller.stop()
    controller.on_measured({'yaw': 1.0}, 0.0)
    assert controller.tick(0.0) is None
    assert controller.snapshot() is None
    assert controller.condition() == (Level.WARN, 'no robot model yet: waiting for robot_description')


def test_an_inactive_arm_commands_nothing_and_a_picture_starts_at_home(model):
    rig = Rig(model, active=False)
    assert rig.tick(10) is None
    assert 'inactive' in rig.go(yaw=1.0).message
    rig.controller.activate()
    assert positions(rig.tick()) == dict.fromkeys(ALL_JOINTS, 0.0)
    rig.controller.expect_measured(False, alone=False)  # another arm of the robot publishes the others
    assert set(rig.tick().names) == set(ARM_JOINTS)


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


def test_an_old_measurement_is_no_place(model):
    rig = Rig(model, measured=True)
    rig.measure(yaw=0.4, shoulder=0.1, roll=0.0)
    rig.tick(200)
    rig.measure(elbow=0.2, wrist=0.3)
    assert rig.tick() is None
    assert rig.reports[-1].message == 'waiting for measured joints: yaw, shoulder, roll'


def test_a_picture_falls_silent_when_measurements_appear(picture):
    picture.go(yaw=1.0)
    picture.tick(20)
    picture.controller.expect_measured(True)
    assert picture.tick(5) is None
    assert picture.state is State.WAITING
    picture.measure_all(yaw=-0.5)
    assert positions(picture.tick())['yaw'] == -0.5


@pytest.mark.slow
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


def test_silence_of_the_measurements_stops_the_arm(real):
    real.measure_all()
    real.go(yaw=1.0)
    real.tick(150)
    assert real.state is State.FAULTED
    assert 'has not been measured for 1 s' in real.reports[-1].message
    assert real.position('yaw') < 1.0
    assert real.tick(200) is None


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


def test_a_goal_is_announced_and_its_arrival_too(picture):
    goal = Goal(*picture.model.first.arm.fk([-0.4, 0.2, 0.9, 0.1, 0.2]))
    report = picture.ask(goal)
    assert (report.status, report.phase, report.number) == ('solved', 'moving', 1)
    assert picture.state is State.MOVING
    picture.settle()
    arrived = picture.reports[-1]
    assert (arrived.status, arrived.phase, arrived.number) == ('solved', 'arrived', 1)
    assert arrived.solution is report.solution
    assert picture.state is State.HOLDING


@pytest.mark.parametrize(
    ('goal', 'real', 'on_unreachable', 'phase'),
    [
        (Goal((3.0, 0.0, 0.2)), True, 'auto', 'held'),
        (Goal((3.0, 0.0, 0.2)), False, 'auto', 'moving'),
        (Goal((3.0, 0.0, 0.2)), False, 'hold', 'held'),
        (Goal((0.5, 0.0, 0.2), (-1.0, 0.0, 0.0)), True, 'auto', 'moving'),  # the position alone can be met
    ],
)
def test_a_real_arm_does_not_stretch_out_to_a_position_out_of_reach(picture, goal, real, on_unreachable, phase):
    controller = picture.controller
    controller.set_limits(replace(SETTINGS, on_unreachable=on_unreachable))
    if real:
        controller.expect_measured(True)
        controller.on_measured(dict.fromkeys(ARM_JOINTS, 0.0), 0.0)
    report = picture.ask(goal)
    assert (report.status, report.phase) == ('unreachable', phase)
    if phase == 'held' and not real:
        picture.tick(10)
        assert (picture.position('yaw'), picture.state) == (0.0, State.HOLDING)


def test_a_stream_of_goals_continues_from_the_last_target(picture):
    """A goal that comes while the arm lags behind must not pick another branch near where the arm is."""
    arm, q = picture.model.first.arm, [-0.4, 0.2, 0.9, 0.1, 0.2]
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
        def resolve(self, _):
            raise InputError('no')

    picture.controller.submit(Asked({'yaw': 0.1}), Asked({'yaw': 0.2}), Bad(None), Asked(None))
    assert [report.status for report in picture.reports[-2:]] == ['rejected', 'solved']
    picture.settle()
    assert picture.position('yaw') == pytest.approx(0.2)


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


@pytest.mark.parametrize('stopped', [False, True])
def test_another_robot_takes_over_after_a_stop(picture, stopped):
    other = arm_model(arm_urdf().replace('finger', 'jaw'), SETTINGS)
    picture.go(yaw=0.5)
    picture.tick(20)
    if stopped:
        picture.controller.stop()
    while not picture.controller.configure(other, SETTINGS):
        picture.tick()
    rest = picture.output.samples[-1]
    assert not rest.velocities.any()
    sample = positions(picture.tick())
    assert sample['yaw'] == positions(rest)['yaw']
    assert 'jaw' in sample
    assert (picture.state is State.STOPPED) is stopped


def test_other_settings_of_the_same_robot_do_not_void_a_goal(picture, model):
    picture.go(yaw=0.5)
    assert picture.controller.configure(arm_model(model.text, SETTINGS, model), SETTINGS)
    picture.go(yaw=0.7)
    picture.settle()
    assert picture.position('yaw') == pytest.approx(0.7)


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


@pytest.mark.slow
def test_an_arm_that_stays_away_ends_its_goal_and_says_which_joint_and_how_far(real: Rig) -> None:
    real.go(yaw=0.2)
    for _ in range(300):
        real.tick()
        real.measure_all(yaw=0.7 * real.position('yaw'), shoulder=-0.08)
    assert real.state is State.HOLDING
    assert phases(real)[-1] == 'stopped'
    said = 'yaw" is 0.06', 'shoulder" is 0.08', ' mm off', 'P gain', 'arrival_tolerance'
    assert all(part in real.reports[-1].message for part in said)
    real.go(yaw=0.3)
    for _ in range(100):
        real.tick()
        real.measure_all(yaw=real.position('yaw'))
    assert phases(real)[-1] == 'arrived'


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(('short', 'phase'), [(0.0008, 'arrived'), (0.003, 'stopped')])
def test_a_joint_that_slides_has_a_tolerance_of_its_own(short: float, phase: str) -> None:
    description = load_description('urdf/prismatic_arm.urdf.xacro')
    model = arm_model(description, replace(SETTINGS, base_link='base_link', tip_link=''))
    rig = Rig(model, measured=True)
    joints = dict.fromkeys(rig.model.joint_names, 0.0)
    rig.measure(**joints)
    rig.tick()
    rig.go(lift=0.1)
    for _ in range(400):
        rig.tick()
        rig.measure(**{**joints, 'lift': max(rig.position('lift') - short, 0.0)})
    assert phases(rig)[-1] == phase


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


@pytest.mark.slow
def test_a_controller_that_ends_nothing_is_named(rig: Driven) -> None:
    rig.output.done = lambda: False
    rig.go(yaw=0.5)
    rig.tick(300)
    assert 'controller' in rig.reports[-1].message
    assert (rig.reports[-1].phase, rig.state) == ('stopped', State.HOLDING)


def test_a_joint_that_no_controller_moves_is_rejected(rig: Driven, model: ArmModel, picture: Rig) -> None:
    served = Driven(model, controller_joints=(*ARM_JOINTS, 'finger'))
    served.measure_all(finger=0.0)
    served.tick(2)
    assert served.go(finger=0.02).phase == 'moving'
    assert picture.go(finger=0.02).phase == 'moving'
    report = rig.go(finger=0.02)
    assert report.phase == 'rejected'
    assert '"finger"' in report.message
    assert rig.state is State.HOLDING


def with_settings(rig: Rig, **changes: object) -> None:
    rig.controller.set_limits(ArmSettings(**{**vars(SETTINGS), **changes}))


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize('back', [0.0, 100.0])
def test_hand_guiding_follows_slowly_and_ends_by_itself_though_the_clock_is_set_back(real, back):
    real.controller.guide(True, real.time)
    for _ in range(200):
        real.measure_all(yaw=0.3)
        real.tick()
    assert real.position('yaw') == pytest.approx(0.3)
    assert largest_step(real.output.samples) <= 0.25 * 0.5 * 2.0 * PERIOD + 1e-9
    assert real.state is State.HAND_GUIDED
    real.time -= back
    for _ in range(100):
        real.measure_all(yaw=0.3)
        real.tick(1, dt=0.7)
    assert real.state is State.HOLDING


def test_hand_guiding_needs_a_measured_arm_and_ends_once(picture, real):
    with pytest.raises(InputError, match='measured arm'):
        picture.controller.guide(True, picture.time)
    with pytest.raises(InputError, match='holding'):
        real.controller.guide(False, real.time)
    real.controller.guide(True, real.time)
    real.controller.expect_measured(False)  # nobody measures any more
    real.settle()
    assert real.state is State.HOLDING


def test_hand_guiding_ends_when_the_arm_has_to_be_measured_anew(real):
    real.controller.guide(True, real.time)
    real.controller.expect_measured(False)
    real.controller.expect_measured(True)
    assert real.state is State.WAITING
    assert real.tick(200) is None
    real.measure_all(yaw=0.01)
    real.tick()
    assert real.state is State.HOLDING


def speed(real, ahead: float = 0.3) -> float:
    """The largest speed [rad/s] of yaw while it is measured ahead [rad] of its command, as by a hand."""
    first = len(real.output.samples)
    for _ in range(150):
        real.measure_all(yaw=real.position('yaw') + ahead)
        real.tick()
    return largest_step(real.output.samples[first:]) / PERIOD


@pytest.mark.slow
def test_a_parameter_that_changes_meanwhile_makes_hand_guiding_no_faster(real):
    real.controller.guide(True, real.time)
    slow = speed(real)
    assert real.controller.configure(real.model, replace(real.settings, restarts=7))
    assert speed(real) == pytest.approx(slow)
    real.controller.set_limits(real.settings)
    assert speed(real) == pytest.approx(slow)


@pytest.mark.slow
def test_after_hand_guiding_the_arm_has_its_own_speed_however_it_ended(real):
    real.controller.guide(True, real.time)
    slow = speed(real)
    real.controller.stop()
    real.settle()
    real.controller.resume()
    real.measure_all(yaw=real.position('yaw'))
    real.go(yaw=-1.5)
    assert speed(real, ahead=0.0) == pytest.approx(4.0 * slow, rel=0.01)


def test_a_copy_of_a_measurement_that_comes_late_does_not_decide_the_first_command(model):
    real = Rig(model, measured=True)
    for name in ARM_JOINTS[:-1]:
        real.controller.on_measured({name: 0.3}, real.time)
    real.controller.on_measured({'yaw': 0.0}, real.time, real.time - 0.9)
    real.controller.on_measured({ARM_JOINTS[-1]: 0.3}, real.time)
    real.tick()
    assert real.state is State.HOLDING
    assert real.position('yaw') == pytest.approx(0.3)
