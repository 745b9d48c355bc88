# SPDX-License-Identifier: Apache-2.0
"""An arm that is released: what its owner is told, and that it is lowered, and never with more torque."""

from __future__ import annotations

import pytest
from rig import TORQUE_ENABLE, TORQUE_LIMIT, Rig, driven, emulated, rig, started

from ik_node.servos.arm.registers import ArmError, Servo
from ik_node.servos.arm.states import ArmState
from ik_node.servos.bus.feetech import feetech
from ik_node.servos.bus.models import model_named
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.bus.transport import Answer
from ik_node.servos.calibration.profile import read_profile

pytestmark = pytest.mark.slow

DEGREE = 4096 / 360  # ticks
__all__ = ['rig']
WEIGHT = 0.3  # share of the largest torque: joints hang 15 ticks below their goals


def test_a_servo_that_stays_on_at_the_end_is_named(rig):
    rig.bus.faults({'kind': 'missing', 'id': 4})
    rig.until(ArmState.FAULTED)
    with pytest.raises(ArmError, match=r'no answer from servo 4 \(wrist_flex\), whose .*unplug its power'):
        rig.arm.stop(release=True)
    assert rig.arm.snapshot.powered == {'wrist_flex'}
    rig.bus.faults()
    # The instruction reached the servo, only its answers did not come.
    assert not any(state['torque'] for state in rig.bus.state().values())


def test_an_arm_whose_bus_is_gone_at_the_end_may_still_have_torque(rig):
    rig.bus.call('plug', on=False)
    rig.until(ArmState.CLOSED)
    with pytest.raises(ArmError, match=r'does not exist.*; "shoulder_pan", .* may still have torque'):
        rig.arm.stop(release=True)
    assert all(state['torque'] for state in rig.bus.state().values())


def test_an_arm_with_torque_in_some_servos_is_released_at_the_end_too():
    with emulated() as bus:
        for id in (2, 3):
            bus.call('put', id=id, address=40, size=1, value=1)
        rig = Rig(bus, 'so101', None)
        rig.arm.start()
        rig.until(ArmState.PASSIVE)
        assert rig.arm.snapshot.powered == {'shoulder_lift', 'elbow_flex'}
        rig.arm.stop(release=True)
        assert not any(state['torque'] for state in bus.state().values())


def test_an_arm_that_was_never_found_ends_without_an_error():
    with emulated() as bus:
        bus.call('power', on=False)
        rig = Rig(bus, 'so101', None)
        rig.arm.start()
        rig.until(ArmState.SILENT)
        rig.arm.stop(release=True)


def test_a_command_beyond_a_limit_is_followed_to_the_limit_and_told(rig):
    upper = rig.arm.calibration.joint('elbow_flex').upper
    rig.stream({'elbow_flex': upper + 0.13, 'wrist_roll': 0.1}, 0.2)
    snapshot = rig.arm.snapshot
    assert snapshot.reason == f'elbow_flex is at its limit {upper:.2f}, because its command is beyond it'
    assert snapshot.limited == {'elbow_flex': (upper, upper + 0.13)}
    assert snapshot.beyond == 1
    rig.stream({'elbow_flex': 0.0}, 0.1)
    assert rig.arm.snapshot.reason == ''
    rig.stream({'elbow_flex': -9.0}, 0.1)
    assert rig.arm.snapshot.beyond == 2
    rig.until(ArmState.HOLDING)
    assert rig.arm.snapshot.limited == {}


def test_holds_and_recoveries_do_not_let_the_arm_creep_down(rig):
    rig.bus.call('motor', id=2, weight=WEIGHT)
    rig.bus.call('motor', id=3, weight=-WEIGHT)
    rig.clock.sleep(0.5)
    before = {name: rig.tick(name) for name in ('shoulder_lift', 'elbow_flex')}
    assert abs(before['shoulder_lift'] - 2048) > DEGREE  # it hangs
    for _ in range(5):
        rig.arm.hold()
        rig.arm.clear()
    for _ in range(3):
        rig.bus.call('plug', on=False)
        rig.until(ArmState.CLOSED)
        rig.bus.call('plug', on=True)
        rig.until(ArmState.HOLDING)
    rig.bus.faults({'kind': 'missing', 'id': 4})
    rig.until(ArmState.FAULTED)
    rig.bus.faults()
    rig.until(ArmState.HOLDING)
    rig.clock.sleep(0.3)
    for name, tick in before.items():
        assert rig.tick(name) == pytest.approx(tick, abs=DEGREE / 2)


