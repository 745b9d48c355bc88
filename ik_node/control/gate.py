"""Gate: the last check of every sample before it is published."""

from __future__ import annotations

import numpy as np

from ik_node.checks import Array

ROUNDING = 1e-6  # [rad, m, and per second] by which a sample may exceed a limit


class Gate:
    """Compares each sample with the limits and with the previous sample.

    lower, upper (n,) [rad or m]: a joint outside may stay or come back, but not move farther out.
    """

    def __init__(self, names: tuple[str, ...], lower: Array, upper: Array) -> None:
        self.names = names
        self._lower, self._upper = lower, upper
        self._velocity = self._acceleration = np.full(len(names), np.inf)
        self._bounds = self._velocity, self._acceleration
        self._last: tuple[Array, Array] | None = None

    def set_limits(self, velocity: Array, acceleration: Array) -> None:
        """Set the limits (n,) per second. Lower ones apply from the next rest: until then joints brake."""
        self._velocity, self._acceleration = velocity, acceleration
        self._bounds = np.maximum(self._bounds[0], velocity), np.maximum(self._bounds[1], acceleration)
        if self._last is None or not self._last[1].any():
            self._bounds = velocity, acceleration

    def restart(self) -> None:
        """Forget the last sample: the arm was placed anew."""
        self._last = None
        self._bounds = self._velocity, self._acceleration

    def refuse(self, position: Array, velocity: Array, dt: float) -> str | None:
        """Return why a sample (n,), (n,), dt [s] after the last one, must not be published, else None."""
        if not (np.isfinite(position).all() and np.isfinite(velocity).all()):
            return f'positions {position.tolist()} or velocities {velocity.tolist()} are not finite'
        before, speed = (position, velocity) if self._last is None else self._last
        fastest, hardest = self._bounds
        checks = (
            ('position', position, np.maximum(self._upper, before), np.minimum(self._lower, before)),
            ('velocity', velocity, fastest, -fastest),
            ('step', position - before, fastest * dt, -fastest * dt),
            ('change of velocity', velocity - speed, hardest * dt, -hardest * dt),
        )
        for what, values, high, low in checks:
            beyond = (values > high + ROUNDING) | (values < low - ROUNDING)
            if beyond.any():
                i = int(beyond.argmax())
                span = f'{low[i]:.6g} to {high[i]:.6g}'
                return f'joint "{self.names[i]}": {what} {values[i]:.6g}, allowed: {span}'
        self._last = position.copy(), velocity.copy()
        if not velocity.any():
            self._bounds = self._velocity, self._acceleration
        return None
