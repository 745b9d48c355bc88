# SPDX-License-Identifier: Apache-2.0
"""An arm under load: it neither sinks nor springs back, and its owner is told what gives way and why."""

from __future__ import annotations

import math

import pytest
from rig import driven, emulated, started

from ik_node.errors import IkError
from ik_node.servos.arm.states import POWERED, ArmState
from ik_node.servos.calibration.profile import read_profile

pytestmark = pytest.mark.slow

DEGREE = 4096 / 360  # ticks
FULL = 2.0  # [s] in which the torque has grown


@pytest.fixture
def rig():
    with driven() as rig:
        rig.switch_on()
        rig.clock.sleep(FULL)
        yield rig


@pytest.mark.parametrize(('weight', 'commanded'), [(0.78, False), (0.78, True)])
def test_an_arm_that_holds_a_load_does_not_sink(rig, weight, commanded):
    place = rig.arm.snapshot.joints['shoulder_lift'].position
    rig.bus.call('motor', id=2, weight=weight)
    rig.clock.sleep(0.5)
    hangs = rig.tick('shoulder_lift')
    for _ in range(20):
        if commanded:
            rig.stream({'shoulder_lift': place}, 0.5)
        else:
            rig.clock.sleep(0.5)
        assert abs(rig.tick('shoulder_lift') - hangs) < DEGREE
    assert rig.arm.snapshot.state in POWERED


@pytest.mark.parametrize('latched', [False, True])
def test_a_held_joint_that_was_pushed_away_does_not_spring_back(rig, latched):
    if latched:
        rig.arm.hold()
    rig.bus.call('motor', id=3, actual=2500.0, blocked=[2499.0, 2501.0])
    rig.clock.sleep(0.6)
    assert abs(rig.bus.state()[3]['goal'] - 2500) < 8 * DEGREE
    assert '"elbow_flex" gave way: it was pushed, or its load is too heavy' in rig.arm.snapshot.reason
    rig.bus.call('motor', id=3, blocked=None)
    rig.clock.sleep(1.0)
    assert abs(rig.tick('elbow_flex') - 2500) < 8 * DEGREE
    if latched:
        assert 'held until it is cleared' in rig.arm.snapshot.reason
        rig.arm.clear()
    rig.stream({'elbow_flex': 0.5}, 0.1)
    assert 'gave way' not in rig.arm.snapshot.reason


def test_an_arm_that_fell_does_not_swing_back_when_its_load_is_gone(rig):
    rig.bus.call('motor', id=2, weight=0.82)
    rig.clock.sleep(4.0)
    fallen = rig.tick('shoulder_lift')
    assert abs(fallen - 2048) > 20 * DEGREE
    assert '"shoulder_lift" reports overload' in rig.arm.snapshot.reason
    rig.bus.call('motor', id=2, weight=0.0)
    rig.clock.sleep(1.0)
    assert abs(rig.tick('shoulder_lift') - fallen) < 8 * DEGREE


@pytest.mark.parametrize(
    ('profile', 'joint', 'id'),
    [
        ('omx_f', 'gripper_joint_1', 16),
        ('wx200', 'elbow', 4),
        ('so101', 'elbow_flex', 3),
    ],
)
def test_a_blocked_joint_is_relieved_whatever_its_servo_measures(profile, joint, id):
    with driven(profile) as rig:
        rig.switch_on()
        rig.clock.sleep(FULL)
        rig.bus.call('motor', id=id, blocked=[2000.0, 2100.0])
        rig.stream({joint: 0.5}, 1.8)
        assert f'something blocks "{joint}"' in rig.arm.snapshot.reason
        rig.stream({joint: 0.5}, 2.0)
        state = rig.bus.state()[id]
        assert state['torque']
        assert abs(state['load']) < 0.5
        assert rig.arm.snapshot.state is ArmState.FOLLOWING


def test_a_joint_that_hangs_beyond_its_range_can_be_cleared_and_is_taken_over():
    with emulated() as bus:
        high = bus.call('get', id=2, address=11, size=2) - 28
        bus.call('put', id=2, address=11, size=2, value=high, keep=True)  # recorded 2.5 degrees short
        with started(bus) as rig:
            rig.until(ArmState.PASSIVE)
            rig.switch_on()
            rig.clock.sleep(FULL)
            rig.stream({'shoulder_lift': rig.arm.calibration.joint('shoulder_lift').upper}, 4.0)
            bus.call('motor', id=2, weight=0.5)
            rig.clock.sleep(1.0)
            assert rig.tick('shoulder_lift') > high + 10
            rig.arm.hold()
            rig.arm.clear()
            bus.call('plug', on=False)
            rig.until(ArmState.CLOSED)
            bus.call('plug', on=True)
            rig.until(ArmState.HOLDING)


def test_a_joint_that_is_known_to_have_no_torque_is_noticed_too():
    """As after a clear that failed half-way."""
    with driven('omx_f') as rig:
        rig.switch_on()
        rig.clock.sleep(FULL)
        rig.bus.call('put', id=12, address=64, size=1, value=0)
        rig.arm._torque.on.discard('joint2')
        assert 'servo 12 (joint2) has lost its torque' in rig.until(ArmState.FAULTED).reason


def test_the_driver_outlives_a_watchdog_that_cannot_be_set():
    with driven('omx_f') as rig:
        rig.switch_on()
        rig.clock.sleep(FULL)
        for _ in range(10):
            rig.clock.now += 2.5  # the computer was suspended: all watchdogs have stopped their servos
            rig.bus.faults({'kind': 'missing', 'id': 14, 'share': 0.8})
            rig.clock.sleep(0.5)
        rig.bus.faults()
        rig.until(ArmState.HOLDING)


@pytest.mark.parametrize('end', ['holding', 'released', 'faulted'])
def test_other_programs_can_move_dynamixels_after_the_end(end):
    with driven('open_manipulator_x') as rig:
        rig.switch_on()
        if end == 'faulted':
            rig.dip(12)
            rig.until(ArmState.FAULTED)
        rig.arm.stop(end == 'released')
        rig.clock.sleep(3.0)
        assert {rig.bus.call('get', id=id, address=98, size=1) for id in rig.profile.ids} == {0}


def test_other_programs_can_move_dynamixels_of_a_passive_arm_that_was_left_with_torque():
    ids = read_profile('open_manipulator_x').ids
    with emulated('open_manipulator_x') as bus:
        bus.call('put', id=12, address=64, size=1, value=1)
        for id in ids:  # by a driver that was killed
            bus.call('put', id=id, address=98, size=1, value=50)
        with started(bus, 'open_manipulator_x') as rig:
            rig.until(ArmState.PASSIVE)
        assert bus.state()[12]['torque']
        assert {bus.call('get', id=id, address=98, size=1) for id in ids} == {0}


def test_a_passive_arm_with_torque_does_not_claim_to_have_none():
    with emulated() as bus:
        bus.call('put', id=2, address=40, size=1, value=1)
        with started(bus) as rig:
            rig.until(ArmState.PASSIVE)
            for ask in (rig.arm.hold, rig.arm.clear):
                with pytest.raises(IkError, match=r'does not hold the arm: torque is on in .*shoulder_lift'):
                    ask()


def test_a_command_far_away_is_approached_whatever_the_load(rig):
    rig.bus.call('motor', id=3, weight=0.6)
    rig.stream({'elbow_flex': 1.0}, 3.0)
    assert rig.arm.snapshot.joints['elbow_flex'].position == pytest.approx(1.0, abs=math.radians(4))
