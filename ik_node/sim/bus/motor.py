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

    def advance(
        self, dt: float, target: float | None, speed: float, acceleration: float, torque: float
    ) -> None:
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
        most = min(speed, self.fastest * torque if torque > FRICTION else 0.0)
        for step in _steps(dt):
            error = balance - (self.actual + self._gap)
            wanted, change = abs(error) / step, acceleration * step
            if acceleration < math.inf:
                wanted = min(wanted, math.sqrt(2.0 * acceleration * abs(error)))
            if wanted > most:
                wanted = most
            more = (wanted if error > 0.0 else -wanted) - self.velocity
            if not -change <= more <= change:
                more = math.copysign(change, more)
            self.velocity += more
            self.load = -weight
            self._turn(step, target, torque)

    def _turn(self, dt: float, target: float | None = None, torque: float = 0.0) -> None:
        """Turn with the velocity for dt, at most to what is in the way; if it rests, push towards target."""
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
