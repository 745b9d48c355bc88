# SPDX-License-Identifier: Apache-2.0
"""An arm of servos: it is where it was before it is commanded, and holds still when in doubt."""

from __future__ import annotations

import contextlib
import itertools
import math

import pytest
from rig import driven, emulated, started

from ik_node.errors import InputError
from ik_node.servos.arm.arm import ArmOptions
from ik_node.servos.arm.registers import ArmError
from ik_node.servos.arm.states import ArmState
from ik_node.servos.bus.serial_transport import SerialTransport

DEGREE = 4096 / 360  # ticks


@pytest.fixture
def rig():
    with driven() as rig:
        yield rig


def test_it_measures_without_torque_until_that_is_asked_for(rig):
    snapshot = rig.arm.snapshot
    assert set(snapshot.joints) == set(rig.profile.names)
    assert not any(state['torque'] for state in rig.bus.state().values())
    assert rig.bus.log('goals') == []
    with pytest.raises(ArmError, match='the arm is passive'):
        rig.arm.command({'elbow_flex': 0.0})


@pytest.mark.slow
def test_a_stale_goal_moves_nothing_when_the_torque_is_switched_on(rig):
    for id in rig.profile.ids:
        rig.bus.call('put', id=id, address=42, size=2, value=2600)
    before = {id: state['actual'] for id, state in rig.bus.state().items()}
    rig.arm.set_torque(True)
    assert rig.arm.snapshot.state is ArmState.HOLDING
    rig.clock.sleep(1.5)
    for id, state in rig.bus.state().items():
        assert state['torque']
        assert state['actual'] == pytest.approx(before[id], abs=DEGREE / 2)
    first = {}
    for _, id, goal in rig.bus.log('goals'):
        first.setdefault(id, goal)
    assert all(abs(goal - 2048) < DEGREE / 2 for goal in first.values())


@pytest.mark.slow
def test_commands_move_the_arm_and_their_end_holds_it_where_it_is():
    with driven(options=ArmOptions(command_timeout=0.1)) as rig:
        rig.arm.set_torque(True)
        rig.stream({'elbow_flex': 0.4, 'wrist_roll': -0.5}, 1.5)
        assert rig.arm.snapshot.state is ArmState.FOLLOWING
        assert rig.arm.snapshot.joints['elbow_flex'].position == pytest.approx(0.4, abs=0.02)
        assert rig.arm.snapshot.joints['wrist_roll'].position == pytest.approx(-0.5, abs=0.02)
        rig.stream({'elbow_flex': -1.5}, 0.05)
        rig.until(ArmState.HOLDING)
        rig.clock.sleep(0.2)
        held = rig.tick('elbow_flex')
        rig.clock.sleep(0.3)
        assert rig.tick('elbow_flex') == pytest.approx(held, abs=DEGREE)
        assert rig.tick('elbow_flex') > 2048 - 1.5 * 4096 / math.tau + 20 * DEGREE  # not at the last command


@pytest.mark.slow
def test_commands_that_waited_while_the_driver_stood_still_are_dropped(rig):
    rig.arm.set_torque(True)
    rig.stream({'elbow_flex': 0.2}, 1.0)
    held = rig.tick('elbow_flex')
    rig.clock.now += 5.0  # nobody runs
    rig.arm.command({'elbow_flex': 1.2})  # of a callback that runs before the next cycle
    rig.clock.sleep(0.02)
    assert rig.arm.snapshot.state is ArmState.HOLDING
    with pytest.raises(InputError, match='was suspended'):
        rig.arm.command({'elbow_flex': 1.2})
    rig.clock.sleep(0.3)
    assert rig.tick('elbow_flex') == pytest.approx(held, abs=2 * DEGREE)
    rig.stream({'elbow_flex': 0.6}, 1.0)
    assert rig.arm.snapshot.joints['elbow_flex'].position == pytest.approx(0.6, abs=0.02)


