# SPDX-License-Identifier: Apache-2.0
"""Servo: registers with a memory that survives the power, in front of a motor."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

from ik_node.sim.bus.motor import Motor

SIZE = 256  # [bytes] of the registers
TURN = 4096  # [ticks]


class Servo(ABC):
    """One servo of an emulated bus; times are seconds of one clock.

    registers: what is read and written now. memory: what a power cycle brings back. powered: it answers.
    volts: of its supply. alarms: bits of conditions that it reports whatever its state.
    """

    EEPROM: ClassVar[int]  # addresses below survive the power
    PRESENT_AT: ClassVar[tuple[int, int]]  # address and size of the present position
    GOAL_AT: ClassVar[tuple[int, int]]
    TORQUE_AT: ClassVar[int]
    ID_AT: ClassVar[int]
    BAUD_AT: ClassVar[int]
    BAUDS: ClassVar[tuple[int, ...]]  # by the code in the register

    def __init__(self, id: int, memory: dict[int, tuple[int, int]], motor: Motor, volts: float) -> None:
        """memory: value and size by address, of the EEPROM as delivered."""
        self.motor, self.powered, self.volts, self.alarms = motor, True, volts, 0
        self.turns = 0.0  # [ticks] which the encoder forgot with the power
        self.registers = bytearray(SIZE)
        for address, (value, size) in memory.items():
            self.put(address, size, value)
        self.registers[self.ID_AT] = id
        self.memory = bytes(self.registers[: self.EEPROM])
        self._time: float | None = None
        self.power_up()

    @property
    @abstractmethod
    def ids(self) -> tuple[int, ...]:
        """The ids to which it listens; it answers as the first one."""

    @property
    def baud(self) -> int:
        """The speed of its line [baud], 0 if its code is none."""
        code = self.registers[self.BAUD_AT]
        return self.BAUDS[code] if code < len(self.BAUDS) else 0

    @abstractmethod
    def wake(self) -> None:
        """Set the registers as at power-up."""

    @abstractmethod
    def ticks(self, at: tuple[int, int]) -> int:
        """Return the position in a register, with its sign."""

    @abstractmethod
    def drive(self, dt: float) -> None:
        """Let the motor run for dt [s]; what it then measures comes into the registers with measure."""

    @abstractmethod
    def measure(self) -> None:
        """Write what is measured into the registers, before they are read."""

    @abstractmethod
    def write(self, address: int, data: bytes) -> int:
        """Write to the registers; return an error of the instruction, 0 if there is none."""

    @property
    @abstractmethod
    def condition(self) -> int:
        """The error byte of every status."""

    def advance(self, time: float) -> None:
        """Let time pass until time [s]."""
        dt = 0.0 if self._time is None else max(time - self._time, 0.0)
        self._time = time
        self.drive(min(dt, 10.0))

    def power(self, on: bool) -> None:
        """Switch the power; at power-up the registers come back from the memory."""
        if on and not self.powered:
            self.registers[: self.EEPROM] = self.memory
            self.registers[self.EEPROM :] = bytes(SIZE - self.EEPROM)
            self.power_up()
        self.powered = on

    def power_up(self) -> None:
        """Start as with the power: the encoder knows the place in its turn, not how many turns there were."""
        self.turns = TURN * math.floor(self.motor.measured / TURN)
        self.wake()

    def keep(self, address: int, size: int) -> None:
        """Copy registers to the memory."""
        kept = bytearray(self.memory)
        kept[address : address + size] = self.registers[address : address + size]
        self.memory = bytes(kept[: self.EEPROM])

    def get(self, address: int, size: int, signed: bool = False) -> int:
        """Return the number in registers."""
        return int.from_bytes(self.registers[address : address + size], 'little', signed=signed)

    def put(self, address: int, size: int, value: int) -> None:
        """Write a number into registers, negative ones as two's complement."""
        self.registers[address : address + size] = (value & (1 << 8 * size) - 1).to_bytes(size, 'little')

    @property
    def torque(self) -> bool:
        """Whether the motor is driven."""
        return self.powered and self.registers[self.TORQUE_AT] == 1
