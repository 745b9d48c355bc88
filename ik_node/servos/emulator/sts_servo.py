# SPDX-License-Identifier: Apache-2.0
"""StsServo: an STS3215 of Feetech. Source of addresses and behaviour: Feetech's memory table."""

from __future__ import annotations

import math
import struct
from functools import lru_cache
from typing import NamedTuple

from .motor import STIFFNESS, TURN, Motor, Servo

ID, STATUS_LEVEL, LOW, HIGH, MAX_VOLTAGE, MIN_VOLTAGE, MAX_TORQUE, PHASE, P_GAIN = (
    5,
    8,
    9,
    11,
    14,
    15,
    16,
    18,
    21,
)
PROTECTION_CURRENT, OFFSET, MODE, PROTECTIVE, PROTECTION_TIME, OVERLOAD = 28, 31, 33, 34, 35, 36
TORQUE, ACCELERATION, GOAL, SPEED, TORQUE_LIMIT, LOCK = 40, 41, 42, 46, 48, 55
PRESENT, VELOCITY, LOAD, VOLTAGE, TEMPERATURE, STATUS, MOVING, CURRENT = 56, 58, 60, 62, 63, 65, 66, 69
FASTEST_IF_ZERO, MULTI_TURN, UNIT_STEPS = 0x08, 0x10, 0x04  # bits of the phase
OVERLOADED, WRONG_VOLTAGE = 0x20, 0x01  # bits of the status
CALIBRATE_HERE = 128  # written to TORQUE: the present position becomes 2048
FACTORY = {
    0: (3, 1),
    1: (10, 1),
    3: (777, 2),
    STATUS_LEVEL: (1, 1),
    LOW: (0, 2),
    HIGH: (4095, 2),
    13: (70, 1),
    MAX_VOLTAGE: (140, 1),
    MIN_VOLTAGE: (40, 1),
    MAX_TORQUE: (1000, 2),
    PHASE: (FASTEST_IF_ZERO | UNIT_STEPS, 1),
    P_GAIN: (32, 1),
    22: (32, 1),
    PROTECTION_CURRENT: (511, 2),
    30: (1, 1),
    PROTECTIVE: (20, 1),
    PROTECTION_TIME: (200, 1),
    OVERLOAD: (80, 1),
}


def magnitude(value: int, bit: int) -> int:
    """Return a number whose sign is in that bit as that bit pattern."""
    return abs(value) | (1 << bit if value < 0 else 0)


def signed(raw: int, bit: int) -> int:
    """Return the number of a bit pattern with the sign in that bit."""
    return -(raw & (1 << bit) - 1) if raw >> bit & 1 else raw


class Settings(NamedTuple):
    """What registers say about motion. goal [ticks]: None if it is not to move there.

    offset: actual - present position [ticks]. speed [ticks/s], acceleration [ticks/s^2]: inf for no limit.
    torque, protective, overload: shares of the largest. protection_time [s].
    """

    goal: int | None
    offset: int
    multi_turn: bool
    speed: float
    acceleration: float
    torque: float
    protective: float
    overload: float
    protection_time: float


# From LOW to TORQUE_LIMIT: low, high, phase, offset, mode, protective, its time, overload, torque,
# acceleration, goal, speed, torque limit.
LAYOUT = struct.Struct('<HH5xB12xH4B3xBBH2xHH')


@lru_cache(maxsize=64)  # they seldom change from one step to the next
def _settings_of(registers: bytes) -> Settings:
    """Return the settings in the registers from LOW to TORQUE_LIMIT."""
    (low, high, phase, offset, mode, protective, time, overload, torque, steps, goal, speed, limit) = LAYOUT.unpack(
        registers
    )
    goal = signed(goal, 15)
    if (low, high) != (0, 0):
        goal = min(max(goal, low), high)
    fastest = float((1 if phase & UNIT_STEPS else 50) * abs(signed(speed, 15)))
    if fastest == 0.0 and phase & FASTEST_IF_ZERO:
        fastest = math.inf
    return Settings(
        goal if torque == 1 and mode == 0 else None,
        signed(offset, 11),
        bool(phase & MULTI_TURN),
        fastest,
        100.0 * steps if steps else math.inf,
        limit / 1000.0,
        protective / 100.0,
        overload / 100.0,
        0.01 * time,
    )