@pytest.mark.slow
def test_a_goal_is_never_far_from_its_joint(rig):
    rig.bus.call('motor', id=3, blocked=[2000.0, 2100.0])
    rig.arm.set_torque(True)
    rig.stream({'elbow_flex': 1.2}, 3.0)
    goals = [goal for _, id, goal in rig.bus.log('goals') if id == 3]
    assert max(goals) < 2100 + 10 * DEGREE
    assert goals[-1] < 2100 + 2 * DEGREE  # relieved: it does not burn
    assert 'blocks "elbow_flex"' in rig.arm.snapshot.reason
    rig.stream({'elbow_flex': -0.3}, 1.0)
    rig.bus.call('motor', id=3, blocked=None)
    rig.stream({'elbow_flex': 1.2}, 2.0)
    assert rig.arm.snapshot.joints['elbow_flex'].position == pytest.approx(1.2, abs=0.05)
    assert rig.arm.snapshot.reason == ''


@pytest.mark.slow
def test_commands_stay_within_the_recorded_range(rig):
    rig.arm.set_torque(True)
    rig.stream({'elbow_flex': 9.0, 'shoulder_pan': -9.0}, 3.5)
    state = rig.bus.state()
    for joint in rig.arm.calibration.joints:
        goals = [goal for _, id, goal in rig.bus.log('goals') if id == joint.profile.id]
        low, high = joint.tick(joint.lower), joint.tick(joint.upper)
        assert low - 1 <= min(goals)
        assert max(goals) <= high + 1
    assert state[3]['present'] > 3000


@pytest.mark.parametrize('command', [{'elbow_flex': math.nan}, {'elbow_flex': math.inf}, {}, {'elbow': 0.1}])
def test_a_wrong_command_is_rejected(rig, command):
    with pytest.raises(InputError, match='the command'):
        rig.arm.command(command)


# What goes wrong


def test_a_servo_that_does_not_answer_is_left_out_and_stops_the_arm(rig):
    rig.arm.set_torque(True)
    rig.bus.faults({'kind': 'missing', 'id': 4})
    rig.until(ArmState.FAULTED)
    assert 'wrist_flex' not in rig.arm.snapshot.joints
    assert 'no answer from "wrist_flex": check the cables' in rig.arm.snapshot.reason
    rig.bus.faults()
    rig.until(ArmState.HOLDING)


def test_a_servo_that_loses_its_torque_is_named_and_needs_its_owner(rig):
    rig.arm.set_torque(True)
    rig.dip(3)
    snapshot = rig.until(ArmState.FAULTED)
    assert 'servo 3 (elbow_flex) has lost its torque' in snapshot.reason
    rig.clock.sleep(0.3)
    assert not rig.bus.state()[3]['torque']
    assert rig.bus.state()[2]['torque']
    rig.arm.clear()
    assert rig.arm.snapshot.state is ArmState.HOLDING
    assert rig.bus.state()[3]['torque']


def test_a_jump_that_no_joint_can_make_is_not_believed(rig):
    rig.wait(lambda: rig.arm.snapshot.rate > 50)
    rig.bus.call('motor', id=3, actual=3000.0)
    rig.wait(lambda: 'elbow_flex' not in rig.arm.snapshot.joints)
    rig.wait(lambda: rig.arm.snapshot.joints.get('elbow_flex', NOWHERE).tick == 3000)
    rows = [snapshot.joints['elbow_flex'].tick for snapshot in rig.seen if 'elbow_flex' in snapshot.joints]
    assert set(rows) <= {2048, 3000}
    assert rig.arm.snapshot.faults['implausible position'] >= 2


class NOWHERE:
    tick = 0


