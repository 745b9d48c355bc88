# SPDX-License-Identifier: Apache-2.0
"""Motor: a geared motor with a position controller, from stop to stop. Positions are ticks of a turn."""

from __future__ import annotations

import math
from dataclasses import dataclass

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

    def advance(
        self, dt: float, target: float | None, speed: float, acceleration: float, torque: float
    ) -> None:
        """Move for dt [s] to target, None: without current.

        speed [ticks/s], acceleration [ticks/s^2]: limits, inf for none. torque: limit as a share.
        """
        if target is None and abs(self.weight) <= FRICTION:
            self.velocity = self.load = 0.0
            return
        while dt > 1e-9:
            step = min(dt, STEP)
            self._step(step, target, speed, acceleration, torque)
            dt -= step

    def _step(
        self, dt: float, target: float | None, speed: float, acceleration: float, torque: float
    ) -> None:
        before = self.actual
        low, high = self.low, self.high
        if self.blocked is not None:
            low, high = max(low, self.blocked[0]), min(high, self.blocked[1])
        if target is None:
            self.load = 0.0
            most = FALL * abs(self.weight) * dt
            self.velocity += min(max(self.weight * self.fastest - self.velocity, -most), most)
        else:
            error = target + self.weight / STIFFNESS - self.measured
            if abs(self.weight) > torque + FRICTION:  # too weak to hold: it gives way
                self.load = -math.copysign(torque, self.weight)
                self.velocity = math.copysign(abs(self.weight) - torque, self.weight) * self.fastest
            else:
                most = min(speed, self.fastest * torque if torque > FRICTION else 0.0)
                brake = math.sqrt(2.0 * acceleration * abs(error)) if acceleration < math.inf else math.inf
                wanted = math.copysign(min(most, brake, abs(error) / dt), error)
                change = acceleration * dt
                self.velocity += min(max(wanted - self.velocity, -change), change)
                self.load = -self.weight
        self.actual += self.velocity * dt
        if not low <= self.actual <= high:
            self.actual = min(max(self.actual, min(low, before)), max(high, before))
            self.velocity = 0.0
        if target is not None and self.velocity == 0.0:
            push = STIFFNESS * (target - self.measured)
            self.load = math.copysign(min(abs(push), torque), push)
        self.lowest, self.highest = min(self.lowest, self.actual), max(self.highest, self.actual)
        moved = self.actual - before
        self._gap = min(max(self._gap - moved, -self.play / 2.0), self.play / 2.0)
