# SPDX-License-Identifier: Apache-2.0
"""What an arm tells its owner: which servos still have torque, which commands it cannot follow."""

from __future__ import annotations

import contextlib
import threading

import pytest
from rig import Rig, driven, emulated

from ik_node.servos.arm.cycle import ArmCycle
from ik_node.servos.arm.snapshot import ArmState
from ik_node.servos.arm.survey import ArmError, read_constant
from ik_node.servos.bus import feetech
from ik_node.servos.bus.models import model_named
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.bus.transport import Answer
from ik_node.servos.calibration.profile import read_profile

DEGREE = 4096 / 360  # ticks
LONG = 20.0  # [s] in which an event comes, on any machine
WEIGHT = 0.3  # share of the largest torque: joints hang 15 ticks below their goals


@pytest.fixture(params=[False], ids=[''])
def rig(request):
    with driven(real=request.param) as rig:
        rig.switch_on()
        yield rig


several_threads = pytest.mark.parametrize('rig', [True], ids=['several threads'], indirect=True)


def test_the_joints_with_torque_are_known(rig):
    rig.wait(lambda: rig.arm.snapshot.powered == set(rig.profile.names))
    rig.bus.call('power', id=3, on=False)
    rig.bus.call('power', id=3, on=True)
    rig.until(ArmState.FAULTED)
    assert rig.arm.snapshot.powered == set(rig.profile.names) - {'elbow_flex'}
    rig.arm.set_torque(False)
    assert rig.arm.snapshot.powered == set()


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
    assert snapshot.reason == f'elbow_flex is at its limit {upper:.2f}, its command is beyond it'
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


def test_a_joint_that_is_pushed_away_is_held_where_it_is_then(rig):
    rig.bus.call('motor', id=3, actual=2148.0, blocked=[2148.0, 2148.0])
    rig.wait(lambda: 'elbow_flex' in rig.arm.snapshot.joints and rig.arm.snapshot.ticks['elbow_flex'] > 2140)
    rig.arm.hold()
    rig.wait(lambda: abs(rig.bus.state()[3]['goal'] - 2148) < 20)


@several_threads
def test_a_hold_ends_a_lowering(rig):
    rig.bus.call('motor', id=2, weight=WEIGHT)
    rig.wait(lambda: rig.bus.call('get', id=2, address=48, size=2) == 1000)
    failed = []

    def lower():
        try:
            rig.arm.set_torque(False)
        except ArmError as error:
            failed.append(str(error))

    thread = threading.Thread(target=lower)
    thread.start()
    rig.wait(lambda: rig.bus.call('get', id=2, address=48, size=2) < 700)
    rig.arm.hold()
    thread.join()
    assert failed == ['a hold came while the arm was lowered: its torque stays on']
    assert rig.arm.snapshot.state is ArmState.HOLDING
    rig.wait(lambda: rig.bus.call('get', id=2, address=48, size=2) == 1000)
    assert all(state['torque'] for state in rig.bus.state().values())


@several_threads
def test_nothing_is_asked_of_servos_that_are_silent(rig, monkeypatch):
    states, hold = [], ArmCycle.hold
    monkeypatch.setattr(ArmCycle, 'hold', lambda cycle: states.append(cycle.state) or hold(cycle))

    def hold_on_and_on():
        with contextlib.suppress(ArmError):
            while True:
                rig.arm.hold()

    threads = [threading.Thread(target=hold_on_and_on) for _ in range(4)]
    for thread in threads:  # so that a request waits at the end of every cycle
        thread.start()
    rig.clock.sleep(0.1)
    rig.bus.faults({'kind': 'missing'})
    for thread in threads:
        thread.join()
    assert ArmState.HOLDING in states
    assert ArmState.SILENT not in states


def test_an_answer_that_fails_again_is_counted_again(rig):
    rig.bus.faults({'kind': 'corrupt', 'id': 3})
    rig.until(ArmState.FAULTED)
    rig.bus.faults()
    rig.until(ArmState.HOLDING)
    snapshot = rig.arm.snapshot
    assert sum(snapshot.faults.values()) > 1.5 * snapshot.retries


def test_a_servo_that_rejects_its_goal_is_told_with_a_remedy():
    with driven('omx_f') as rig:
        rig.bus.call('put', id=12, address=48, size=4, value=2000)  # its goals end below where it stands
        rig.bus.call('put', id=12, address=116, size=4, value=1500)
        with pytest.raises(ArmError, match=r'servo 12 \(joint2\) does not accept 2048 .*Check its cable'):
            rig.arm.set_torque(True)
        assert not any(state['torque'] for state in rig.bus.state().values())


def test_memory_is_believed_only_if_it_is_read_twice_alike():
    with emulated() as bus:
        transport = SerialTransport(bus.port, 1_000_000, feetech)
        profile = read_profile('so101')
        joint, model = profile.joints[2], model_named('sts3215')
        replies = iter([b'\x14\xc8', b'\x09\x03', b'\x09\x03'])
        read = transport.read
        transport.read = lambda *asked: Answer(next(replies)) if asked[1] == 3 else read(*asked)
        try:
            assert read_constant(transport, joint, model, 'model') == 777
            replies = iter([b'\x01\x00', b'\x02\x00', b'\x03\x00', b'\x04\x00'])
            with pytest.raises(ArmError, match=r'servo 3 \(elbow_flex\) answers differently each time'):
                read_constant(transport, joint, model, 'model')
        finally:
            transport.close()


@several_threads
def test_a_hold_counts_that_comes_between_the_request_to_lower_and_the_lowering(rig):
    entered, go_on, failed = threading.Event(), threading.Event(), []

    def busy(_: object) -> None:
        entered.set()
        go_on.wait(LONG)

    def lower() -> None:
        try:
            rig.arm.set_torque(False)
        except ArmError as error:
            failed.append(str(error))

    first = threading.Thread(target=rig.arm._ask, args=(busy,))
    first.start()
    assert entered.wait(LONG)
    thread = threading.Thread(target=lower)
    thread.start()
    rig.wait(lambda: len(rig.arm._requests) > 0)
    rig.arm.latch()
    go_on.set()
    first.join()
    thread.join()
    assert failed == ['a hold came while the arm was lowered: its torque stays on']
    assert all(state['torque'] for state in rig.bus.state().values())
