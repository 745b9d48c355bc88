# SPDX-License-Identifier: Apache-2.0
"""An arm in doubt: what its owner has told it lasts, and nothing sinks or turns while faults are mended."""

from __future__ import annotations

import contextlib

import pytest
from rig import TORQUE_ENABLE, TORQUE_LIMIT, driven, emulated, rig, started

from ik_node.servos.arm.arm import ServoArm
from ik_node.servos.arm.registers import ArmError, survey
from ik_node.servos.arm.states import ArmState
from ik_node.servos.arm.torque import Torque
from ik_node.servos.bus.feetech import feetech
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.bus.transport import Answer
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.calibration.zeros import calibrate

pytestmark = pytest.mark.slow

DEGREE = 4096 / 360  # ticks
__all__ = ['rig']


def with_full_torque(rig):
    rig.wait(lambda: all(rig.bus.call('get', id=id, **TORQUE_LIMIT) == 1000 for id in rig.profile.ids[:5]))


@pytest.mark.parametrize(
    ('lost', 'state', 'first'),
    [
        ('plug', ArmState.CLOSED, True),
        ('all', ArmState.SILENT, True),
        ('all', ArmState.SILENT, False),
        ('one', ArmState.FAULTED, False),
    ],
)
def test_a_hold_counts_before_and_while_servos_do_not_answer(rig, lost, state, first):
    if first:
        rig.arm.hold()
    if lost == 'plug':
        rig.bus.call('plug', on=False)
    else:
        rig.bus.faults({'kind': 'missing', **({'id': 4} if lost == 'one' else {})})
    rig.until(state)
    if not first:
        with contextlib.suppress(ArmError):
            rig.arm.hold()
    rig.bus.call('plug', on=True)
    rig.bus.faults()
    rig.until(ArmState.HOLDING)
    rig.clock.sleep(2.0)  # until no answer is outstanding
    assert rig.arm.snapshot.latched
    with pytest.raises(ArmError):
        rig.arm.command({'elbow_flex': 0.5})
    rig.arm.clear()
    rig.arm.command({'elbow_flex': 0.01})


@pytest.mark.parametrize('lost', ['before', 'meanwhile'])
def test_a_lost_torque_is_told_although_another_servo_was_silent(rig, lost):
    if lost == 'before':
        rig.dip(3)
        rig.until(ArmState.FAULTED)
        rig.wait(lambda: 'elbow_flex' in rig.arm.snapshot.joints)
    rig.bus.faults({'kind': 'missing', 'id': 4})
    rig.wait(lambda: 'wrist_flex' not in rig.arm.snapshot.joints)
    if lost == 'meanwhile':
        rig.dip(3)
        rig.clock.sleep(1.5)
    rig.clock.sleep(0.5)
    rig.seen.clear()
    rig.bus.faults()
    rig.wait(lambda: 'wrist_flex' in rig.arm.snapshot.joints)
    rig.clock.sleep(0.3)
    assert {snapshot.state for snapshot in rig.seen} == {ArmState.FAULTED}
    assert 'servo 3 (elbow_flex)' in rig.arm.snapshot.reason


def misread(monkeypatch, id, address, data, which):
    """Have these answers of a servo be false, counted from 0; returns the number of reads so far."""
    read, counted = SerialTransport.read, [0]

    def wrong(transport, asked, at, size):
        if (asked, at) != (id, address):
            return read(transport, asked, at, size)
        counted[0] += 1
        return Answer(data) if counted[0] - 1 in which else read(transport, asked, at, size)

    monkeypatch.setattr(SerialTransport, 'read', wrong)
    return lambda: counted[0]


@pytest.mark.parametrize('wrong', [1, 2])
def test_a_loss_of_torque_is_believed_when_it_is_read_twice(rig, wrong, monkeypatch):
    count = misread(monkeypatch, 3, TORQUE_ENABLE, b'\0', range(wrong))
    rig.wait(lambda: count() > wrong)
    rig.clock.sleep(0.5)
    assert rig.arm.snapshot.state is (ArmState.FAULTED if wrong == 2 else ArmState.HOLDING)
    assert ('elbow_flex' in rig.arm.snapshot.powered) is (wrong == 1)