class StsServo(Servo):
    """Position mode; other modes hold still."""

    EEPROM = 40
    PRESENT_AT, GOAL_AT, TORQUE_AT, ID_AT, BAUD_AT = (PRESENT, 2), (GOAL, 2), TORQUE, ID, 6
    BAUDS = (1_000_000, 500_000, 250_000, 128_000, 115_200)  # the tables disagree about the other codes

    def __init__(self, id: int, motor: Motor) -> None:
        self._overloaded, self._hot_for = False, 0.0
        super().__init__(id, FACTORY, motor, volts=12.0)

    @property
    def ids(self) -> tuple[int, ...]:
        return (self.registers[ID],)

    def wake(self) -> None:
        self.put(TORQUE_LIMIT, 2, self.get(MAX_TORQUE, 2))
        self.registers[LOCK] = 1
        self.registers[TEMPERATURE] = 30
        self._overloaded, self._hot_for = False, 0.0
        self.drive(0.0)
        self.measure()
        self.put(GOAL, 2, self.get(PRESENT, 2))

    def ticks(self, at: tuple[int, int]) -> int:
        return signed(self.get(*at), 15)

    def _present(self, settings: Settings) -> int:
        """Return the position as it can be read, without sign bit."""
        value = round(self.motor.measured - self.turns) - settings.offset
        return value if settings.multi_turn else value % TURN

    def _settings(self) -> Settings:
        return _settings_of(bytes(self.registers[LOW : TORQUE_LIMIT + 2]))

    def drive(self, dt: float) -> None:
        motor, settings = self.motor, self._settings()
        motor.stiffness = STIFFNESS * self.registers[P_GAIN] / FACTORY[P_GAIN][0]
        target, torque = None, settings.torque
        if settings.goal is not None and self.powered:
            # never across 4095 and 0
            target = motor.measured + (settings.goal - self._present(settings))
        if self._overloaded:
            torque = min(torque, settings.protective)
        motor.advance(dt, target, settings.speed, settings.acceleration, torque)
        if target is None:
            self._overloaded, self._hot_for = False, 0.0
        elif abs(motor.load) >= settings.overload:
            self._hot_for += dt
            self._overloaded |= self._hot_for >= settings.protection_time
        else:
            self._hot_for = 0.0

    def measure(self) -> None:
        motor = self.motor
        self.put(PRESENT, 2, magnitude(self._present(self._settings()), 15))
        self.put(VELOCITY, 2, magnitude(round(motor.velocity), 15))
        self.put(LOAD, 2, magnitude(round(1000.0 * motor.load), 10))
        self.put(CURRENT, 2, magnitude(round(300.0 * motor.load), 15))
        self.registers[VOLTAGE] = round(10.0 * self.volts)
        self.registers[MOVING] = int(abs(motor.velocity) > 0.0)
        self.registers[STATUS] = self.condition

    @property
    def condition(self) -> int:
        fair = self.registers[MIN_VOLTAGE] <= round(10.0 * self.volts) <= self.registers[MAX_VOLTAGE]
        return self.alarms | (OVERLOADED if self._overloaded else 0) | (0 if fair else WRONG_VOLTAGE)

    def write(self, address: int, data: bytes) -> int:
        if not ID <= address <= address + len(data) <= PRESENT:  # not written, but acknowledged
            return 0
        if address == TORQUE and data[:1] == bytes([CALIBRATE_HERE]):
            self.put(OFFSET, 2, magnitude(max(round(self.motor.measured) % TURN - 2048, -2047), 11))
            self.keep(OFFSET, 2)
            return 0
        self.registers[address : address + len(data)] = data
        if address < self.EEPROM and not self.registers[LOCK]:
            self.keep(address, len(data))
        if address <= TORQUE < address + len(data) and not self.registers[TORQUE]:
            self._overloaded, self._hot_for = False, 0.0
        return 0
