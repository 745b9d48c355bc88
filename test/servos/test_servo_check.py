# SPDX-License-Identifier: Apache-2.0
"""ik_servo_check on the emulated bus: what its page says, and what moves."""

from __future__ import annotations

import json
import re
import signal
import sys
from types import SimpleNamespace

import pytest
from rig import emulated
from virtual_time import VirtualBus

from ik_node.servos.check.program import main

pytest.importorskip('serial')

SO101 = ('shoulder_pan', 'shoulder_lift', 'elbow_flex', 'wrist_flex', 'wrist_roll', 'gripper')
SO101_IDS = (1, 2, 3, 4, 5, 6)


@pytest.fixture
def bus():
    with emulated() as bus:
        yield bus


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path))
    monkeypatch.setenv('HF_LEROBOT_CALIBRATION', str(tmp_path / 'lerobot'))
    return tmp_path


@pytest.fixture
def check(capsys):
    """Run the program; return its exit code and what it printed, on one line."""

    def run(bus: VirtualBus, *given: str, profile: str = 'so101') -> tuple[int, str]:
        code = main(['--serial-port', bus.port, '--profile', profile, *given])
        output = capsys.readouterr()
        return code, ' '.join((output.out + output.err).split())

    return run


def stored(bus: VirtualBus) -> dict[int, list[int]]:
    """Return all that can be written of each servo."""
    return {id: [bus.call('get', id=id, address=at, size=1) for at in range(56)] for id in bus.state()}


def test_a_good_arm_can_be_driven_and_nothing_is_written(bus, check):
    before = stored(bus)
    code, page = check(bus)
    assert code == 0
    assert 'so101: Feetech servos at 1000000 baud' in page
    assert 'reads of 6 servos per second, no fault in 100' in page
    assert 'elbow_flex 2047.6 stops 2048 (0.0 deg) 2047 (0.0 deg) 1969 (-6.9 deg)' in page
    assert page.endswith('The arm can be driven.')
    assert 'Warnings' not in page
    assert stored(bus) == before
    assert bus.log('goals') == bus.log('torques') == []


@pytest.mark.slow
@pytest.mark.parametrize(('most', 'least', 'code', 'says'), [
    (8.0, 4.0, 1, 'switch the supply off'),
    (14.0, 4.0, 0, ''),
    (14.0, 12.5, 0, 'a stronger supply'),
])  # fmt: skip
def test_a_supply_for_other_servos_is_a_problem(bus, check, most, least, code, says):
    for id in SO101_IDS:
        bus.call('put', id=id, address=14, size=1, value=round(10 * most), keep=True)
        bus.call('put', id=id, address=15, size=1, value=round(10 * least), keep=True)
    found, page = check(bus)
    assert found == code
    assert says in page
    assert bool(says) == (f'the supply has 12.0 V, allowed are {least} to {most} V' in page)
    assert 'reports voltage' not in page


def test_servos_of_another_speed_protocol_or_id_are_found(bus, check):
    assert (
        'answered in the protocol of Feetech servos, the profile omx_f has Dynamixel' in check(bus, profile='omx_f')[1]
    )
    bus.call('put', id=3, address=5, size=1, value=9)
    assert 'servo 9 answered, but the profile so101 has no such id' in check(bus)[1]
    for id in (1, 2, 9, 4, 5, 6):
        bus.call('put', id=id, address=6, size=1, value=4)
    page = check(bus)[1]
    assert 'servos 1, 2, 4, 5, 6, 9 answered at 115200 baud, the profile so101 has 1000000' in page


def test_what_the_owner_should_know_is_a_warning(bus, check):
    bus.call('volts', volts=5.1)
    bus.call('alarms', id=1, bits=4)
    bus.call('put', id=2, address=1, size=1, value=9)
    bus.call('put', id=2, address=21, size=1, value=16)
    bus.call('put', id=3, address=63, size=1, value=60)
    bus.call('put', id=5, address=40, size=1, value=1)
    bus.faults({'kind': 'corrupt', 'share': 0.02})
    code, page = check(bus)
    assert code == 0
    assert 'servo 1 (shoulder_pan) reports temperature' in page
    assert 'different firmware (1: 3.10, 2: 3.9,' in page
    assert 'the supply has 5.1 V, as that of a leader arm' in page
    assert 'the P gain is 16 or less in servo 2, as LeRobot sets it' in page
    assert 'servo 3 (elbow_flex) has 60 degrees C' in page
    assert 'torque is on in servo 5 (wrist_roll)' in page
    assert re.findall(r' deg \d (on|off) \d\d', page) == ['off'] * 4 + ['on', 'off']
    assert 'the bus is not reliable' in page
    assert page.endswith('The arm can be driven, see the warnings.')