def test_a_limp_joint_keeps_its_arm_from_following_although_one_answer_says_that_it_has_torque(rig, monkeypatch):
    rig.dip(3)
    rig.until(ArmState.FAULTED)
    rig.wait(lambda: 'elbow_flex' in rig.arm.snapshot.joints)
    rig.seen.clear()
    count = misread(monkeypatch, 3, TORQUE_ENABLE, b'\1', range(1))
    rig.wait(lambda: count() > 2)
    rig.clock.sleep(0.3)
    assert {snapshot.state for snapshot in rig.seen} == {ArmState.FAULTED}


@pytest.fixture
def loaded(rig):
    rig.load_shoulder()
    return rig


@pytest.mark.parametrize(
    ('begun', 'address', 'which'),
    [
        ('clear', TORQUE_ENABLE, 0),
        ('clear', 42, 0),
        ('take over', TORQUE_ENABLE, 0),
        ('take over', 48, 0),
    ],
)
def test_one_false_answer_drops_no_arm(loaded, monkeypatch, begun, address, which):
    hangs = loaded.tick('shoulder_lift')
    if begun == 'take over':
        loaded.bus.call('plug', on=False)
        loaded.until(ArmState.CLOSED)
    misread(monkeypatch, 2, address, bytes(1 if address == TORQUE_ENABLE else 2), [which])
    if begun == 'take over':
        loaded.bus.call('plug', on=True)
    else:
        loaded.arm.clear()
    loaded.clock.sleep(3.0)
    assert loaded.tick('shoulder_lift') == pytest.approx(hangs, abs=2 * DEGREE)
    assert loaded.arm.snapshot.state is ArmState.HOLDING


@pytest.mark.parametrize('which', range(2))
def test_one_false_answer_does_not_leave_a_servo_out_while_the_arm_is_lowered(loaded, monkeypatch, which):
    limits = loaded.torque_limits(28, 0.1)
    misread(monkeypatch, 2, TORQUE_ENABLE, b'\0', [which])
    loaded.arm.set_torque(False)
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] < 200


SHOULD_BE = [
    ('so101', [('put', {'id': 3, 'address': 33, 'size': 1, 'value': 1})], r'servo 3 .*mode 1'),
    ('so101', [('put', {'id': 3, 'address': 3, 'size': 2, 'value': 9})], r'servo 3 .*model 9'),
    ('so101', [('put', {'id': 3, 'address': 5, 'size': 1, 'value': 2})], r'servo 2 .*servo 3 .*the id 2'),
    ('so101', [('put', {'id': 3, 'address': 5, 'size': 1, 'value': 9})], r'no answer from servo 3 '),
    (
        'so101',
        [('put', {'id': 3, 'address': 9, 'size': 2, 'value': 2080, 'keep': True})],
        r'servo 3 .* 2048, ',
    ),
    (
        'so101',
        [('put', {'id': 3, 'address': 9, 'size': 2, 'value': 2300, 'keep': True})],
        r'servo 3 .*inside',
    ),
    ('so101', [('motor', {'id': 5, 'actual': 3.0})], r'servo 5 .*inside'),
    ('so101', [('motor', {'id': 5, 'actual': 4092.0})], r'servo 5 .*inside'),
    ('so101', [('volts', {'volts': 18.0})], r'switch the supply off'),
    ('omx_f', [('volts', {'volts': 18.0})], r'switch the supply off'),
    ('omx_f', [('alarms', {'id': 12, 'bits': 0x20})], r'servo 12 .*overload'),
    (
        'omx_f',  # its goals end below where it stands
        [
            ('put', {'id': 12, 'address': 48, 'size': 4, 'value': 2000}),
            ('put', {'id': 12, 'address': 116, 'size': 4, 'value': 1500}),
        ],
        r'servo 12 \(joint2\) does not accept 2048 ',
    ),
    ('wx200', [('power', {'id': 3, 'on': False})], r'servo 3 \(shoulder\), which turns with servo 2'),
    ('wx200', [('put', {'id': 3, 'address': 12, 'size': 1, 'value': 255})], r'servo 3 .*secondary id 255'),
]


