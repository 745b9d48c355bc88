# SPDX-License-Identifier: Apache-2.0
"""The servos that are known: Feetech STS3215, and Dynamixel X of the series 330, 430 and 540.

What both kinds have bears one name. In position mode profile_velocity and profile_acceleration limit the
motion to the goal, and torque_limit limits how hard the servo pushes (PWM). One turn has 4096 ticks.
Sources: Feetech's memory table for STS servos; ROBOTIS e-Manual, control tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import pi

from ik_node.errors import InputError, join_names

from .dynamixel import dynamixel
from .feetech import feetech
from .packets import Codec


class Sign(Enum):
    """How a register has negative numbers: not at all, two's complement, or sign-magnitude with that bit."""

    NONE = 0
    TWOS_COMPLEMENT = -1
    BIT_10 = 10
    BIT_11 = 11
    BIT_15 = 15


class Access(Enum):
    """READ: the servo writes it. RAM: lost with the power. EEPROM: kept, and worn by writing."""

    READ = 'read'
    RAM = 'RAM'
    EEPROM = 'EEPROM'


@dataclass(frozen=True)
class Register:
    """A register: size [bytes], low byte first. scale: unit per count, unit '' for codes, bits and gains."""

    name: str
    address: int
    size: int
    access: Access
    sign: Sign = Sign.NONE
    unit: str = ''
    scale: float = 1.0

    @property
    def range(self) -> tuple[int, int]:
        """The least and the largest count that the register can have."""
        bits = 8 * self.size
        if self.sign is Sign.NONE:
            return 0, 2**bits - 1
        if self.sign is Sign.TWOS_COMPLEMENT:
            return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        high = 2**self.sign.value - 1
        return -high, high

    def decode(self, data: bytes) -> int:
        """Return the count that data have; raises InputError if they are not data of this register."""
        if len(data) != self.size:
            raise InputError(f'{self.name} has {self.size} bytes, but got {len(data)}')
        count = int.from_bytes(data, 'little', signed=self.sign is Sign.TWOS_COMPLEMENT)
        if self.sign in (Sign.NONE, Sign.TWOS_COMPLEMENT):
            return count
        bit: int = self.sign.value
        size = count & (1 << bit) - 1
        return -size if count >> bit & 1 else size

    def encode(self, count: int) -> bytes:
        """Return the data of a count; raises InputError if the register cannot have it."""
        low, high = self.range
        if not low <= count <= high:
            raise InputError(f'{self.name} can be {low} to {high}, but not {count}')
        if self.sign not in (Sign.NONE, Sign.TWOS_COMPLEMENT) and count < 0:
            count = -count | 1 << self.sign.value
        return count.to_bytes(self.size, 'little', signed=self.sign is Sign.TWOS_COMPLEMENT)

    def quantity(self, count: int) -> float:
        """Return a count in the unit of the register."""
        return count * self.scale

    def count(self, quantity: float) -> int:
        """Return the count nearest to a quantity in the unit of the register; InputError if there is none."""
        counts = quantity / self.scale
        if not abs(counts) < 2**32:
            raise InputError(f'{self.name} cannot be {quantity} {self.unit}')
        return round(counts)


