# SPDX-License-Identifier: Apache-2.0
"""What protects servos: their memory, which only their owner changes, and a soft start."""

from __future__ import annotations

import os
import sys

import pytest
from rig import Rig, driven, emulated

from ik_node.servos.arm import torque
from ik_node.servos.arm.arm import ServoArm
from ik_node.servos.arm.states import ArmState
from ik_node.servos.bus.feetech import feetech
from ik_node.servos.bus.serial_transport import SerialTransport
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.calibration.zeros import calibrate
from ik_node.servos.check.program import main

DEGREE = 4096 / 360  # ticks
GRIPPER = {
    'max_torque': (16, 2, 1000, 500),
    'protection_current': (28, 2, 511, 250),
    'overload': (36, 1, 80, 25),
}
LIMIT = {'address': 48, 'size': 2}


@pytest.fixture
def bus(monkeypatch, tmp_path):
    """An arm as the factory delivers it, with the gain that LeRobot writes."""
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    monkeypatch.setenv('HF_LEROBOT_CALIBRATION', str(tmp_path / 'lerobot'))
    with emulated('so101') as bus:
        for address, size, value, _ in GRIPPER.values():
            bus.call('put', id=6, address=address, size=size, value=value, keep=True)
        for id in range(1, 7):
            bus.call('put', id=id, address=21, size=1, value=16, keep=True)
        yield bus


def memory(bus):
    return {id: [bus.call('get', id=id, address=at, size=1) for at in range(40)] for id in bus.state()}


def check(bus, capsys, monkeypatch, *given, typed='yes\n'):
    """Run ik_servo_check; return its exit code and what it printed, on one line."""
    read, write = os.pipe()
    os.write(write, typed.encode())
    os.close(write)
    with open(read, encoding='utf-8') as stdin:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, 'stdin', stdin)
        code = main(['--serial-port', bus.port, *given])
    output = capsys.readouterr()
    return code, ' '.join((output.out + output.err).split())


@pytest.mark.slow
def test_a_gripper_that_can_burn_out_and_a_weak_gain_are_told(bus, capsys, monkeypatch):
    before = memory(bus)
    _, said = check(bus, capsys, monkeypatch)
    assert 'servo 6 (gripper) is a gripper with max_torque 1000 (at most 500)' in said
    assert 'overload_torque 80 (at most 25)' in said
    assert 'the P gain is 16 or less in servo 1, 2, 3, 4, 5, 6' in said
    assert memory(bus) == before


def test_protection_is_stored_on_request_and_outlasts_the_power(bus, capsys, monkeypatch):
    before = memory(bus)
    code, said = check(bus, capsys, monkeypatch, '--protect', typed='no\n')
    assert code == 1
    assert 'Nothing was stored' in said
    assert memory(bus) == before
    code, said = check(bus, capsys, monkeypatch, '--protect')
    assert code == 0
    assert 'Stored in the servos' in said
    bus.call('power', on=False)
    bus.call('power', on=True)
    for address, size, _, wanted in GRIPPER.values():
        assert bus.call('get', id=6, address=address, size=size) == wanted
    assert {bus.call('get', id=id, address=21, size=1) for id in range(1, 7)} == {32}
    assert {bus.call('get', id=id, address=55, size=1) for id in range(1, 7)} == {1}  # locked again
    changed = {at for id, bytes_ in memory(bus).items() for at, byte in enumerate(bytes_) if byte != before[id][at]}
    assert changed <= {16, 17, 21, 28, 29, 36}
    code, said = check(bus, capsys, monkeypatch, '--protect')
    assert code == 0
    assert 'there is nothing to store' in said


def test_nothing_is_stored_in_servos_with_torque(bus, capsys, monkeypatch):
    bus.call('put', id=6, address=40, size=1, value=1)
    before = memory(bus)
    code, said = check(bus, capsys, monkeypatch, '--protect')
    assert code != 0
    assert 'servo 6 (gripper) has torque: switch it off first' in said
    assert memory(bus) == before


@pytest.mark.slow
def test_the_driver_changes_nothing_in_the_memory(bus):
    before = memory(bus)
    rig = Rig(bus, 'so101', None)
    rig.arm.start()
    rig.until(ArmState.PASSIVE)
    rig.arm.set_torque(True)
    rig.stream({'elbow_flex': 0.3, 'gripper': 0.4}, 1.5)
    rig.arm.hold()
    rig.arm.clear()
    rig.arm.stop(release=True)
    assert memory(bus) == before
    assert {bus.call('get', id=id, address=55, size=1) for id in range(1, 7)} == {1}


@pytest.mark.slow
def test_the_torque_begins_low_and_grows_to_what_each_joint_may_use():
    profile = read_profile('so101')
    with emulated('so101') as bus:
        transport = SerialTransport(bus.port, 1_000_000, feetech)
        arm = ServoArm(lambda: transport, profile, lambda memory: calibrate(profile, memory))
        arm.request_torque(True)
        arm.step()
        assert [bus.call('get', id=id, **LIMIT) for id in profile.ids] == [200] * 5 + [100]
        seen = []
        end = bus.clock.monotonic() + 5.0
        while bus.call('get', id=1, **LIMIT) < 1000:
            assert bus.clock.monotonic() < end
            arm.step()
            seen.append(bus.call('get', id=1, **LIMIT))
            bus.clock.sleep(0.01)
        transport.close()
        assert seen == sorted(seen)
        assert [bus.call('get', id=id, **LIMIT) for id in profile.ids] == [1000] * 5 + [500]


@pytest.mark.slow
def test_an_arm_that_was_moved_by_hand_is_held_where_it_is_then():
    with driven() as rig:
        rig.arm.set_torque(True)
        rig.stream({'elbow_flex': 0.3}, 1.0)
        rig.arm.set_torque(False)
        for id, tick in ((1, 1700.0), (3, 2500.0)):
            rig.bus.call('motor', id=id, actual=tick)
        rig.wait(lambda: abs(rig.arm.snapshot.ticks.get('elbow_flex', 0) - 2500) < 10)
        rig.arm.set_torque(True)
        rig.clock.sleep(1.2)
        assert rig.tick('shoulder_pan') == pytest.approx(1700, abs=DEGREE / 2)
        assert rig.tick('elbow_flex') == pytest.approx(2500, abs=DEGREE / 2)


def test_while_torques_grow_the_arm_has_that_of_the_weakest(monkeypatch):
    written = []
    monkeypatch.setattr(torque, 'limit_torque', written.append)
    arm = torque.Torque([], 0.9)
    arm.grow_from([('a', 0.2), ('b', 0.5)])
    assert arm.grow(arm.since + 0.3) == pytest.approx(0.5)
    assert dict(written[0]) == pytest.approx({'a': 0.5, 'b': 0.8})
    assert arm.grow(arm.since + 0.6) == pytest.approx(0.8)
