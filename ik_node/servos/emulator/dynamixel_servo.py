# SPDX-License-Identifier: Apache-2.0
"""DynamixelServo: an X series servo. Source of addresses and behaviour: ROBOTIS e-Manual."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ik_node.servos.bus.models import model_named

from .motor import TURN, Motor, Servo

ID, BAUD, DELAY, DRIVE_MODE, MODE, SECONDARY, OFFSET = 7, 8, 9, 10, 11, 12, 20
MAX_VOLTAGE, MIN_VOLTAGE, PWM_LIMIT, CURRENT_LIMIT = 32, 34, 36, 38
VELOCITY_LIMIT, HIGH, LOW, SHUTDOWN, TORQUE = 44, 48, 52, 63, 64
STATUS_LEVEL, HARDWARE_ERROR, P_GAIN, WATCHDOG, GOAL_PWM, GOAL_CURRENT = 68, 70, 84, 98, 100, 102
PROFILE_ACCELERATION, PROFILE_VELOCITY, GOAL = 108, 112, 116
MOVING, CURRENT, VELOCITY, PRESENT, VOLTAGE, TEMPERATURE = 122, 126, 128, 132, 144, 146
REVERSE, TIMED = 0x01, 0x04  # bits of the drive mode; timed: profiles are milliseconds
POSITION, EXTENDED, CURRENT_POSITION = 3, 4, 5  # operating modes
UNIT = 0.229 / 60.0 * 4096.0  # [ticks/s] of a velocity
ACCELERATION_UNIT = 214.577 / 3600.0 * 4096.0  # [ticks/s^2]
WRONG_VOLTAGE, OVERLOADED = 0x01, 0x20  # bits of the hardware error
ALERT = 0x80  # bit of the error byte
RANGE_ERROR, LIMIT_ERROR, ACCESS_ERROR = 4, 6, 7
OVERLOAD, OVERLOAD_TIME = 0.8, 2.0  # share of the torque, and for how long [s]
EXPIRED = 255  # of the watchdog
END = 147  # of the control table
READ_ONLY = (range(ID), range(HARDWARE_ERROR, 71), range(120, END))


@dataclass(frozen=True)
class Series:
    """What the memory of a series has from the factory. current: its limit [counts], 0: not measured."""

    volts: float
    least_voltage: int  # [0.1 V], as is the next
    most_voltage: int
    current: int
    velocity: int
    gains: tuple[int, int]  # D and P


SERIES = {
    'xl330': Series(5.0, 35, 70, 1750, 445, (0, 400)),
    'xl430': Series(12.0, 65, 140, 0, 265, (4000, 640)),
    'xm430': Series(12.0, 95, 160, 1193, 200, (0, 800)),
    'xm540': Series(12.0, 95, 160, 2047, 128, (0, 800)),
}


class Settings(NamedTuple):
    """What registers say about motion. goal [ticks]: None if it is not to move there.

    timed: profiles are milliseconds. speed [ticks/s], acceleration [ticks/s^2]: inf for no limit. torque:
    share of the largest. voltages [0.1 V].
    """

    sign: int
    timed: bool
    multi_turn: bool
    offset: int
    goal: int | None
    speed: float
    acceleration: float
    torque: float
    least_voltage: int
    most_voltage: int


# From DRIVE_MODE to GOAL: drive mode, mode, offset, most and least voltage, current limit, torque, PWM,
# current, acceleration, speed, goal.
LAYOUT = struct.Struct('<BB8xi8xHH2xH24xB35xhh4xIIi')


@lru_cache(maxsize=64)  # they seldom change from one step to the next
def _settings_of(registers: bytes) -> Settings:
    """Return the settings in the registers from DRIVE_MODE to GOAL."""
    (drive_mode, mode, offset, high, low, limit, torque, pwm, current, steps, speed, goal) = LAYOUT.unpack(registers)
    share = abs(pwm) / 885.0
    if mode == CURRENT_POSITION and limit:
        share = min(share, abs(current) / limit)
    timed = bool(drive_mode & TIMED)
    return Settings(
        -1 if drive_mode & REVERSE else 1,
        timed,
        mode in (EXTENDED, CURRENT_POSITION),
        offset,
        goal if torque == 1 and mode in (POSITION, EXTENDED, CURRENT_POSITION) else None,
        UNIT * speed or math.inf,
        math.inf if timed else ACCELERATION_UNIT * steps or math.inf,
        min(share, 1.0),
        low,
        high,
    )


class DynamixelServo(Servo):
    """Position, extended position and current-based position mode; other modes hold still."""

    EEPROM = 64
    PRESENT_AT, GOAL_AT, TORQUE_AT, ID_AT, BAUD_AT = (PRESENT, 4), (GOAL, 4), TORQUE, ID, BAUD
    BAUDS = (9600, 57_600, 115_200, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 4_500_000)

    def __init__(self, id: int, model: str, motor: Motor, mode: int = POSITION) -> None:
        self._strained, self._silent, self._timed_speed = 0.0, 0.0, math.inf
        self._series = SERIES[model.removeprefix('2').split('-')[0]]
        factory = {
            0: (model_named(model).number, 2),
            6: (50, 1),
            BAUD: (3, 1),
            DELAY: (250, 1),
            MODE: (mode, 1),
            SECONDARY: (255, 1),
            31: (72, 1),
            MAX_VOLTAGE: (self._series.most_voltage, 2),
            MIN_VOLTAGE: (self._series.least_voltage, 2),
            PWM_LIMIT: (885, 2),
            CURRENT_LIMIT: (self._series.current, 2),
            VELOCITY_LIMIT: (self._series.velocity, 4),
            HIGH: (4095, 4),
            LOW: (0, 4),
            SHUTDOWN: (OVERLOADED | 0x14, 1),
        }
        super().__init__(id, factory, motor, self._series.volts)

    @property
    def ids(self) -> tuple[int, ...]:
        shadow = self.registers[SECONDARY]
        return (self.registers[ID],) if shadow > 252 else (self.registers[ID], shadow)

    def wake(self) -> None:
        self.registers[STATUS_LEVEL] = 2
        self.registers[TEMPERATURE] = 30
        self.put(80, 2, self._series.gains[0])
        self.put(P_GAIN, 2, self._series.gains[1])
        self.put(GOAL_PWM, 2, self.get(PWM_LIMIT, 2))
        self.put(GOAL_CURRENT, 2, self.get(CURRENT_LIMIT, 2))
        self._strained, self._silent, self._timed_speed = 0.0, 0.0, math.inf
        self.drive(0.0)
        self.measure()
        self.put(GOAL, 4, self.get(PRESENT, 4))

    def ticks(self, at: tuple[int, int]) -> int:
        return self.get(*at, signed=True)

    def feed_watchdog(self) -> None:
        """Note an instruction on the bus."""
        self._silent = 0.0

    def present(self) -> int:
        """Return the position as it can be read."""
        return self._present(self._settings())

    def _present(self, settings: Settings) -> int:
        value = round(self.motor.measured - self.turns)
        if settings.sign < 0:  # at power-up it is within the first turn, too
            value = TURN - value
        value += settings.offset
        return value if settings.multi_turn else value % TURN

    def _settings(self) -> Settings:
        return _settings_of(bytes(self.registers[DRIVE_MODE : GOAL + 4]))

    def drive(self, dt: float) -> None:
        motor, target = self.motor, None
        self._watch_bus(dt)
        settings, registers = self._settings(), self.registers
        if settings.goal is not None and self.powered:
            target = motor.measured + settings.sign * (settings.goal - self._present(settings))
        speed = self._timed_speed if settings.timed else settings.speed
        motor.advance(dt, target, speed, settings.acceleration, settings.torque)
        self._strained = self._strained + dt if abs(motor.load) >= OVERLOAD else 0.0
        if self._strained >= OVERLOAD_TIME and target is not None:
            registers[HARDWARE_ERROR] |= OVERLOADED
        fair = settings.least_voltage <= round(10.0 * self.volts) <= settings.most_voltage
        registers[HARDWARE_ERROR] |= self.alarms | (0 if fair else WRONG_VOLTAGE)
        if registers[HARDWARE_ERROR] & registers[SHUTDOWN]:
            registers[TORQUE] = 0

    def measure(self) -> None:
        motor, sign = self.motor, self._settings().sign
        self.put(PRESENT, 4, self.present())
        self.put(VELOCITY, 4, sign * round(motor.velocity / UNIT))
        full = self.get(CURRENT_LIMIT, 2) or 1000  # without a limit it measures its load [0.1 %]
        self.put(CURRENT, 2, sign * round(full * motor.load))
        self.put(VOLTAGE, 2, round(10.0 * self.volts))
        self.registers[MOVING] = int(abs(motor.velocity) > 0.0)

    def _watch_bus(self, dt: float) -> None:
        """Stop where the servo is once the bus has been silent for longer than the watchdog waits."""
        self._silent += dt
        watchdog = self.registers[WATCHDOG]
        if 0 < watchdog < EXPIRED and self._silent > 0.02 * watchdog and self.torque:
            self.registers[WATCHDOG] = EXPIRED
            self.put(GOAL, 4, self.present())

    @property
    def condition(self) -> int:
        return ALERT if self.registers[HARDWARE_ERROR] else 0

    def write(self, address: int, data: bytes) -> int:
        end, registers = address + len(data), bytearray(self.registers)
        if end > END or any(address < part.stop and part.start < end for part in READ_ONLY):
            return ACCESS_ERROR
        if address < self.EEPROM and self.registers[TORQUE]:
            return ACCESS_ERROR
        registers[address:end] = data
        if registers[TORQUE] and not self.registers[TORQUE] and self.registers[HARDWARE_ERROR]:
            return ACCESS_ERROR  # only a reboot helps
        if address < GOAL + 4 and end > GOAL_PWM and self.registers[WATCHDOG] == EXPIRED:
            return RANGE_ERROR  # goals cannot be written
        if address <= GOAL and end >= GOAL + 4:
            goal = int.from_bytes(registers[GOAL : GOAL + 4], 'little', signed=True)
            if registers[MODE] == POSITION and not self.get(LOW, 4) <= goal <= self.get(HIGH, 4):
                return LIMIT_ERROR
            time = 0.001 * int.from_bytes(registers[PROFILE_VELOCITY : PROFILE_VELOCITY + 4], 'little')
            self._timed_speed = abs(goal - self.present()) / time if time else math.inf
        self.registers[:] = registers
        if address < self.EEPROM:
            self.keep(address, len(data))
        return 0

    def reboot(self) -> None:
        """Restart: the registers are as at power-up."""
        self.power(False)
        self.power(True)