@dataclass(frozen=True)
class ServoModel:
    """A model of a servo: its number on the bus, codec and registers by name.

    homing_sign: present position = actual position + homing_sign * homing offset [ticks].
    measured: address and size of what is read in each cycle, with one sync read.
    position_modes: values of operating_mode in which goal_position counts.
    conditions: what the bits of the register status mean. stall [Nm]: its largest torque. stiffness: share
    of that by tick of position error and by count of the P gain.
    """

    name: str
    number: int
    codec: Codec
    registers: Mapping[str, Register]
    homing_sign: int
    measured: tuple[int, int]
    position_modes: frozenset[int]
    conditions: Mapping[int, str]
    stall: float
    stiffness: float

    def compliance(self, p_gain: int) -> float:
        """Return by how much the servo yields to a torque [rad/Nm] with this P gain [counts]."""
        return 2.0 * pi / 4096.0 / (self.stall * self.stiffness * max(p_gain, 1))

    def __getitem__(self, name: str) -> Register:
        """Return a register; raises InputError that names the model's registers."""
        if name not in self.registers:
            raise InputError(f'{self.name} has no register {name}, but {join_names(self.registers, name)}')
        return self.registers[name]

    def decode(self, address: int, data: bytes) -> dict[str, int]:
        """Return the counts of all registers that data from an address on contain as a whole."""
        end = address + len(data)
        return {
            name: register.decode(data[register.address - address :][: register.size])
            for name, register in self.registers.items()
            if address <= register.address and register.address + register.size <= end
        }

    def conditions_of(self, status: int) -> list[str]:
        """Return in words what the bits of the register status report."""
        return [text for bit, text in self.conditions.items() if status & bit]


def table(*registers: Register) -> dict[str, Register]:
    """Return registers by name; raises InputError if two of them have one name."""
    named = {register.name: register for register in registers}
    if len(named) != len(registers):
        raise InputError('two registers have the same name')
    return named


TICKS_PER_TURN = 4096
RADIANS_PER_TICK = 2 * pi / TICKS_PER_TURN

# Bits of the register phase (STS).
PHASE_SPEED_0_IS_FASTEST = 0x08  # profile_velocity 0 means as fast as possible; without it: stop
PHASE_MULTI_TURN = 0x10  # positions go on beyond one turn

_RPM = TICKS_PER_TURN / 60  # [ticks/s]
_DYNAMIXEL_SPEED = 0.229 * _RPM  # [ticks/s] per count
_DYNAMIXEL_ACCELERATION = 214.577 * TICKS_PER_TURN / 3600  # [ticks/s^2] per count

_READ, _RAM, _EEPROM = Access.READ, Access.RAM, Access.EEPROM

_STS = table(
    Register('firmware_major', 0, 1, _READ),
    Register('firmware_minor', 1, 1, _READ),
    Register('model', 3, 2, _READ),
    Register('id', 5, 1, _EEPROM),
    Register('baud', 6, 1, _EEPROM),
    Register('return_delay', 7, 1, _EEPROM, Sign.NONE, 's', 2e-6),
    Register('status_level', 8, 1, _EEPROM),
    Register('min_position_limit', 9, 2, _EEPROM, Sign.NONE, 'tick'),
    Register('max_position_limit', 11, 2, _EEPROM, Sign.NONE, 'tick'),
    Register('max_temperature', 13, 1, _EEPROM, Sign.NONE, 'degC'),
    Register('max_voltage', 14, 1, _EEPROM, Sign.NONE, 'V', 0.1),
    Register('min_voltage', 15, 1, _EEPROM, Sign.NONE, 'V', 0.1),
    Register('max_torque', 16, 2, _EEPROM, Sign.NONE, '1', 0.001),  # copied to torque_limit at power-up
    Register('phase', 18, 1, _EEPROM),
    Register('shutdown', 19, 1, _EEPROM),
    Register('p_gain', 21, 1, _EEPROM),
    Register('d_gain', 22, 1, _EEPROM),
    Register('i_gain', 23, 1, _EEPROM),
    Register('start_force', 24, 2, _EEPROM, Sign.NONE, '1', 0.001),
    Register('cw_dead_zone', 26, 1, _EEPROM, Sign.NONE, 'tick'),
    Register('ccw_dead_zone', 27, 1, _EEPROM, Sign.NONE, 'tick'),
    Register('protection_current', 28, 2, _EEPROM, Sign.NONE, 'A', 0.0065),
    Register('angular_resolution', 30, 1, _EEPROM),
    Register('homing_offset', 31, 2, _EEPROM, Sign.BIT_11, 'tick'),
    Register('operating_mode', 33, 1, _EEPROM),  # 0 position, 1 speed, 2 PWM, 3 steps
    Register('protective_torque', 34, 1, _EEPROM, Sign.NONE, '1', 0.01),
    Register('protection_time', 35, 1, _EEPROM, Sign.NONE, 's', 0.01),
    Register('overload_torque', 36, 1, _EEPROM, Sign.NONE, '1', 0.01),
    Register('torque_enable', 40, 1, _RAM),  # 128 makes the present position 2048, in the EEPROM: never write it
    Register('profile_acceleration', 41, 1, _RAM, Sign.NONE, 'tick/s^2', 100.0),  # 0: no limit
    Register('goal_position', 42, 2, _RAM, Sign.BIT_15, 'tick'),
    Register('goal_time', 44, 2, _RAM),
    Register('profile_velocity', 46, 2, _RAM, Sign.BIT_15, 'tick/s'),
    Register('torque_limit', 48, 2, _RAM, Sign.NONE, '1', 0.001),
    Register('lock', 55, 1, _RAM),  # 0: what is written to the EEPROM is kept
    Register('present_position', 56, 2, _READ, Sign.BIT_15, 'tick'),
    Register('present_velocity', 58, 2, _READ, Sign.BIT_15, 'tick/s'),
    Register('present_load', 60, 2, _READ, Sign.BIT_10, '1', 0.001),
    Register('present_voltage', 62, 1, _READ, Sign.NONE, 'V', 0.1),
    Register('present_temperature', 63, 1, _READ, Sign.NONE, 'degC'),
    Register('status', 65, 1, _READ),
    Register('moving', 66, 1, _READ),
    Register('present_current', 69, 2, _READ, Sign.BIT_15, 'A', 0.0065),
)