NEVER_GIVEN_IDS = [
    *(('motor', {'id': id, 'actual': 2048.0 + 10 * id}) for id in SO101_IDS[1:]),
    *(('put', {'id': id, 'address': 5, 'size': 1, 'value': 1}) for id in SO101_IDS[1:]),
]
SAME_ID = [
    ('put', {'id': 4, 'address': 63, 'size': 1, 'value': 0x55}),
    ('put', {'id': 4, 'address': 5, 'size': 1, 'value': 3}),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ('profile', 'calls', 'named'),
    [
        ('so101', [('power', {'on': False})], ['power supply']),
        (
            'so101',
            [('power', {'on': False, 'id': 4})],
            ['no answer from servo 4 (wrist_flex)', 'gripper 2048'],
        ),
        (
            'so101',
            [('put', {'id': 6, 'address': 33, 'size': 1, 'value': 1})],
            ['servo 6 (gripper)', 'mode 1'],
        ),
        ('so101', [('put', {'id': 3, 'address': 9, 'size': 2, 'value': 0})], ['elbow_flex: the zero']),
        ('so101', [('put', {'id': 2, 'address': 3, 'size': 2, 'value': 1284})], ['servo 2 ', 'model 1284']),
        ('so101', [('faults', {'faults': [{'kind': 'corrupt', 'id': 2}]})], ['answers from servo 2 ']),
        ('so101', SAME_ID, ['servo 3 (elbow_flex)', 'servo 4 (wrist_flex)', 'the id 3']),
        ('so101', NEVER_GIVEN_IDS, ['servos as delivered', 'id 1']),
        ('omx_f', [('volts', {'volts': 18.0})], ['18.0 V']),
        ('omx_f', [('alarms', {'id': 13, 'bits': 0x20})], ['servo 13 (joint3)', 'overload']),
        ('wx200', [('power', {'on': False, 'id': 3})], ['servo 3, which turns shoulder too']),
    ],
)
def test_what_keeps_the_arm_from_being_driven_is_named(check, profile, calls, named):
    with emulated(profile) as bus:
        for do, given in calls:
            bus.call(do, **given)
        code, page = check(bus, profile=profile)
    assert code == 1
    assert [name for name in named if name not in page] == []


def test_the_file_of_lerobot_is_compared_with_the_memory(bus, home, check):
    file = home / 'arm.json'
    entry = {'drive_mode': 0, 'homing_offset': 0, 'range_min': 1000, 'range_max': 3000}
    file.write_text(json.dumps({name: {**entry, 'id': id} for id, name in enumerate(SO101, 1)}))
    page = check(bus, '--calibration', str(file))[1]
    assert str(file) in page
    assert 'servo 3 (elbow_flex): the servo has range 865 to 3073 and offset 0, the file range 1000 to' in page


@pytest.mark.slow
@pytest.mark.parametrize('profile', ['so101', 'omx_f', 'koch'])
def test_a_wiggle_turns_one_joint_a_little_and_leaves_all_else_as_it_was(check, profile):
    with emulated(profile) as bus:
        id = sorted(bus.state())[2]
        goal = {'so101': (42, 2), 'omx_f': (116, 4), 'koch': (116, 4)}[profile]
        bus.call('put', id=id, address=goal[0], size=goal[1], value=1500)  # of an earlier program
        before = bus.state()
        registers = [bus.call('get', id=id, address=at, size=2) for at in (46, 48, 98, 100, 108, 112)]
        joint = {'so101': 'elbow_flex', 'omx_f': 'joint3', 'koch': 'joint_3'}[profile]
        code, page = check(bus, '--wiggle', joint, profile=profile)
        assert code == 0, page
        assert f'{joint} went +3' in page
        after = bus.state()
        assert before[id]['actual'] - 45 < after[id]['lowest'] < before[id]['actual'] - 25
        assert before[id]['actual'] + 25 < after[id]['highest'] < before[id]['actual'] + 45
        assert [values['torque'] for values in after.values()] == [False] * len(after)
        assert [bus.call('get', id=id, address=at, size=2) for at in (46, 48, 98, 100, 108, 112)] == registers
        for other in before:
            if other != id:
                assert after[other]['actual'] == before[other]['actual']


@pytest.mark.slow
def test_a_wiggle_stays_inside_the_recorded_range(bus, check):
    bus.call('motor', id=3, actual=3060.0)
    code, page = check(bus, '--wiggle', 'elbow_flex')
    assert code == 0
    assert 'elbow_flex went -' in page
    assert bus.state()[3]['highest'] <= 3073
    bus.call('put', id=3, address=11, size=2, value=2000)
    page = check(bus, '--wiggle', 'elbow_flex')[1]
    assert re.search('is at tick 30[56].*, its range is 873 to 1992: move it inside by hand', page)
    assert not any(values['torque'] for values in bus.state().values())


def test_a_wiggle_rejects_a_joint_that_its_servo_would_move_into_its_range(bus, check):
    place = bus.call('get', id=4, address=9, size=2) - 20.0
    bus.call('motor', id=4, low=place, actual=place)
    code, page = check(bus, '--wiggle', 'wrist_flex')
    assert code == 2
    assert re.search(r'servo 4 \(wrist_flex\) is at tick .*: move it inside by hand', page)
    assert bus.state()[4]['highest'] == place