def test_nothing_is_asked_of_servos_that_are_silent(rig, monkeypatch):
    states, carry_out, arm = [], rig.arm._carry_out, rig.arm
    monkeypatch.setattr(arm, '_carry_out', lambda request: states.append(arm._state) or carry_out(request))
    rig.sampled(rig.arm.request_hold, 400, 0.005)  # so that a request waits at the end of every cycle
    rig.clock.sleep(0.1)
    rig.bus.faults({'kind': 'missing'})
    rig.until(ArmState.SILENT)
    rig.clock.sleep(1.0)
    assert ArmState.HOLDING in states
    assert ArmState.SILENT not in states


def test_an_answer_that_fails_again_is_counted_again(rig):
    rig.bus.faults({'kind': 'corrupt', 'id': 3})
    rig.until(ArmState.FAULTED)
    rig.bus.faults()
    rig.until(ArmState.HOLDING)
    snapshot = rig.arm.snapshot
    assert sum(snapshot.faults.values()) > 1.5 * snapshot.retries > 0


def test_memory_is_believed_only_if_it_is_read_twice_alike():
    with emulated() as bus:
        transport = SerialTransport(bus.port, 1_000_000, feetech)
        profile = read_profile('so101')
        servo = Servo(transport, profile.joints[2], model_named('sts3215'))
        replies = iter([b'\x14\xc8', b'\x09\x03', b'\x09\x03'])
        read = transport.read
        transport.read = lambda *asked: Answer(next(replies)) if asked[1] == 3 else read(*asked)
        try:
            assert servo.read_constant('model') == 777
            replies = iter([b'\x01\x00', b'\x02\x00', b'\x03\x00', b'\x04\x00'])
            with pytest.raises(ArmError, match=r'servo 3 \(elbow_flex\) answers differently each time'):
                servo.read_constant('model')
        finally:
            transport.close()


def test_a_hold_counts_that_comes_between_the_request_to_lower_and_the_lowering(rig):
    lowering = rig.arm.request_torque(False)
    rig.arm.request_hold()
    with pytest.raises(ArmError, match='hold was called'):
        lowering.result(60.0)
    assert all(state['torque'] for state in rig.bus.state().values())


def test_torque_off_never_raises_the_torque():
    with driven() as rig:
        rig.switch_on()
        rig.clock.sleep(0.1)
        before, limits = rig.bus.call('get', id=2, **TORQUE_LIMIT), rig.torque_limits(20, 0.05)
        rig.arm.set_torque(False)
        assert before < 400
        assert max(limits) <= before + 10


def test_a_release_that_failed_is_over_once_all_servos_say_that_they_have_no_torque(rig):
    rig.bus.call('power', id=4, on=False)
    rig.until(ArmState.FAULTED)
    with pytest.raises(ArmError, match=r'no answer from servo 4 \(wrist_flex\), whose torque may still'):
        rig.arm.set_torque(False)
    snapshot = rig.arm.snapshot
    assert snapshot.state is ArmState.PASSIVE
    assert snapshot.powered == {'wrist_flex'}
    assert snapshot.reason.startswith('torque may still be on in servo 4 (wrist_flex): support the arm')
    with pytest.raises(ArmError, match=r'this driver does not hold the arm: .*torque may still be on in'):
        rig.arm.hold()
    rig.bus.call('power', id=4, on=True)
    rig.wait(lambda: rig.arm.snapshot.powered == frozenset())
    rig.wait(lambda: rig.arm.snapshot.reason == '')
    assert rig.arm.snapshot.state is ArmState.PASSIVE


