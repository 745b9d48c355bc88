# SPDX-License-Identifier: Apache-2.0
"""ik_servo_check --record on the emulated bus: an arm as delivered becomes one that can be driven."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from rig import emulated
from virtual_time import VirtualBus

from ik_node.servos.arm.registers import ArmError
from ik_node.servos.bus.models import model_named
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.calibration.recorded import Recorded, read_calibration
from ik_node.servos.check import record
from ik_node.servos.check.program import main
from ik_node.servos.check.record import Travel, recorded_from
from ik_node.servos.check.report import ServoReport

pytest.importorskip('serial')

SO101 = read_profile('so101')
ZERO = {1: 300.0, 2: 3900.0, 3: 4000.0, 4: 2048.0, 5: 3000.0, 6: 100.0}  # actual ticks: horns put on anyhow
BY_EYE = 25.0  # [ticks] that the owner is off


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    monkeypatch.setenv('HF_LEROBOT_CALIBRATION', str(tmp_path / 'lerobot'))


@pytest.fixture
def bus():
    """An SO-101 as delivered, held by hand."""
    with emulated() as bus:
        for joint in SO101.joints:
            low, high = joint.stops or (-9.0, 9.0)
            at = ZERO[joint.id]
            stops = {'low': at + low / joint.unit, 'high': at + high / joint.unit}
            bus.call('motor', id=joint.id, actual=at + BY_EYE, **stops)
            for address, value in ((9, 0), (11, 4095), (31, 0)):
                bus.call('put', id=joint.id, address=address, size=2, value=value, keep=True)
        yield bus


def to_the_stops(bus: VirtualBus, *ids: int) -> Iterator[tuple[()]]:
    """Carry joints to both stops; yields wherever the program measures."""
    for joint in SO101.joints:
        for stop in (joint.stops or (-4.0, 4.0)) * (joint.id in ids):
            place, to = bus.state()[joint.id]['actual'], ZERO[joint.id] + stop / joint.unit
            while abs(to - place) > 0.1:
                place += min(max(to - place, -1000.0), 1000.0)
                bus.call('motor', id=joint.id, actual=place)
                yield ()
                yield ()


@pytest.fixture
def recorded(bus, tmp_path, monkeypatch, capsys):
    """Record: hand moves the arm, then the lines are typed; the exit code and what is printed."""

    def run(hand: Iterator[object], *lines: str) -> tuple[int, str]:
        typed = iter(lines)

        def select(*_: object) -> tuple[object]:
            bus.clock.sleep(record.PAUSE)
            return (next(hand, True),)

        for module in (record, record):
            monkeypatch.setattr(module, 'line', lambda: next(typed, ''))
        monkeypatch.setattr(record, 'select', SimpleNamespace(select=select))
        monkeypatch.setattr(sys, 'stdin', SimpleNamespace(fileno=lambda: 0))
        code = main(['--serial-port', bus.port, '--record', str(tmp_path / 'arm.json')])
        return code, ''.join(capsys.readouterr())

    return run


@pytest.mark.slow
def test_an_arm_as_delivered_is_calibrated(bus, recorded, tmp_path, capsys):
    assert main(['--serial-port', bus.port]) == 1
    code, said = recorded(to_the_stops(bus, *SO101.ids), '\n', '\n', 'yes\n')
    assert code == 0, said
    assert [bus.call('get', id=id, address=55, size=1) for id in SO101.ids] == [1] * 6  # locked again
    bus.call('power', on=False)
    bus.call('power', on=True)
    for joint in SO101.joints:
        bus.call('motor', id=joint.id, actual=ZERO[joint.id])
        near = BY_EYE + 4 if joint.full_turn else 4  # the play of the gears
        expected = {6: 0.2 / joint.unit + bus.call('get', id=6, address=9, size=2)}.get(joint.id, 2047)
        assert bus.state()[joint.id]['present'] == pytest.approx(expected, abs=near)
    path = tmp_path / 'arm.json'
    assert main(['--serial-port', bus.port, '--calibration', str(path)]) == 0
    assert 'Warnings' not in capsys.readouterr().out
    assert set(read_calibration(path, SO101)) == set(SO101.names)
    assert not bus.log('torques')


@pytest.mark.slow
@pytest.mark.parametrize('typed', [['\n'], ['\n', '\n'], ['\n', '\n', 'no\n']])
def test_without_a_yes_nothing_is_stored(bus, recorded, tmp_path, typed):
    assert recorded(to_the_stops(bus, *SO101.ids), *typed)[0] == 1
    assert not (tmp_path / 'arm.json').exists()
    assert [bus.call('get', id=id, address=31, size=2) for id in SO101.ids] == [0] * 6


def test_a_joint_that_was_not_moved_or_does_not_answer_is_named(bus, recorded, tmp_path):
    code, said = recorded(to_the_stops(bus, 1), '\n', '\n')
    assert code == 2
    assert 'servo 2 (shoulder_lift)' in said

    def cut() -> Iterator[tuple[()]]:
        bus.call('power', on=False, id=4)
        while True:
            yield ()

    code, said = recorded(cut(), '\n')
    assert code == 2
    assert 'servo 4 (wrist_flex)' in said
    assert not (tmp_path / 'arm.json').exists()


def test_an_arm_with_torque_and_a_file_that_exists_are_rejected(bus, tmp_path, capsys):
    path = tmp_path / 'arm.json'
    path.write_text('{}')
    assert main(['--serial-port', bus.port, '--record', str(path)]) == 2
    assert 'exists already: choose another file' in capsys.readouterr().err
    assert main(['--serial-port', bus.port, '--record', str(tmp_path / 'none' / 'arm.json')]) == 2
    bus.call('put', id=5, address=40, size=1, value=1)
    assert main(['--serial-port', bus.port, '--record', str(tmp_path / 'other.json')]) == 2
    assert 'servo 5 (wrist_roll) has torque' in capsys.readouterr().err


def _finding(name: str, profile: str, recorded: Recorded, mode: int) -> ServoReport:
    joint = next(joint for joint in read_profile(profile).joints if joint.name == name)
    return ServoReport(None, joint, model_named(joint.model), {'operating_mode': mode}, recorded=recorded)


def _travel(*ticks: int) -> Travel:
    travel = Travel(ticks[0])
    for tick in ticks:
        travel.add(tick % 4096)
    return travel


def test_the_offset_has_the_sign_of_the_servo():
    delivered = Recorded(0, 4095, 0)
    koch = recorded_from(_finding('joint_3', 'koch', delivered, 4), _travel(3000, 3500, 4500, 3000, 2500))
    assert koch == Recorded(2500 - 953, 4500 - 953, -953)  # present = actual + offset
    lift = recorded_from(_finding('shoulder_lift', 'so101', delivered, 0), _travel(3000, 4100, 3000, 2000))
    assert lift == Recorded(2000 - 953, 4100 - 953, 953)  # present = actual - offset


def test_a_joint_without_stops_is_not_taken_for_one_as_delivered():
    roll = _finding('wrist_roll', 'so101', Recorded(0, 4095, 0), 0)
    assert recorded_from(roll, _travel(2047, 3000)) == Recorded(0, 4095, 1)
    assert recorded_from(roll, _travel(2000)) == Recorded(0, 4095, -47)


def test_a_factory_zero_stays():
    found = recorded_from(_finding('joint2', 'omx_f', Recorded(0, 4095, 7), 3), _travel(2048, 3129, 2048, 830))
    assert found == Recorded(830, 3129, 7)


def test_an_offset_that_a_servo_cannot_have_is_an_error():
    with pytest.raises(ArmError, match='more than the 1024 that'):
        recorded_from(_finding('joint_3', 'koch', Recorded(0, 4095, 0), 3), _travel(200, 2000))
    with pytest.raises(ArmError, match='not within one turn'):
        recorded_from(_finding('shoulder_lift', 'so101', Recorded(0, 4095, 0), 0), _travel(0, 1500, 2100, 500))