@pytest.mark.parametrize(('profile', 'calls', 'named'), SHOULD_BE)
def test_an_arm_that_is_not_as_it_should_be_gets_no_torque(profile, calls, named):
    with emulated(profile) as bus:
        if profile == 'so101':
            bus.call('put', id=3, address=63, size=1, value=0x55)  # degrees: unlike the others
        for do, given in calls:
            bus.call(do, **given)
        with started(bus, profile) as rig:
            rig.until(ArmState.PASSIVE, ArmState.SILENT)
            rig.clock.sleep(0.2)
            with pytest.raises(ArmError, match=named):
                rig.arm.set_torque(True)
            assert not any(state['torque'] for state in bus.state().values())


def test_a_joint_that_is_pushed_across_the_step_does_not_turn_back(rig):
    rig.stream({'wrist_roll': 3.09}, 5.0)
    rig.until(ArmState.HOLDING)
    assert rig.tick('wrist_roll') > 4040
    before = len(rig.seen)
    rig.bus.call('motor', id=5, actual=4099.0)
    rig.clock.sleep(1.0)
    assert all('wrist_roll' in snapshot.joints for snapshot in rig.seen[before:])  # across it, too
    assert rig.tick('wrist_roll') == pytest.approx(4099, abs=30 * DEGREE)  # on a busy computer; a turn is 360


def test_all_torque_is_had_although_packets_are_lost():
    with driven() as rig:
        rig.arm.set_torque(True)
        rig.clock.sleep(0.5)
        rig.bus.faults({'kind': 'lost', 'share': 0.5})
        rig.clock.sleep(0.7)
        rig.bus.faults()
        with_full_torque(rig)


def test_an_overloaded_joint_is_cleared_and_does_not_sink(rig):
    with_full_torque(rig)
    rig.bus.call('put', id=2, address=34, size=1, value=60)
    rig.bus.call('put', id=2, address=35, size=1, value=10)
    rig.bus.call('put', id=2, address=36, size=1, value=30)
    rig.bus.call('motor', id=2, weight=0.5)
    rig.wait(lambda: 'overload' in conditions(rig, 'shoulder_lift'))
    rig.bus.call('put', id=2, address=36, size=1, value=80)
    before = rig.tick('shoulder_lift')
    since = rig.clock.monotonic()
    rig.arm.clear()
    rig.wait(lambda: not conditions(rig, 'shoulder_lift'))
    off, on = [when for when, id, _ in rig.bus.log('torques', since) if id == 2]
    assert rig.bus.call('get', id=2, **TORQUE_LIMIT) == 1000
    rig.clock.sleep(0.3)
    assert on - off < 0.05
    fallen = 0.5 * 3400 * (on - off)  # [ticks]: emulated joints have no inertia, and fall at once
    assert abs(rig.tick('shoulder_lift') - before) < fallen + 6 * DEGREE  # then it brakes


def test_only_overloaded_servos_lose_their_torque_for_a_moment(rig):
    rig.bus.call('alarms', id=2, bits=0x05)  # voltage, temperature
    rig.wait(lambda: conditions(rig, 'shoulder_lift'))
    since = rig.clock.monotonic()
    rig.arm.clear()
    assert rig.bus.log('torques', since) == []


def conditions(rig, name):
    joint = rig.arm.snapshot.joints.get(name)
    return () if joint is None else joint.conditions