@pytest.mark.parametrize('hears', [False, True])
def test_a_release_that_is_repeated_never_raises_the_torque(rig, hears):
    rig.load_shoulder()
    rig.bus.faults({'kind': 'corrupt', 'id': 2} if hears else {'kind': 'missing', 'id': 4})
    rig.until(ArmState.FAULTED)
    with pytest.raises(ArmError, match='no answer from servo'):
        rig.arm.set_torque(False)
    if not hears:
        rig.bus.call('put', id=2, address=TORQUE_ENABLE, size=1, value=1)
    before, limits = rig.bus.call('get', id=2, **TORQUE_LIMIT), rig.torque_limits(28, 0.1)
    with pytest.raises(ArmError, match='no answer from servo'):
        rig.arm.set_torque(False)
    assert max(limits) <= before < 100


def test_a_release_of_servos_that_are_weak_already_begins_with_what_they_have(rig):
    rig.dip(3)
    rig.until(ArmState.FAULTED)
    rig.bus.call('put', id=2, value=300, **TORQUE_LIMIT)
    limits = rig.torque_limits(28, 0.1)
    rig.arm.set_torque(False)
    assert 200 < max(limits) <= 300


@pytest.mark.parametrize(
    ('lost', 'asked'),
    [('plug', 'before'), ('power line', 'before'), ('power line', 'while'), ('plug', 'held again')],
)
def test_an_arm_that_was_to_be_released_is_not_held_again(rig, lost, asked):
    def release():
        with pytest.raises(ArmError):
            rig.arm.set_torque(False)

    if asked == 'before':
        rig.clock.at(rig.clock.now + 1.0, lambda: lose(rig, lost))
        release()
    else:
        lose(rig, lost)
        rig.until(ArmState.CLOSED, ArmState.SILENT)
        release()
    if asked == 'held again':
        with pytest.raises(ArmError):
            rig.arm.hold()
    rig.until(ArmState.CLOSED, ArmState.SILENT)
    rig.clock.sleep(2.0)
    before = rig.bus.call('get', id=2, **TORQUE_LIMIT)
    rig.bus.call('plug', on=True)
    rig.bus.faults()
    rig.until(ArmState.HOLDING if asked == 'held again' else ArmState.PASSIVE)
    if asked == 'held again':
        return
    if not (asked == 'before' and lost == 'power line'):  # each servo was switched off, unheard
        assert 'torque may still be on in servo 1 (shoulder_pan), ' in rig.arm.snapshot.reason
    assert rig.bus.call('get', id=2, **TORQUE_LIMIT) <= before
    rig.arm.set_torque(False)
    assert not any(state['torque'] for state in rig.bus.state().values())
    assert rig.arm.snapshot.reason == ''


def lose(rig, what):
    """Lose the adapter, or the answers of all servos."""
    if what == 'plug':
        rig.bus.call('plug', on=False)
    else:
        rig.bus.faults({'kind': 'missing'})


def test_servos_that_still_have_torque_are_lowered_slowly_too(rig):
    rig.dip(3)
    rig.until(ArmState.FAULTED)
    rig.bus.call('plug', on=False)
    rig.until(ArmState.CLOSED)
    rig.bus.call('plug', on=True)
    rig.until(ArmState.PASSIVE)
    assert 'torque is on in' in rig.arm.snapshot.reason
    before = rig.clock.monotonic()
    rig.arm.set_torque(False)
    assert rig.clock.monotonic() - before > 2.0
    assert not any(state['torque'] for state in rig.bus.state().values())


def test_an_arm_found_with_torque_outside_its_limits_can_be_released():
    with emulated() as bus:
        for id in range(1, 7):
            bus.call('put', id=id, address=40, size=1, value=1)
        bus.call('motor', id=3, blocked=[2000.0, 2100.0])
        bus.call('put', id=3, address=9, size=2, value=2300, keep=True)
        with started(bus) as rig:
            rig.until(ArmState.PASSIVE)
            assert 'servo 3 (elbow_flex) is at' in rig.arm.snapshot.reason
            with pytest.raises(ArmError, match='passive'):
                rig.arm.command({'elbow_flex': 0.5})
            rig.arm.set_torque(False)
            assert not any(state['torque'] for state in bus.state().values())
