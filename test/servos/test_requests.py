# SPDX-License-Identifier: Apache-2.0
"""Requests to hold an arm or to release it outlast faults, and the newest one counts."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from rig import TORQUE_LIMIT, driven, emulated, started

from ik_node.servos.arm import torque
from ik_node.servos.arm.arm import ArmOptions
from ik_node.servos.arm.registers import ArmError, Servo
from ik_node.servos.arm.states import ArmState
from ik_node.servos.emulator.dynamixel_servo import DynamixelServo
from ik_node.servos.emulator.motor import Motor

pytestmark = pytest.mark.slow

DEGREE = 4096 / 360  # ticks
PWM = {'address': 100, 'size': 2}  # of a Dynamixel
BUS_WATCHDOG = {'address': 98, 'size': 1}


@pytest.fixture
def rig():
    """With full torque, and a load on the shoulder."""
    with driven() as rig:
        rig.switch_on()
        rig.clock.sleep(2.5)
        rig.bus.call('motor', id=2, weight=0.5)
        rig.clock.sleep(1.0)
        yield rig


def lower(rig):
    with contextlib.suppress(ArmError):
        rig.arm.set_torque(False)


def unplugged(rig, after, away=1.0):
    """Lose the adapter while the arm is lowered, and find it again."""
    rig.clock.at(rig.clock.now + after, lambda: rig.bus.call('plug', on=False))
    lower(rig)
    rig.clock.sleep(away)
    rig.bus.call('plug', on=True)
    rig.until(ArmState.PASSIVE, ArmState.HOLDING)


def test_a_release_that_is_repeated_after_a_reconnect_never_raises_the_torque(rig):
    unplugged(rig, 2.2)
    before, place = rig.bus.call('get', id=2, **TORQUE_LIMIT), rig.tick('shoulder_lift')
    rig.bus.faults({'kind': 'corrupt', 'id': 2})
    rig.clock.at(rig.clock.now + 0.2, lambda: rig.bus.faults())
    limits = rig.torque_limits(28, 0.1)
    places = rig.sampled(lambda: rig.tick('shoulder_lift'), 28, 0.1)
    rig.arm.set_torque(False)
    assert max(limits) <= before < 400
    assert min(places) > place - DEGREE
    assert limits[20] < 0.7 * before
    assert not any(state['torque'] for state in rig.bus.state().values())


def test_a_release_does_not_drop_an_arm_to_the_limit_of_this_driver():
    with emulated() as bus:
        for id in range(1, 6):
            bus.call('put', id=id, address=40, size=1, value=1)
        with started(bus, options=ArmOptions(torque_limit=0.3)) as rig:
            rig.until(ArmState.PASSIVE)
            limits = rig.sampled(lambda: bus.call('get', id=2, **TORQUE_LIMIT), 5, 0.1)
            rig.arm.set_torque(False)
            assert min(limits) > 800


def test_a_dynamixel_that_its_watchdog_has_stopped_is_lowered_slowly():
    with driven('open_manipulator_x') as rig:
        rig.switch_on()
        rig.clock.sleep(2.5)
        unplugged(rig, 0.5, 3.0)
        limits = rig.sampled(lambda: rig.bus.call('get', id=12, **PWM), 29, 0.1)
        rig.arm.set_torque(False)
        assert limits[14] < 0.7 * limits[0]
        assert limits[-1] < 0.2 * limits[0]


def test_an_emulated_dynamixel_whose_bus_is_silent_stops_where_it_is():
    servo = DynamixelServo(12, 'xm430-w350', Motor(2048, low=0, high=4095, fastest=500), 3)
    servo.write(64, bytes([1]))  # torque
    servo.write(98, bytes([10]))  # watchdog: 0.2 s
    servo.write(116, (3000).to_bytes(4, 'little'))
    for _ in range(25):
        servo.drive(0.01)
    stopped = servo.present()
    assert servo.get(98, 1) == 255
    for _ in range(50):
        servo.drive(0.01)
    assert 2048 < stopped < 2900
    assert abs(servo.present() - stopped) < 30


def test_a_watchdog_is_set_again_after_a_clear_that_fails(monkeypatch):
    with driven('open_manipulator_x') as rig:
        rig.switch_on()
        at_rest = torque._at_rest

        def moving(servo):
            if servo.joint.id == 15:
                raise ArmError('it moves')
            return at_rest(servo)

        monkeypatch.setattr(torque, '_at_rest', moving)
        with pytest.raises(ArmError, match='it moves'):
            rig.arm.clear()
        assert {rig.bus.call('get', id=id, **BUS_WATCHDOG) for id in rig.profile.ids} == {50}


def test_a_hold_that_is_rejected_does_not_undo_a_release(rig):
    unplugged(rig, 2.2)
    with pytest.raises(ArmError, match='this driver does not hold the arm: torque may still be on'):
        rig.arm.hold()
    rig.bus.call('plug', on=False)
    rig.until(ArmState.CLOSED)
    rig.bus.call('plug', on=True)
    rig.until(ArmState.PASSIVE, ArmState.HOLDING)
    assert rig.arm.snapshot.state is ArmState.PASSIVE
    with pytest.raises(ArmError, match='passive: torque may still be on'):
        rig.arm.command({'elbow_flex': 0.5})


def test_a_hold_keeps_a_joint_that_is_not_measured_at_that_time_from_swinging_back(rig):
    time = rig.clock.now + 2.0
    rig.clock.at(time - 0.02, lambda: rig.bus.faults({'kind': 'corrupt', 'id': 2}))
    rig.clock.at(time, rig.arm.request_hold)
    rig.clock.at(time + 0.06, lambda: rig.bus.faults())
    with pytest.raises(ArmError, match='hold was called'):
        rig.arm.set_torque(False)
    place = rig.tick('shoulder_lift')
    places = rig.sampled(lambda: rig.tick('shoulder_lift'), 20, 0.1)
    rig.clock.sleep(2.0)
    assert min(places) > place - DEGREE


def test_an_arm_that_is_lowered_says_so_and_takes_no_commands(rig):
    rejected = []

    def command():
        with pytest.raises(ArmError) as error:
            rig.arm.command({'elbow_flex': 0.1})
        rejected.append(str(error.value))

    rig.clock.at(rig.clock.now + 1.0, command)
    rig.seen.clear()
    rig.arm.set_torque(False)
    assert rejected == ['the arm is lowering: the torque is being switched off']
    states = [snapshot.state for snapshot in rig.seen]
    assert set(states[states.index(ArmState.LOWERING) :]) == {ArmState.LOWERING, ArmState.PASSIVE}


def test_a_release_on_a_bus_that_goes_silent_ends_in_time_and_names_the_servos(rig):
    begun = rig.clock.now
    rig.clock.at(begun + 2.5, lambda: rig.bus.faults({'kind': 'missing'}))
    rig.seen.clear()
    with pytest.raises(ArmError, match=r'no answer from servo 1 .*support the arm, and unplug its power'):
        rig.arm.set_torque(False)
    assert rig.clock.now - begun < 10.0
    gaps = [after.time - before.time for before, after in zip(rig.seen, rig.seen[1:], strict=False)]
    assert max(gaps) < 2.0
    assert ArmState.HOLDING not in {snapshot.state for snapshot in rig.seen[1:]}


def test_the_reason_names_the_servos_that_do_not_answer_now():
    with driven() as rig:
        rig.switch_on()
        for silent in ([4], [3, 4], [3]):
            rig.bus.faults(*({'kind': 'missing', 'id': id} for id in silent))
            rig.clock.sleep(2.0)
            reason = rig.arm.snapshot.reason
            assert ('elbow_flex' in reason) is (3 in silent)
            assert ('wrist_flex' in reason) is (4 in silent)


def test_a_passive_arm_knows_when_the_torque_that_was_left_is_gone(rig):
    unplugged(rig, 2.2)
    for id in rig.profile.ids:
        rig.bus.call('power', id=id, on=False)
        rig.clock.sleep(0.1)
        rig.bus.call('power', id=id, on=True)
        rig.clock.sleep(0.5)
    rig.clock.sleep(1.0)
    assert rig.arm.snapshot.state is ArmState.PASSIVE
    assert rig.arm.snapshot.reason == ''
    assert rig.arm.snapshot.powered == frozenset()


def test_zeros_are_not_changed_while_a_passive_arm_has_torque(rig):
    unplugged(rig, 0.5)
    with pytest.raises(ArmError, match='zeros can only be set while the torque is off'):
        rig.arm.request_calibration().result(60.0)


def requesting(rig, **requests):
    """Have others ask for something at times from now on [s], while a request is under way."""

    arm = rig.arm
    ask = {
        'hold': arm.request_hold,
        'off': lambda: arm.request_torque(False),
        'on': lambda: arm.request_torque(True),
        'clear': arm.request_clear,
    }
    for request, time in requests.items():
        rig.clock.at(rig.clock.now + time, ask[request])


@pytest.mark.parametrize(
    ('requests', 'state', 'latched'),
    [
        ({'hold': 0.05, 'off': 0.1}, ArmState.PASSIVE, True),
        ({'off': 0.05, 'hold': 0.1}, ArmState.HOLDING, True),
        ({'hold': 0.05, 'clear': 0.1}, ArmState.HOLDING, False),
        ({'clear': 0.05, 'hold': 0.1}, ArmState.HOLDING, True),
    ],
)
def test_the_newest_request_counts_while_the_torque_is_switched_on(rig, requests, state, latched):
    requesting(rig, **requests)
    rig.arm.clear()
    rig.clock.sleep(5.0)
    assert rig.arm.snapshot.state is state
    assert rig.arm.snapshot.latched is latched


@pytest.mark.parametrize('profile', ['omx_f'])
def test_a_dynamixel_that_is_cut_off_as_its_lowering_begins_is_lowered_once_it_is_back(profile, monkeypatch):
    with driven(profile) as rig:
        cut, hears = set(), rig.bus.wire._matches
        monkeypatch.setattr(rig.bus.wire, '_matches', lambda servo: hears(servo) and servo.ids[0] not in cut)
        rig.switch_on()
        rig.clock.sleep(2.5)
        cut.add(12)
        rig.clock.at(rig.clock.now + 1.5, cut.clear)
        rig.clock.sleep(0.5)
        limits = rig.sampled(lambda: rig.bus.call('get', id=12, **PWM), 45, 0.1)
        rig.arm.set_torque(False)
        assert max(before - after for before, after in itertools.pairwise(limits)) < 0.2 * limits[0]
        assert limits[-1] < 0.2 * limits[0]


@pytest.mark.parametrize(('profile', 'register'), [('so101', TORQUE_LIMIT), ('open_manipulator_x', PWM)])
def test_a_servo_that_was_silent_while_its_torque_grew_gets_all_of_it_and_no_more_at_a_release(profile, register):
    with driven(profile) as rig:
        name = rig.profile.joints[1].name
        id = rig.profile.joints[1].id
        rig.switch_on()
        rig.bus.faults({'kind': 'missing', 'id': id})
        weak = rig.bus.call('get', id=id, **register)
        rig.clock.sleep(2.5)
        rig.bus.call('put', id=id, value=weak, **register)  # it did not hear either
        rig.bus.faults()
        rig.wait(lambda: name in rig.arm.snapshot.joints)
        rig.clock.sleep(0.5)
        full = rig.bus.call('get', id=id, **register)
        assert full > 2 * weak
        rig.bus.faults({'kind': 'corrupt', 'id': id})
        rig.clock.at(rig.clock.now + 0.3, lambda: rig.bus.faults())
        limits = rig.sampled(lambda: rig.bus.call('get', id=id, **register), 28, 0.1)
        rig.arm.set_torque(False)
        assert max(limits) <= full


def test_a_servo_that_may_have_torque_after_a_failure_is_looked_at_until_it_answers(monkeypatch):
    write = Servo.write
    with driven() as rig:
        rig.until(ArmState.PASSIVE)

        def silenced(servo, name, count):
            if (servo.joint.id, name) == (3, 'torque_enable'):
                rig.bus.call('put', id=3, address=40, size=1, value=1)
                rig.bus.faults({'kind': 'missing', 'id': 3})
            return write(servo, name, count)

        monkeypatch.setattr(Servo, 'write', silenced)
        with pytest.raises(ArmError, match=r'servo 3 \(elbow_flex\) may have torque now'):
            rig.arm.set_torque(True)
        rig.bus.call('put', id=3, address=40, size=1, value=1)
        rig.bus.faults()
        rig.clock.sleep(1.0)
        assert rig.arm.snapshot.reason == 'torque is on in servo 3 (elbow_flex)'
        assert rig.arm.snapshot.powered == {'elbow_flex'}
        rig.bus.call('put', id=3, address=40, size=1, value=0)
        rig.wait(lambda: rig.arm.snapshot.powered == frozenset())
        assert rig.arm.snapshot.reason == ''


def test_watchdogs_are_set_again_once_a_servo_answers_that_was_silent_at_a_hold():
    with driven('open_manipulator_x') as rig:
        rig.switch_on()
        rig.clock.sleep(2.5)
        now = rig.clock.now
        rig.clock.at(now + 0.9, lambda: rig.bus.faults({'kind': 'missing', 'id': 11}))
        rig.clock.at(now + 1.0, rig.arm.request_hold)
        rig.clock.at(now + 1.4, lambda: rig.bus.faults())
        with pytest.raises(ArmError, match='hold was called'):
            rig.arm.set_torque(False)
        rig.clock.sleep(3.0)
        assert {rig.bus.call('get', id=id, **BUS_WATCHDOG) for id in rig.profile.ids} == {50}


def test_a_hold_that_waits_behind_torque_on_counts_although_one_before_it_was_rejected():
    with driven() as rig:
        rejected, _, hold = rig.arm.request_hold(), rig.arm.request_torque(True), rig.arm.request_hold()
        hold.result(10.0)
        with pytest.raises(ArmError, match='the arm holds nothing'):
            rejected.result(0.0)
        assert rig.arm.snapshot.state is ArmState.HOLDING
        assert rig.arm.snapshot.latched