def test_the_goals_are_where_the_arm_is_once_the_driver_has_ended(rig):
    with_full_torque(rig)
    rig.stream({'shoulder_pan': 1.5}, 1.0)
    rig.arm.stop()
    rig.clock.sleep(0.1)
    state = rig.bus.state()[1]
    goal = state['goal']
    assert abs(goal - rig.arm.snapshot.ticks.get('shoulder_pan', goal)) < 10 * DEGREE
    assert [entry[2] for entry in rig.bus.log('goals') if entry[1] == 1][-1] == goal


class Cutting:
    """A transport whose bus loses everything as soon as servo 2 has torque."""

    def __init__(self, bus, inner):
        self._bus, self._inner = bus, inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def write(self, id, address, data):
        reply = self._inner.write(id, address, data)
        if (id, address, data) == (2, 40, b'\x01'):
            self._bus.faults({'kind': 'lost'})
        return reply


def test_servos_that_keep_their_torque_after_a_failed_start_are_named():
    with emulated() as bus:
        inner = SerialTransport(bus.port, 1_000_000, feetech)
        transport = Cutting(bus, inner)
        servos = survey(transport, read_profile('so101'))
        torque = Torque(servos)
        with pytest.raises(ArmError) as caught:
            torque.switch_on()
        inner.close()
        message = str(caught.value)
        assert 'servo 2 (shoulder_lift): no answer' in message
        left = message.partition(';')[2]
        for id, state in bus.state().items():
            assert state['torque'] == (f'servo {id} ' in left)
            assert state['torque'] == (id <= 2)
        assert torque.on == {'shoulder_pan', 'shoulder_lift'}  # no other servo counts as switched on


class Lying(Cutting):
    """A transport whose servo 3 is measured 300 ticks aside in the cycles with torque, but not before."""

    def write(self, id, address, data):
        return self._inner.write(id, address, data)

    def sync_read(self, ids, address, size):
        if self._bus.state()[3]['torque']:
            self._bus.faults({'kind': 'wrong', 'id': 3, 'ticks': 300})
        return self._inner.sync_read(ids, address, size)


def test_the_first_goals_are_those_of_the_start_whatever_is_measured_next():
    with emulated() as bus:
        profile = read_profile('so101')
        inner = SerialTransport(bus.port, 1_000_000, feetech)
        transport = Lying(bus, inner)
        arm = ServoArm(lambda: transport, profile, lambda memory: calibrate(profile, memory))
        arm.request_torque(True)
        for _ in range(10):
            arm.step()
            bus.clock.sleep(0.01)
        inner.close()
        assert arm.snapshot.state is ArmState.HOLDING
        assert {goal for _, id, goal in bus.log('goals') if id == 3} <= set(range(2040, 2057))


def test_a_torque_limit_that_another_program_lowers_is_told_and_restored(loaded):
    loaded.clock.sleep(1.0)
    loaded.bus.call('put', id=2, value=100, **TORQUE_LIMIT)
    loaded.until(ArmState.FAULTED)
    assert 'servo 2 (shoulder_lift) has torque_limit 100' in loaded.arm.snapshot.reason
    assert loaded.bus.call('get', id=2, **TORQUE_LIMIT) == 1000
    place = loaded.tick('shoulder_lift')
    loaded.clock.sleep(2.0)
    assert loaded.tick('shoulder_lift') == pytest.approx(place, abs=2 * DEGREE)
    loaded.arm.clear()
    loaded.until(ArmState.HOLDING)


def test_a_servo_that_another_program_lets_turn_without_end_gets_no_torque(loaded):
    loaded.bus.call('put', id=5, address=33, size=1, value=1)
    loaded.until(ArmState.FAULTED)
    assert 'servo 5 (wrist_roll) has operating_mode 1' in loaded.arm.snapshot.reason
    assert loaded.bus.state()[5]['torque'] == 0
    with pytest.raises(ArmError, match='operating mode 1'):
        loaded.arm.clear()
    assert loaded.bus.state()[5]['torque'] == 0