_X = (
    Register('model', 0, 2, _READ),
    Register('firmware', 6, 1, _READ),
    Register('id', 7, 1, _EEPROM),
    Register('baud', 8, 1, _EEPROM),
    Register('return_delay', 9, 1, _EEPROM, Sign.NONE, 's', 2e-6),
    Register('drive_mode', 10, 1, _EEPROM),  # bit 0: reversed, bit 2: profiles are times
    Register('operating_mode', 11, 1, _EEPROM),  # 0 current, 1 velocity, 3 position, 4 extended, 5 with current, 16 PWM
    Register('secondary_id', 12, 1, _EEPROM),
    Register('homing_offset', 20, 4, _EEPROM, Sign.TWOS_COMPLEMENT, 'tick'),
    Register('max_temperature', 31, 1, _EEPROM, Sign.NONE, 'degC'),
    Register('max_voltage', 32, 2, _EEPROM, Sign.NONE, 'V', 0.1),
    Register('min_voltage', 34, 2, _EEPROM, Sign.NONE, 'V', 0.1),
    Register('pwm_limit', 36, 2, _EEPROM, Sign.NONE, '1', 1 / 885),
    Register('velocity_limit', 44, 4, _EEPROM, Sign.NONE, 'tick/s', _DYNAMIXEL_SPEED),
    Register('max_position_limit', 48, 4, _EEPROM, Sign.NONE, 'tick'),
    Register('min_position_limit', 52, 4, _EEPROM, Sign.NONE, 'tick'),
    Register('shutdown', 63, 1, _EEPROM),
    Register('torque_enable', 64, 1, _RAM),
    Register('status_level', 68, 1, _RAM),
    Register('status', 70, 1, _READ),  # hardware error status; only a reboot clears it
    Register('d_gain', 80, 2, _RAM),
    Register('i_gain', 82, 2, _RAM),
    Register('p_gain', 84, 2, _RAM),
    Register('bus_watchdog', 98, 1, _RAM, Sign.TWOS_COMPLEMENT, 's', 0.02),  # 0: off, -1: has stopped the servo
    Register('torque_limit', 100, 2, _RAM, Sign.TWOS_COMPLEMENT, '1', 1 / 885),  # goal PWM
    Register('goal_velocity', 104, 4, _RAM, Sign.TWOS_COMPLEMENT, 'tick/s', _DYNAMIXEL_SPEED),
    Register('profile_acceleration', 108, 4, _RAM, Sign.NONE, 'tick/s^2', _DYNAMIXEL_ACCELERATION),  # 0: no limit
    Register('profile_velocity', 112, 4, _RAM, Sign.NONE, 'tick/s', _DYNAMIXEL_SPEED),  # 0: no limit
    Register('goal_position', 116, 4, _RAM, Sign.TWOS_COMPLEMENT, 'tick'),
    Register('moving', 122, 1, _READ),
    Register('present_velocity', 128, 4, _READ, Sign.TWOS_COMPLEMENT, 'tick/s', _DYNAMIXEL_SPEED),
    Register('present_position', 132, 4, _READ, Sign.TWOS_COMPLEMENT, 'tick'),
    Register('present_voltage', 144, 2, _READ, Sign.NONE, 'V', 0.1),
    Register('present_temperature', 146, 1, _READ, Sign.NONE, 'degC'),
)

