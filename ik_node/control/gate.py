"""Gate: the last check of every sample before it is published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array

ROUNDING = 1e-6  # [rad, m, and per second] by which a sample may exceed a limit


@dataclass(frozen=True, eq=False)
class _Last:
    """The last sample (n,): mean acceleration over the dt [s] before it."""

    position: Array
    velocity: Array
    acceleration: Array
    dt: float

    @property
    def at_rest(self) -> bool:
        return not (self.velocity.any() or self.acceleration.any())


class Gate:
    """Compares each sample with the limits and with the previous sample.

    lower, upper (n,) [rad or m]: a joint outside may stay or come back, but not move farther out.
    """

    def __init__(self, names: tuple[str, ...], lower: Array, upper: Array) -> None:
        self.names = names
        self._lower, self._upper = lower, upper
        self._limits: tuple[Array, Array, Array] = (np.full(len(names), np.inf),) * 3
        self._bounds = self._limits
        self._last: _Last | None = None

    def set_limits(self, velocity: Array, acceleration: Array, jerk: Array) -> None:
        """Set the limits (n,) per second. Lower ones apply from the next rest: until then joints brake."""
        self._limits = velocity, acceleration, jerk
        before = self._bounds
        self._bounds = (
            np.maximum(before[0], velocity),
            np.maximum(before[1], acceleration),
            np.maximum(before[2], jerk),
        )
        if self._last is None or self._last.at_rest:
            self._bounds = self._limits

    def restart(self) -> None:
        """Forget the last sample: the arm was placed anew, at rest."""
        self._last = None
        self._bounds = self._limits

    def refuse(self, position: Array, velocity: Array, dt: float) -> str | None:
        """Return why a sample (n,), (n,), dt [s] after the last one, must not be published, else None.

        Velocities are compared with those of the two samples before: the mean acceleration of a period
        differs from that of the period before by at most jerk times half the time of both.
        """
        if not (np.isfinite(position).all() and np.isfinite(velocity).all()):
            return f'positions {position.tolist()} or velocities {velocity.tolist()} are not finite'
        zeros = np.zeros(len(self.names))
        last = _Last(position, zeros, zeros, 0.0) if self._last is None else self._last
        fastest, hardest, sharpest = self._bounds
        gain = velocity - last.velocity
        mean = gain / dt if dt > 0.0 else last.acceleration
        span = (dt + last.dt) / 2
        # The rounding of a velocity counts more in a short period.
        rounding = sum(ROUNDING / period for period in (dt, last.dt) if period > 0.0)
        checks = (
            ('position', position, np.maximum(self._upper, last.position), 0.0),
            ('velocity', velocity, fastest, 0.0),
            ('step', position - last.position, fastest * dt, 0.0),
            ('change of velocity', gain, hardest * dt, 0.0),
            ('change of acceleration', mean - last.acceleration, sharpest * span, rounding),
        )
        for what, values, high, more in checks:
            low = np.minimum(self._lower, last.position) if what == 'position' else -high
            beyond = (values > high + ROUNDING + more) | (values < low - ROUNDING - more)
            if beyond.any():
                i = int(beyond.argmax())
                allowed = f'{low[i]:.6g} to {high[i]:.6g}'
                return f'joint "{self.names[i]}": {what} {values[i]:.6g}, allowed: {allowed}'
        if dt > 0.0 or self._last is None:
            self._last = _Last(position.copy(), velocity.copy(), mean, dt)
        if self._last is None or self._last.at_rest:
            self._bounds = self._limits
        return None