def test_a_wiggle_rejects_a_joint_that_has_torque_or_no_answer(bus, check):
    bus.call('put', id=3, address=40, size=1, value=1)
    code, page = check(bus, '--wiggle', 'elbow_flex')
    assert code == 2
    assert 'servo 3 (elbow_flex) has torque: end the program that drives it' in page
    bus.faults({'kind': 'corrupt', 'id': 4})
    code, page = check(bus, '--wiggle', 'wrist_flex')
    assert code == 2
    assert bus.log('goals') == []


def test_a_blocked_joint_is_reported_and_released(bus, check):
    bus.call('motor', id=3, blocked=[2046.0, 2050.0])
    code, page = check(bus, '--wiggle', 'elbow_flex')
    assert code == 1
    assert 'it is blocked, or too heavy' in page
    assert not bus.state()[3]['torque']


def when_powered(bus, act):
    """Act once servo 3 has torque."""
    powered = bus.state()[3]['torque']
    bus.clock.at(bus.clock.now + 0.005, act if powered else lambda: when_powered(bus, act))


@pytest.mark.slow
@pytest.mark.parametrize('typed', [True, False])
def test_a_wiggle_begins_where_the_joint_is_after_the_prompt(bus, check, monkeypatch, typed):
    def prompt(_):
        bus.call('motor', id=3, actual=2138.0)  # it has sunk
        bus.call('watch')
        if not typed:
            raise EOFError
        return ''

    monkeypatch.setattr(sys, 'stdin', SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr('builtins.input', prompt)
    assert check(bus, '--wiggle', 'elbow_flex')[0] == (0 if typed else 130)
    assert bus.state()[3]['lowest'] > 2138.0 - 4.0 * 4096 / 360
    assert not bus.state()[3]['torque']


@pytest.mark.slow
@pytest.mark.parametrize('numbers', [[signal.SIGTERM], 15 * [signal.SIGINT]])
def test_an_interrupted_wiggle_leaves_no_torque(bus, check, numbers):
    limit = []

    def interrupt():
        limit.append(bus.call('get', id=3, address=48, size=2))
        for number in numbers:
            signal.raise_signal(number)

    when_powered(bus, interrupt)
    assert check(bus, '--wiggle', 'elbow_flex')[0] == 130
    assert not bus.state()[3]['torque']
    assert bus.call('get', id=3, address=48, size=2) == 1000 > limit[0]


@pytest.mark.slow
@pytest.mark.parametrize('lost', [('plug', {}), ('power', {'id': 3})])
def test_a_wiggle_that_loses_the_adapter_or_the_supply_says_what_is_left(bus, check, lost):
    when_powered(bus, lambda: bus.call(lost[0], on=False, **lost[1]))
    code, page = check(bus, '--wiggle', 'elbow_flex')
    assert code == 2
    assert 'servo 3 (elbow_flex)' in page.rpartition('error: ')[2]


@pytest.mark.slow
def test_live_shows_how_far_each_joint_was_moved_until_ctrl_c(bus, check):
    for after, act in (
        (5.0, lambda: bus.call('motor', id=3, actual=2500.0)),
        (10.0, lambda: bus.call('power', on=False, id=3)),
        (15.0, lambda: signal.raise_signal(signal.SIGINT)),
    ):
        bus.clock.at(bus.clock.now + after, act)
    code, page = check(bus, '--live')
    assert code == 0
    places = [page.index(one) for one in ('2048..2048 (0.0 deg)', '2048..2500 (39.7 deg)', 'no answer')]
    assert places == sorted(places)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('given', 'said'),
    [
        (['--serial-port', '/dev/ik_nothing'], '/dev/ik_nothing does not exist'),
        (['--serial-port', '/dev/null'], '/dev/null is not a serial port'),
        (['--profile', 'so100x'], 'did you mean "so100"'),
        (['--zeros', 'elbow_flex'], 'zeros must be ticks by joint'),
        (['--zeros', 'elbow_flx=2000'], '--zeros "elbow_flx" is not one of'),
        (['--serial-port', 'emulated', '--wiggle', 'elbow'], '--wiggle "elbow" is not one of'),
        (
            ['--serial-port', 'emulated', '--calibration', '/nothing.json'],
            'cannot read calibration /nothing.json',
        ),
    ],
)
def test_wrong_arguments_are_one_sentence(capsys, given, said):
    assert main(given) == 2
    assert said in capsys.readouterr().err


def test_the_option_of_earlier_versions_is_told_as_the_one_of_now(capsys):
    with pytest.raises(SystemExit):
        main(['--port', 'emulated'])
    assert 'argument --port: renamed to --serial-port' in capsys.readouterr().err


@pytest.mark.slow
def test_without_an_arm_the_emulated_one_is_checked(capsys):
    assert main(['--serial-port', 'emulated']) == 0
    assert 'The arm can be driven.' in capsys.readouterr().out
