# SPDX-License-Identifier: Apache-2.0
"""Servo: registers with a memory that survives the power, in front of a motor."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

STEP = 0.002  # [s] of the integration
STIFFNESS = 0.02  # torque, as a share of the largest, per tick of position error
FALL = 25_000.0  # [ticks/s^2]: acceleration of a motor without current, at the weight that it can just hold
FRICTION = 0.05  # share of the largest torque that gears hold without current


@dataclass
class Motor:
    """A motor whose position is actual [ticks], counted over whole turns.

    low, high: its mechanical stops. blocked: positions (low, high) between which something holds it, None if
    nothing does. weight: torque that pulls it towards rising ticks, as a share of the largest; the controller
    has no integral, so the motor rests where it needs that torque: weight / STIFFNESS from its target. play:
    gap of the gears [ticks]. fastest [ticks/s]: without load. lowest, highest: of all actual positions so
    far.
    """

    actual: float = 2048.0
    velocity: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    blocked: tuple[float, float] | None = None
    weight: float = 0.0
    gravity: float = 0.0
    stiffness: float = STIFFNESS
    play: float = 0.0
    fastest: float = 3400.0
    load: float = 0.0  # share of the largest torque that the controller uses, with its sign
    lowest: float = math.inf
    highest: float = -math.inf
    _gap: float = 0.0

    def __post_init__(self) -> None:
        self.watch()

    def watch(self) -> None:
        """Count lowest and highest from now on."""
        self.lowest = self.highest = self.actual

    @property
    def measured(self) -> float:
        """Where the encoder sees the shaft [ticks]."""
        return self.actual + self._gap

    def advance(self, dt: float, target: float | None, speed: float, acceleration: float, torque: float) -> None:
        """Move for dt [s] to target, None: without current.

        speed [ticks/s], acceleration [ticks/s^2]: limits, inf for none. torque: limit as a share.
        """
        if target is None:
            self._fall(dt)
        elif abs(self.weight + self.gravity) > torque + FRICTION:
            self._give_way(dt, target, torque)
        else:
            self._control(dt, target, speed, acceleration, torque)

    def _fall(self, dt: float) -> None:
        """Turn without current, as the weight pulls."""
        weight = self.weight
        if abs(weight) <= FRICTION:
            self.velocity = self.load = 0.0
            return
        for step in _steps(dt):
            self.load = 0.0
            change = FALL * abs(weight) * step
            self.velocity += min(max(weight * self.fastest - self.velocity, -change), change)
            self._turn(step)

    def _give_way(self, dt: float, target: float, torque: float) -> None:
        """Turn with full current, under a weight that is too heavy to hold."""
        weight = self.weight + self.gravity
        for step in _steps(dt):
            self.load = -math.copysign(torque, weight)
            self.velocity = math.copysign(abs(weight) - torque, weight) * self.fastest
            self._turn(step, target, torque)

    def _control(self, dt: float, target: float, speed: float, acceleration: float, torque: float) -> None:
        """Turn to where the controller balances the weight."""
        weight = self.weight + self.gravity
        balance = target + weight / self.stiffness
        max_speed = min(speed, self.fastest * torque if torque > FRICTION else 0.0)
        for step in _steps(dt):
            error = balance - (self.actual + self._gap)
            desired, change = abs(error) / step, acceleration * step
            if acceleration < math.inf:
                desired = min(desired, math.sqrt(2.0 * acceleration * abs(error)))
            if desired > max_speed:
                desired = max_speed
            step_change = (desired if error > 0.0 else -desired) - self.velocity
            if not -change <= step_change <= change:
                step_change = math.copysign(change, step_change)
            self.velocity += step_change
            self.load = -weight
            self._turn(step, target, torque)

    def _turn(self, dt: float, target: float | None = None, torque: float = 0.0) -> None:
        """Turn with the velocity for dt, stopping at an obstacle; a motor at rest pushes towards target."""
        before, low, high = self.actual, self.low, self.high
        if self.blocked is not None:
            low, high = max(low, self.blocked[0]), min(high, self.blocked[1])
        actual = before + self.velocity * dt
        if not low <= actual <= high:
            actual = min(max(actual, min(low, before)), max(high, before))
            self.velocity = 0.0
        self.actual = actual
        if target is not None and self.velocity == 0.0:
            push = self.stiffness * (target - self.measured)
            self.load = math.copysign(min(abs(push), torque), push)
        if actual < self.lowest:
            self.lowest = actual
        elif actual > self.highest:
            self.highest = actual
        half, gap = self.play / 2.0, self._gap - (actual - before)
        self._gap = gap if -half <= gap <= half else math.copysign(half, gap)


def _steps(dt: float) -> list[float]:
    """Return the steps of the integration [s] that make up dt."""
    steps = []
    while dt > STEP:
        steps.append(STEP)
        dt -= STEP
    return [*steps, dt] if dt > 1e-9 else steps


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
