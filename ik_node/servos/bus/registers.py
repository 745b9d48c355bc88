# SPDX-License-Identifier: Apache-2.0
"""Register: where a servo keeps a quantity, with its sign and unit; ServoModel: the registers of a servo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import pi

from ik_node.errors import InputError, join_names
from ik_node.servos.bus.protocol import Codec


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
        most = 2**self.sign.value - 1
        return -most, most

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
        least, most = self.range
        if not least <= count <= most:
            raise InputError(f'{self.name} can be {least} to {most}, but not {count}')
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