_WITH_LOAD = table(*_X, Register('present_load', 126, 2, _READ, Sign.TWOS_COMPLEMENT, '1', 0.001))


def _with_current(ampere: float) -> dict[str, Register]:
    """Return the registers of an X servo that measures its current, with ampere per count."""
    return table(
        *_X,
        Register('current_limit', 38, 2, _EEPROM, Sign.NONE, 'A', ampere),
        Register('goal_current', 102, 2, _RAM, Sign.TWOS_COMPLEMENT, 'A', ampere),
        Register('present_current', 126, 2, _READ, Sign.TWOS_COMPLEMENT, 'A', ampere),
    )


_XL330 = _with_current(0.001)
_XM = _with_current(0.00269)

_STS_CONDITIONS = {
    0x01: 'voltage',
    0x02: 'encoder',
    0x04: 'temperature',
    0x08: 'current',
    0x20: 'overload',
}
_X_CONDITIONS = {
    0x01: 'voltage',
    0x04: 'temperature',
    0x08: 'encoder',
    0x10: 'electrical shock',
    0x20: 'overload',
}


def _x(name: str, number: int, registers: Mapping[str, Register], stall: float) -> ServoModel:
    modes, stiffness = frozenset({3, 4, 5}), 1.0 / (128 * 885)  # e-Manual: PWM = P / 128 * error
    return ServoModel(name, number, dynamixel, registers, 1, (126, 21), modes, _X_CONDITIONS, stall, stiffness)


# Share of the torque by tick and count: with the P gain of 32 a fiftieth by tick.
_STS_STIFFNESS = 0.02 / 32

MODELS = (
    ServoModel('sts3215', 777, feetech, _STS, -1, (56, 15), frozenset({0}), _STS_CONDITIONS, 2.5, _STS_STIFFNESS),
    _x('xl330-m077', 1190, _XL330, 0.215),
    _x('xl330-m288', 1200, _XL330, 0.52),
    _x('xl430-w250', 1060, _WITH_LOAD, 1.5),
    _x('2xl430-w250', 1090, _WITH_LOAD, 1.5),
    _x('xm430-w350', 1020, _XM, 4.1),
    _x('xm430-w210', 1030, _XM, 3.0),
    _x('xm540-w270', 1120, _XM, 10.6),
    _x('xm540-w150', 1130, _XM, 7.3),
)


def model_named(name: str) -> ServoModel:
    """Return the model of a name; raises InputError that names all of them."""
    for model in MODELS:
        if model.name == name:
            return model
    raise InputError(f'unknown servo "{name}"; known: {join_names((model.name for model in MODELS), name)}')


def model_numbered(number: int) -> ServoModel | None:
    """Return the model with the number that a servo reports, None if it is not known."""
    return next((model for model in MODELS if model.number == number), None)
