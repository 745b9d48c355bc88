# SPDX-License-Identifier: Apache-2.0
"""DynamixelServo: an X series servo. Source of addresses and behaviour: ROBOTIS e-Manual."""

from __future__ import annotations

import math

from ik_node.servos.bus.models import model_named
from ik_node.sim.bus.motor import Motor
from ik_node.sim.bus.servo import Servo

ID, DELAY, DRIVE_MODE, MODE, SECONDARY, OFFSET = 7, 9, 10, 11, 12, 20
VELOCITY_LIMIT, HIGH, LOW, SHUTDOWN, TORQUE = 44, 48, 52, 63, 64
STATUS_LEVEL, HARDWARE_ERROR, WATCHDOG = 68, 70, 98
PROFILE_ACCELERATION, PROFILE_VELOCITY, GOAL = 108, 112, 116
MOVING, CURRENT, VELOCITY, PRESENT, VOLTAGE, TEMPERATURE = 122, 126, 128, 132, 144, 146
REVERSE = 0x01  # bit of the drive mode
POSITION, EXTENDED, CURRENT_POSITION = 3, 4, 5  # operating modes
UNIT = 0.229 / 60.0 * 4096.0  # [ticks/s] of a velocity
ACCELERATION_UNIT = 214.577 / 3600.0 * 4096.0  # [ticks/s^2]
OVERLOADED = 0x20  # bit of the hardware error
ALERT = 0x80  # bit of the error byte
RANGE_ERROR, LIMIT_ERROR, ACCESS_ERROR = 4, 6, 7
OVERLOAD, OVERLOAD_TIME = 0.8, 2.0  # share of the torque, and for how long [s]
EXPIRED = 255  # of the watchdog
READ_ONLY = range(122, 147)


class DynamixelServo(Servo):
    """Position, extended position and current-based position mode; other modes hold still."""

    EEPROM = 64
    PRESENT_AT, GOAL_AT, TORQUE_AT = (PRESENT, 4), (GOAL, 4), TORQUE

    def __init__(self, id: int, model: str, motor: Motor, mode: int = POSITION) -> None:
        self._strained, self._heard = 0.0, 0.0
        factory = {
            0: (model_named(model).number, 2),
            6: (50, 1),
            8: (3, 1),
            DELAY: (250, 1),
            MODE: (mode, 1),
            SECONDARY: (255, 1),
            VELOCITY_LIMIT: (265, 4),
            HIGH: (4095, 4),
            LOW: (0, 4),
            SHUTDOWN: (OVERLOADED | 0x14, 1),
        }
        super().__init__(id, factory, motor)

    def id_at(self, id: int) -> None:
        self.registers[ID] = id
        self.memory = bytes(self.registers[: self.EEPROM])

    @property
    def ids(self) -> tuple[int, ...]:
        shadow = self.registers[SECONDARY]
        return (self.registers[ID],) if shadow > 252 else (self.registers[ID], shadow)

    def wake(self) -> None:
        self.registers[STATUS_LEVEL] = 2
        self.registers[TEMPERATURE] = 30
        self.put(VOLTAGE, 2, 120)
        self._strained = 0.0
        self.drive(0.0)
        self.put(GOAL, 4, self.get(PRESENT, 4))

    def heard(self, time: float) -> None:
        """Note an instruction at time [s], for the watchdog."""
        patience = 0.02 * self.registers[WATCHDOG]
        if self.torque and 0 < self.registers[WATCHDOG] < EXPIRED and time - self._heard > patience:
            self.registers[WATCHDOG] = EXPIRED
            self.put(GOAL, 4, self.get(PRESENT, 4))
        self._heard = time

    def present(self) -> int:
        """Return the position as it can be read."""
        sign = -1 if self.registers[DRIVE_MODE] & REVERSE else 1
        value = sign * round(self.motor.measured) + self.get(OFFSET, 4, signed=True)
        return value if self.registers[MODE] in (EXTENDED, CURRENT_POSITION) else value % 4096

    def drive(self, dt: float) -> None:
        motor, target = self.motor, None
        sign = -1 if self.registers[DRIVE_MODE] & REVERSE else 1
        if self.torque and self.registers[MODE] in (POSITION, EXTENDED, CURRENT_POSITION):
            target = motor.measured + sign * (self.get(GOAL, 4, signed=True) - self.present())
        speed = UNIT * self.get(PROFILE_VELOCITY, 4) or math.inf
        acceleration = ACCELERATION_UNIT * self.get(PROFILE_ACCELERATION, 4) or math.inf
        motor.advance(dt, target, speed, acceleration, 1.0)
        self._strained = self._strained + dt if abs(motor.load) >= OVERLOAD else 0.0
        if self._strained >= OVERLOAD_TIME and target is not None:
            self.registers[HARDWARE_ERROR] |= OVERLOADED
            if self.registers[SHUTDOWN] & OVERLOADED:
                self.registers[TORQUE] = 0
        self.put(PRESENT, 4, self.present())
        self.put(VELOCITY, 4, sign * round(motor.velocity / UNIT))
        self.put(CURRENT, 2, sign * round(1000.0 * motor.load))
        self.registers[MOVING] = int(abs(motor.velocity) > 0.0)

    @property
    def condition(self) -> int:
        return ALERT if self.registers[HARDWARE_ERROR] else 0

    def write(self, address: int, data: bytes) -> int:
        if address < self.EEPROM and self.registers[TORQUE]:
            return ACCESS_ERROR
        if address in READ_ONLY:
            return ACCESS_ERROR
        if address == TORQUE and data[:1] == b'\x01' and self.registers[HARDWARE_ERROR]:
            return ACCESS_ERROR  # only a reboot helps
        if address == GOAL and len(data) == 4:
            if self.registers[WATCHDOG] == EXPIRED:
                return RANGE_ERROR
            goal = int.from_bytes(data, 'little', signed=True)
            if self.registers[MODE] == POSITION and not self.get(LOW, 4) <= goal <= self.get(HIGH, 4):
                return LIMIT_ERROR
        self.registers[address : address + len(data)] = data
        if address < self.EEPROM:
            self.memory = bytes(self.registers[: self.EEPROM])
        return 0

    def reboot(self) -> None:
        """Restart: the registers are as at power-up."""
        self.power(False)
        self.power(True)
