# SPDX-License-Identifier: Apache-2.0
"""Registers: signs, ranges and units, and the tables beside those of the makers' own software."""

from itertools import pairwise
from math import pi
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ik_node.errors import InputError
from ik_node.servos.bus.models import MODELS, TICKS_PER_TURN, Sign, model_named, model_numbered

REGISTERS = [(model, register) for model in MODELS for register in model.registers.values()]
STS = model_named('sts3215')
# The names of ROBOTIS.
ROBOTIS = {
    'model': 'Model Number', 'firmware': 'Firmware Version', 'id': 'ID', 'baud': 'Baud Rate',
    'return_delay': 'Return Delay Time', 'secondary_id': 'Secondary(Shadow) ID',
    'max_temperature': 'Temperature Limit', 'max_voltage': 'Max Voltage Limit',
    'min_voltage': 'Min Voltage Limit', 'pwm_limit': 'PWM Limit', 'status_level': 'Status Return Level',
    'status': 'Hardware Error Status', 'd_gain': 'Position D Gain', 'i_gain': 'Position I Gain',
    'p_gain': 'Position P Gain', 'torque_limit': 'Goal PWM', 'present_voltage': 'Present Input Voltage',
}  # fmt: skip
RUSTYPOT = {
    'firmware_major': 'firmware_major_version', 'firmware_minor': 'firmware_minor_version',
    'baud': 'baudrate', 'return_delay': 'return_delay_time', 'status_level': 'response_status_level',
    'max_temperature': 'max_temperature_limit', 'max_voltage': 'max_voltage_limit',
    'min_voltage': 'min_voltage_limit', 'max_torque': 'max_torque_limit', 'shutdown': 'unloading_condition',
    'p_gain': 'p_coefficient', 'd_gain': 'd_coefficient', 'i_gain': 'i_coefficient',
    'start_force': 'minimum_startup_force', 'profile_acceleration': 'acceleration',
    'profile_velocity': 'goal_velocity',
}  # fmt: skip


@given(st.sampled_from(REGISTERS), st.data())
def test_counts_come_back(case, data):
    _, register = case
    count = data.draw(st.integers(*register.range))
    assert register.decode(register.encode(count)) == count


@given(st.sampled_from(REGISTERS), st.data())
def test_all_bytes_are_a_count_in_the_range_or_have_bits_that_mean_nothing(case, data):
    _, register = case
    count = register.decode(data.draw(st.binary(min_size=register.size, max_size=register.size)))
    least, most = register.range
    assert least <= count <= most


@given(st.sampled_from(REGISTERS), st.data())
def test_quantities_are_rounded_to_the_nearest_count(case, data):
    _, register = case
    count = data.draw(st.integers(*register.range))
    off = data.draw(st.floats(-0.49, 0.49))
    assert register.count((count + off) * register.scale) == count


@pytest.mark.parametrize(
    ('model', 'name', 'data', 'count'),
    [
        ('sts3215', 'present_position', '1805', 1304),
        ('sts3215', 'present_position', '0580', -5),
        ('sts3215', 'present_load', '0a04', -10),
        ('sts3215', 'homing_offset', 'ff0f', -2047),
        ('sts3215', 'min_position_limit', '0080', 0x8000),
        ('xl330-m288', 'present_position', 'fbffffff', -5),
        ('xl330-m288', 'bus_watchdog', 'ff', -1),
        ('xl430-w250', 'present_load', '18fc', -1000),
    ],
)
def test_signs(model, name, data, count):
    register = model_named(model)[name]
    assert register.decode(bytes.fromhex(data)) == count
    assert register.encode(count) == bytes.fromhex(data)


@pytest.mark.parametrize('model', MODELS, ids=lambda model: model.name)
def test_no_registers_overlap(model):
    spans = sorted((register.address, register.size) for register in model.registers.values())
    assert all(address + size <= following for (address, size), (following, _) in pairwise(spans))


@pytest.mark.parametrize('model', MODELS, ids=lambda model: model.name)
def test_one_read_has_all_that_is_measured(model):
    address, size = model.measured
    counts = model.decode(address, bytes(size))
    effort = 'present_load' if 'present_load' in model.registers else 'present_current'
    assert {'present_position', 'present_velocity', effort, 'present_voltage', 'present_temperature'} <= {*counts}
    assert model_numbered(model.number) is model


def test_a_block_is_decoded():
    block = bytes.fromhex('1805 0580 0a04 79 1e 00 20 01 0000 6400'.replace(' ', ''))
    assert STS.decode(56, block) == {
        'present_position': 1304,
        'present_velocity': -5,
        'present_load': -10,
        'present_voltage': 121,
        'present_temperature': 30,
        'status': 0x20,
        'moving': 1,
        'present_current': 100,
    }
    assert STS.conditions_of(0x21) == ['voltage', 'overload']


@pytest.mark.parametrize('count', [32768, -32768, 2**40])
def test_counts_outside_the_range_are_rejected(count):
    with pytest.raises(InputError, match='goal_position can be -32767 to 32767'):
        STS['goal_position'].encode(count)


@pytest.mark.parametrize('quantity', [float('nan'), float('inf'), -float('inf'), 1e300])
def test_quantities_that_are_no_count_are_rejected(quantity):
    with pytest.raises(InputError):
        STS['goal_position'].count(quantity)


def test_what_is_not_known_is_named():
    with pytest.raises(InputError, match='goal_position'):
        STS['goal_positon']
    with pytest.raises(InputError, match='sts3215'):
        model_named('sts3216')
    with pytest.raises(InputError, match='present_position has 2 bytes, but got 4'):
        STS['present_position'].decode(bytes(4))
    assert model_numbered(1) is None


def robotis_table(name):
    """Return registers of ROBOTIS' own software by name, and the units that it states."""
    sdk = pytest.importorskip('dynamixel_easy_sdk')
    path = Path(sdk.__file__).parent / 'control_table' / f'{name.replace("-", "_")}.model'
    _, units, registers = (part.splitlines() for part in path.read_text().split('[')[1:])
    rows = [line.split('\t') for line in registers[2:] if line.strip()]
    signs = [line.split('\t') for line in units[2:] if line.strip()]
    return (
        {row[2]: (int(row[0]), int(row[1])) for row in rows},
        {row[0]: (float(row[1]), row[2], row[3]) for row in signs},
    )


@pytest.mark.parametrize('model', MODELS[1:], ids=lambda model: model.name)
def test_the_tables_are_those_of_robotis(model):
    registers, units = robotis_table(model.name)
    for name, register in model.registers.items():
        theirs = ROBOTIS.get(name, name.replace('_', ' ').title())
        assert registers[theirs] == (register.address, register.size), name
        scale, unit, sign = units.get(theirs, (0, '', ''))
        if sign:
            assert (register.sign is not Sign.NONE) == (sign == 'signed'), name
        if unit == 'rad/s':
            assert register.scale * 2 * pi / TICKS_PER_TURN == pytest.approx(scale, rel=0.002)


def test_the_table_of_the_sts3215_is_that_of_rustypot():
    rustypot = pytest.importorskip('rustypot')
    theirs = {row.name: row for row in rustypot.Sts3215PyController.definition().registers()}
    for name, register in STS.registers.items():
        row = theirs[RUSTYPOT.get(name, name)]
        assert (row.addr, row.size) == (register.address, register.size), name
        if name != 'present_current':  # the sign bit is only in Feetech's own library
            assert (row.sign_bit or 0) == register.sign.value, name
        assert ('Write' in str(row.access)) == (register.access.value != 'read'), name
