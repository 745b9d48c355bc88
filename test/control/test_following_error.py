# SPDX-License-Identifier: Apache-2.0
"""A slow computer is not a stuck joint: measurements count for the time when they were made."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from control_harness import PERIOD, SETTINGS, Rig
from small_arm import ARM_JOINTS

from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.states import State

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


def test_late_measurements_do_not_make_a_joint_stuck(arm):
    arm.go(yaw=2.0)
    lag = moved(arm, 6.0, late=0.3)
    assert not [report for report in arm.reports if report.phase == 'faulted']
    assert arm.reports[-1].phase == 'arrived'
    assert lag > 0.15  # they were far behind


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


def test_silence_after_a_late_measurement_is_silence(arm):
    """A killed driver must not be taken for a slow computer, even while its last message has just arrived."""
    arm.go(yaw=0.4)
    moved(arm, 0.3, late=0.0, age=0.05)
    while arm.state is not State.FAULTED:
        arm.tick()
    assert 'has not been measured for 1 s' in arm.reports[-1].message


def test_measurements_later_than_the_timeout_are_not_silence(arm):
    arm.go(yaw=0.4)
    moved(arm, 3.0, late=0.0, age=1.2)
    assert arm.state is State.FAULTED
    assert f'measurements are 1.2 s late: {SLOW}' in arm.reports[-1].message


def test_stamps_of_the_future_twice_or_backwards_do_no_harm(arm):
    arm.go(yaw=2.0)
    for k in range(400):
        arm.tick()
        positions = {name: arm.position(name) for name in ARM_JOINTS}
        arm.controller.on_measured(positions, arm.time, arm.time + (5.0, 0.0, -0.05, -0.05)[k % 4])
    assert arm.reports[-1].phase == 'arrived'


def test_a_clock_that_is_set_back_leaves_nothing_late(arm):
    arm.go(yaw=2.4)
    moved(arm, 0.5, late=0.0)
    arm.time -= 50.0
    moved(arm, 4.0, late=0.0)
    assert not [report for report in arm.reports if report.phase in ('late', 'faulted')]
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
