# SPDX-License-Identifier: Apache-2.0
"""Measurements: which count, which are not believed, and what late or absent ones do to the arm."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from control_harness import PERIOD, SETTINGS, Rig, arm_model, positions
from small_arm import ARM_JOINTS, arm_urdf

from ik_node import Goal
from ik_node.control.feedback import MAX_JOINTS, Feedback
from ik_node.control.paths import ToolPath
from ik_node.control.settings import ArmSettings
from ik_node.control.states import State
from ik_node.errors import InputError
from ik_node.model.robot import JointSet
from ik_node.model.urdf.reader import read_urdf

WRONG = [('degrees', 28.6), ('a whole turn', 0.3 - 2.0 * math.pi)]


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


@pytest.mark.slow
@pytest.mark.parametrize(('asked', 'value'), WRONG)
@pytest.mark.parametrize('during', ['holding', 'moving', 'hand-guided', 'teleoperated', 'stopped'])
def test_an_arm_faults_and_brakes_from_where_it_was_believed(real: Rig, asked: str, value: float, during: str) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize('outside', [0.05, 0.4])
def test_a_joint_slightly_outside_is_brought_back(model, outside: float) -> None:
    rig = Rig(model, measured=True)
    rig.measure_all(yaw=2.5 + outside)
    assert positions(rig.tick())['yaw'] == 2.5 + outside
    assert rig.go(yaw=2.0).status == 'solved'
    rig.settle()
    assert rig.position('yaw') == pytest.approx(2.0)


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
        arm_model(arm_urdf(), replace(SETTINGS, home=(0.0, -90.0, 90.0, 0.0, 0.0)))


def test_a_thousand_joints_of_others_do_not_keep_the_arm_from_being_measured() -> None:
    feedback = Feedback()
    feedback.take({f'other{k}': 0.0 for k in range(MAX_JOINTS)}, 0.0, 0.0)
    feedback.take({'joint1': 0.5, 'joint2': 0.25}, 1.0, 1.0)
    assert feedback.fresh(0.5) == {'joint1': 0.5, 'joint2': 0.25}
    feedback.take({f'more{k}': 0.0 for k in range(MAX_JOINTS - 2)}, 1.1, 1.1)
    assert feedback.fresh(0.0)['joint1'] == 0.5, 'those measured longest ago are forgotten first'
    assert len(feedback.fresh(0.0)) == MAX_JOINTS


@pytest.mark.parametrize(
    ('arrived', 'says', 'not_said'),
    [
        ([f'arm_1/{name}' for name in ARM_JOINTS], '"yaw" by "arm_1/yaw"', 'no publisher'),
        ([name.upper() for name in ARM_JOINTS], '"yaw" by "YAW"', ''),
        ([f'{name}_joint' for name in ARM_JOINTS], '"yaw" by "yaw_joint"', ''),
        (['motor_1', 'motor_2'], 'none of which is a joint', 'did you mean'),
        (['yaw', 'shoulder', 'finger', 'elbw'], '"elbow" by "elbw"', 'none of which'),
        ([''], '""', 'did you mean'),
        (['yaw', 'shoulder'], '', ';'),
        ([], 'no message has arrived', ''),
    ],
)
def test_what_arrived_instead_of_the_joints_is_said(arrived: list[str], says: str, not_said: str) -> None:
    feedback = Feedback()
    feedback.topic = 'joint_states'
    feedback.judge(JointSet(read_urdf(arm_urdf())))
    feedback.take(dict.fromkeys(arrived, 0.0), 0.0, 0.0)
    said = feedback.missing(ARM_JOINTS)
    assert says in said
    assert not not_said or not_said not in said
    feedback.offered = False
    assert 'no publisher' in feedback.missing(ARM_JOINTS)
    feedback.take(dict.fromkeys(ARM_JOINTS, 0.0), 0.1, 0.1)
    assert not feedback.missing(ARM_JOINTS)


@pytest.mark.parametrize(
    ('place', 'believed'),
    [
        (lambda step: 3.0 * 0.2 * (step // 20) - 2.0, True),  # at 100 Hz, read at 5 Hz, always moving
        (lambda step: 9.0 * 0.2 * (step // 20) - 2.0, False),
        (lambda step: 1.0 * (step == 99), False),  # a leap at rest
    ],
)
def test_slow_hardware_behind_a_fast_broadcaster_is_believed_and_a_leap_is_not(place, believed) -> None:
    feedback = Feedback()
    feedback.judge(JointSet(read_urdf(arm_urdf())))
    for step in range(100):
        feedback.take({'yaw': place(step)}, 0.01 * step, 0.01 * step)
    assert (feedback.doubt(['yaw']) == '') is believed


SLOW = 'the computer or the driver is too slow'
TOLERANCE, DELAY = SETTINGS.max_following_error, SETTINGS.following_delay


@pytest.fixture
def arm(model) -> Rig:
    rig = Rig(model, measured=True)
    rig.measure_all()
    rig.tick()
    return rig


def moved(rig: Rig, seconds: float, late: float, stuck: frozenset[str] = frozenset(), age: float = 0.0):
    """Joints that follow at once, and whose measurements arrive late [s]; age [s]: of the stamps besides."""
    sent: deque[tuple[float, dict[str, float]]] = deque()
    rest = {name: rig.position(name) for name in stuck}
    lag = 0.0
    for _ in range(round(seconds / PERIOD)):
        rig.tick()
        sent.append((rig.time, {name: rig.position(name) for name in ARM_JOINTS} | rest))
        while sent and sent[0][0] <= rig.time - late + 1e-9:
            time, positions = sent.popleft()
            rig.controller.on_measured(positions, rig.time, time - age)
        newest = rig.position('yaw')
        lag = max(lag, abs(newest - sent[0][1]['yaw']) if sent else 0.0)
    return lag


@pytest.mark.slow
def test_late_measurements_do_not_make_a_joint_stuck(arm):
    arm.go(yaw=2.0)
    lag = moved(arm, 6.0, late=0.3)
    assert not [report for report in arm.reports if report.phase == 'faulted']
    assert arm.reports[-1].phase == 'arrived'
    assert lag > 0.15  # they were far behind


@pytest.mark.slow
def test_an_arm_waits_for_measurements_that_are_too_late_and_says_why(arm):
    arm.go(yaw=2.0)
    moved(arm, 20.0, late=0.7)
    said = [report for report in arm.reports if report.phase == 'late']
    assert said[0].message.startswith(f'measurements are 0.7 s late: {SLOW}')
    assert said[0].message.endswith('; the arm waits for them')
    assert arm.reports[-1].phase == 'arrived'
    assert arm.position('yaw') == pytest.approx(2.0)
    speeds = np.array([np.abs(sample.velocities).max() for sample in arm.output.samples])
    assert np.count_nonzero((speeds[1:] == 0.0) & (speeds[:-1] > 0.0)) > 2  # it stopped on its way


def test_the_command_never_runs_far_ahead_of_the_measurements(arm):
    arm.go(yaw=2.4)
    moved(arm, 0.8, late=0.0)
    begin = arm.position('yaw')
    arm.tick(80)  # nobody measures
    assert arm.state is State.MOVING
    assert arm.reports[-1].phase == 'late'
    speed, hardest, jerk = 1.0, SETTINGS.max_acceleration, SETTINGS.max_jerk
    braking = speed**2 / (2.0 * hardest) + speed * hardest / (2.0 * jerk)
    assert arm.position('yaw') - begin < TOLERANCE + DELAY * speed + braking + 0.02
    arm.tick(40)
    assert arm.state is State.FAULTED
    assert 'has not been measured for 1 s' in arm.reports[-1].message


@pytest.mark.slow
@pytest.mark.parametrize('stamped', [True, False])
def test_a_driver_that_was_suspended_may_catch_up(arm, stamped):
    """It carries nothing out for 0.6 s, and measures where it stands before it takes the next command."""
    arm.go(yaw=2.4)
    moved(arm, 0.8, late=0.0)
    stood = {name: arm.position(name) for name in ARM_JOINTS}
    arm.tick(60)
    for _ in range(5):
        arm.controller.on_measured(stood, arm.time, arm.time if stamped else np.inf)
        arm.tick()
    assert arm.state is State.MOVING
    for share in np.linspace(0.0, 1.0, 10):  # as fast as servos turn
        caught = {name: (1.0 - share) * place + share * arm.position(name) for name, place in stood.items()}
        arm.controller.on_measured(caught, arm.time, arm.time if stamped else np.inf)
        arm.tick()
    moved(arm, 5.0, late=0.0)
    assert arm.reports[-1].phase == 'arrived'


@pytest.mark.slow
@pytest.mark.parametrize('late', [0.0, 0.2, 0.6])
def test_a_stuck_joint_faults_within_the_tolerance_however_late_it_is_measured(arm, late):
    arm.go(yaw=2.4, elbow=0.5)
    moved(arm, 3.0, late=late, stuck=frozenset({'yaw'}))
    assert arm.state is State.FAULTED
    fault = arm.reports[-1].message
    assert 'joint "yaw" is' in fault
    assert (SLOW in fault) is (late > DELAY)
    beyond = TOLERANCE + (DELAY + late) * 1.0
    assert arm.position('yaw') < beyond + 0.25


def test_an_arm_that_stays_where_it_was_after_a_gap_faults(arm):
    arm.go(yaw=2.4)
    moved(arm, 0.8, late=0.0)
    stood = {name: arm.position(name) for name in ARM_JOINTS}
    arm.tick(60)
    for _ in range(50):
        arm.measure(**stood)
        arm.tick()
    assert arm.state is State.MOVING
    assert arm.reports[-1].phase == 'late'  # it waits meanwhile
    for _ in range(20):
        arm.measure(**stood)
        arm.tick()
    assert arm.state is State.FAULTED
    assert SLOW in arm.reports[-1].message  # it may have been the driver


def test_measurements_later_than_the_timeout_are_not_silence(arm):
    arm.go(yaw=0.4)
    moved(arm, 3.0, late=0.0, age=1.2)
    assert arm.state is State.FAULTED
    assert f'measurements are 1.2 s late: {SLOW}' in arm.reports[-1].message


@pytest.mark.slow
def test_stamps_of_the_future_twice_or_backwards_do_no_harm(arm):
    arm.go(yaw=2.0)
    for k in range(400):
        arm.tick()
        positions = {name: arm.position(name) for name in ARM_JOINTS}
        arm.controller.on_measured(positions, arm.time, arm.time + (5.0, 0.0, -0.05, -0.05)[k % 4])
    assert arm.reports[-1].phase == 'arrived'


def test_late_measurements_from_before_a_resume_do_not_place_the_arm(arm):
    arm.measure_all(yaw=0.9)
    assert arm.state is State.FAULTED
    arm.rest_at(yaw=0.9)
    arm.controller.resume()
    arm.controller.on_measured(dict.fromkeys(ARM_JOINTS, 0.5), arm.time, arm.time - 0.2)
    assert arm.tick() is None
    arm.measure_all(yaw=0.9)
    assert arm.tick() is not None
    assert arm.position('yaw') == 0.9


@pytest.mark.slow
def test_a_stop_a_new_goal_and_a_hand_are_heeded_while_the_arm_waits(arm):
    arm.go(yaw=2.4)
    moved(arm, 0.8, late=0.0)
    arm.tick(90)
    assert arm.reports[-1].phase == 'late'
    place = arm.position('yaw')
    arm.go(yaw=-1.0)
    arm.tick(5)
    assert arm.position('yaw') == place
    arm.controller.stop()
    arm.measure(**{name: arm.position(name) for name in ARM_JOINTS})
    arm.tick(5)
    assert arm.state is State.STOPPED
    assert arm.position('yaw') == place
    arm.controller.resume()
    arm.go(yaw=-1.0)
    moved(arm, 6.0, late=0.0)
    assert arm.position('yaw') == pytest.approx(-1.0)


def test_no_path_begins_while_the_arm_waits_for_measurements(arm):
    arm.go(yaw=2.4, shoulder=-0.8, elbow=1.6)
    moved(arm, 0.8, late=0.0)
    arm.tick(90)
    assert arm.reports[-1].phase == 'late'
    position, _ = arm.model.first.arm.fk(arm.controller.snapshot().position)
    report = arm.ask(ToolPath(0.97 * position[None]))
    assert report.status == 'rejected'
    assert 'a path cannot begin while the arm waits: measurements are ' in report.message
    assert arm.state is State.MOVING


@pytest.mark.slow
def test_only_a_joint_that_is_measured_late_counts(arm):
    """The wrist rests, and another driver measures it twice a second."""
    arm.go(yaw=2.0)
    for k in range(400):
        arm.tick()
        names = [name for name in ARM_JOINTS if name != 'wrist' or k % 50 == 0]
        arm.measure(**{name: arm.position(name) for name in names})
    assert not [report for report in arm.reports if report.phase == 'late']
    assert arm.reports[-1].phase == 'arrived'


def test_the_tolerance_without_delay_is_exact(arm):
    arm.controller.set_limits(ArmSettings(**{**vars(SETTINGS), 'following_delay': 0.0}))
    arm.measure_all(yaw=TOLERANCE)
    assert arm.state is State.HOLDING
    arm.measure_all(yaw=TOLERANCE + 1e-6)
    assert arm.state is State.FAULTED