@pytest.mark.slow
@pytest.mark.parametrize('stalled', [False, True])
def test_a_goal_moves_no_faster_than_its_joint_can_whatever_is_measured(rig, stalled, monkeypatch):
    rig.arm.set_torque(True)
    rig.stream({'elbow_flex': 0.0}, 0.5)
    send, count = SerialTransport.sync_write, itertools.count()

    def late(*arguments):
        if next(count) % 7 == 0:
            rig.clock.sleep(0.08)
        send(*arguments)

    if stalled:
        monkeypatch.setattr(SerialTransport, 'sync_write', late)
    rig.bus.call('motor', id=3, actual=2900.0, blocked=[2899.0, 2901.0])
    begin = rig.clock.now
    rig.stream({'elbow_flex': 0.0}, 0.5)
    assert max(snapshot.joints.get('elbow_flex', NOWHERE).tick for snapshot in rig.seen) > 2800
    goals = [(when, goal) for when, id, goal in rig.bus.log('goals', begin) if id == 3]
    (joint,) = [joint for joint in rig.profile.joints if joint.id == 3]
    assert max(goal for _, goal in goals) > 2100
    for (before, here), (after, there) in itertools.pairwise(goals):
        assert abs(there - here) <= 1.2 * joint.fastest / joint.unit * (after - before) + 1


@pytest.mark.slow
@pytest.mark.parametrize('beyond', [2.0, 4.0, 9.0])
def test_torque_moves_no_joint_into_its_range_by_more_than_a_degree(beyond):
    with emulated() as bus:
        place = bus.call('get', id=4, address=9, size=2) - beyond
        bus.call('motor', id=4, low=place, actual=place)
        with started(bus) as rig:
            rig.until(ArmState.PASSIVE)
            with contextlib.suppress(ArmError):
                rig.arm.set_torque(True)
            rig.clock.sleep(1.0)
            assert rig.arm.snapshot.state is (ArmState.HOLDING if beyond < 5.0 else ArmState.PASSIVE)
            assert abs(bus.state()[4]['actual'] - place) < 4096 / 360


@pytest.mark.slow
def test_torque_never_exceeds_its_limit():
    with driven(options=ArmOptions(torque_limit=0.1)) as rig:
        limits = []
        rig.bus.clock.at(rig.bus.clock.now, watch := lambda: limits.append(torque_limit(rig, watch)))
        rig.switch_on()
        rig.clock.sleep(2.0)
        assert {limit for on, limit in limits if on} == {100}


def torque_limit(rig, again):
    rig.bus.clock.at(rig.bus.clock.now + 0.002, again)
    return rig.bus.state()[1]['torque'], rig.bus.call('get', id=1, address=48, size=2)


def test_a_position_beyond_one_turn_is_told(rig):
    rig.bus.call('put', id=3, address=18, size=1, value=0x1C)  # counts on
    rig.bus.call('motor', id=3, high=1e9, actual=4200.0)
    rig.clock.sleep(0.5)
    assert rig.arm.snapshot.reason == (
        '"elbow_flex" is at tick 4200, beyond its turn of 0 to 4095: clear bit 4 of its phase, and calibrate it again'
    )


def test_requests_after_the_end_are_rejected(rig):
    rig.arm.stop()
    with pytest.raises(ArmError, match='has ended'):
        rig.arm.set_torque(True)


@pytest.mark.slow
@pytest.mark.parametrize('profile', ['omx_f', 'wx200'])
def test_arms_of_dynamixel_servos_follow_hold_and_are_taken_over(profile):
    with driven(profile) as rig:
        name = rig.profile.names[1]
        for id in rig.profile.ids:
            rig.bus.call('put', id=id, address=116, size=4, value=2500)
        rig.arm.set_torque(True)
        rig.clock.sleep(0.3)
        assert rig.tick(name) == pytest.approx(2048, abs=DEGREE / 2)
        rig.stream({name: 0.3}, 1.5)
        rig.until(ArmState.HOLDING)
        rig.wait(lambda: name in rig.arm.snapshot.joints)
        assert rig.arm.snapshot.joints[name].position == pytest.approx(0.3, abs=0.03)
        assert all(rig.bus.call('get', id=id, address=98, size=1) for id in rig.profile.ids), 'their watchdogs'
        rig.arm.set_torque(False)
        assert not any(state['torque'] for state in rig.bus.state().values())


def test_a_supply_that_becomes_too_strong_is_told_while_the_arm_is_held(rig):
    rig.arm.set_torque(True)
    rig.bus.call('volts', volts=15.0)
    rig.clock.sleep(0.5)
    assert 'reports voltage (allowed are 4.0 to 14.0 V: switch the supply off' in rig.arm.snapshot.reason
