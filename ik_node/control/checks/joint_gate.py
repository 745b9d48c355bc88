# SPDX-License-Identifier: Apache-2.0
"""Gate: the final check of every setpoint before it is published."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array

ROUNDING = 1e-6  # [rad, m, and per second] by which a setpoint may exceed a limit
SWING = 4e-6  # [rad, m] the same, in addition, for the curve between the nodes of a path
PLANNED = 0.99  # share of the acceleration limits for motions; the rest is for transitions of controllers
# By how much [rad or m] position, and up to which shares of their limits velocity and acceleration may exceed
# them until a controller joins a plan: only setpoints of its motion are sent.
JOINED = 1e-3, 1.02, 1.2
# Shares of the velocity, acceleration and jerk limits between the points of a trajectory: not all knots of a
# plan are sent, nor all nodes of a path.
RESAMPLED = 1.001, 1.001, 1.02


@dataclass(frozen=True, eq=False)
class _Last:
    """The last setpoint (n,): mean acceleration over the dt [s] before it."""

    position: Array
    velocity: Array
    acceleration: Array
    dt: float

    @property
    def at_rest(self) -> bool:
        return not (self.velocity.any() or self.acceleration.any())


class Gate:
    """Compares each setpoint with the limits and with the previous setpoint.

    lower, upper (n,) [rad or m]: a joint that starts outside may stay there or move back, but not farther
    out.
    """

    def __init__(self, names: tuple[str, ...], lower: Array, upper: Array) -> None:
        self.names = names
        self._lower, self._upper = lower, upper
        self._limits: tuple[Array, Array, Array] = (np.full(len(names), np.inf),) * 3
        self._bounds = self._limits
        self._last: _Last | None = None

    def set_limits(self, velocity: Array, acceleration: Array, jerk: Array) -> None:
        """Set the limits (n,) per second. Lower ones apply once the joints rest; until then joints brake."""
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
        """Forget the last setpoint: the arm was reinitialised at rest."""
        self._last = None
        self._bounds = self._limits

    def go_on_from(self, position: Array, velocity: Array, acceleration: Array) -> None:
        """Compare the next setpoint with this state (n,) instead of the last setpoint."""
        self._last = _Last(position, velocity, acceleration, 0.0)

    def reject(self, position: Array, velocity: Array, dt: float) -> str | None:
        """Return why a setpoint (n,), (n,), dt [s] after the last one, must not be published, else None.

        Velocities are compared with those of the two setpoints before: the mean acceleration of a period
        differs from that of the period before by at most jerk times half the time of both.
        """
        mean = self._passed(position, velocity, dt)
        if mean is None:
            zeros = np.zeros(len(self.names))
            last = _Last(position, zeros, zeros, 0.0) if self._last is None else self._last
            found, means = self._compared(last, np.array([dt]), position[None], velocity[None])
            if found is not None:
                return found[1]
            mean = means[0]
        if dt > 0.0 or self._last is None:
            self._last = _Last(position.copy(), velocity.copy(), mean, dt)
        if self._last is None or self._last.at_rest:
            self._bounds = self._limits
        return None

    def _passed(self, position: Array, velocity: Array, dt: float) -> Array | None:
        """Return the mean acceleration (n,) of a setpoint that passes; None if _compared must decide.

        The same comparison in a fifth of the time; almost every setpoint passes.
        """
        last = self._last
        if last is None or dt <= 0.0 or last.dt <= 0.0:
            return None
        fastest, hardest, sharpest = self._bounds
        step, gain = position - last.position, velocity - last.velocity
        mean = gain / dt
        found = np.array([velocity, step, gain, mean - last.acceleration])
        half = (dt + last.dt) / 2
        most = np.array([fastest, fastest * dt, hardest * dt, sharpest * half])
        most += [[ROUNDING], [ROUNDING], [ROUNDING], [ROUNDING + ROUNDING / dt + ROUNDING / last.dt]]
        slack = ROUNDING + SWING
        inside = (position < np.maximum(self._upper, last.position) + slack) & (
            position > np.minimum(self._lower, last.position) - slack
        )
        return mean if inside.all() and (np.abs(found) < most).all() else None

    def reject_ahead(self, times: Array, states: Array, join: float) -> tuple[int, str] | None:
        """Return which setpoint of a trajectory is rejected, and why.

        states (3, k, n): positions, velocities and accelerations at times (k,) [s]. Until the time join [s],
        a controller repeats its previous trajectory: see JOINED. Later setpoints are reported first.
        """
        position, velocity, acceleration = states
        fastest, hardest, _ = self._bounds
        first = int(np.searchsorted(times, join))
        if first + 1 < len(times):
            last = _Last(position[first], velocity[first], acceleration[first], 0.0)
            dts, rows = np.diff(times[first:]), slice(first + 1, None)
            found, _ = self._compared(last, dts, position[rows], velocity[rows], RESAMPLED)
            if found is not None:
                return first + 1 + found[0], found[1]
        low, high = (np.minimum(self._lower, position[0]), np.maximum(self._upper, position[0]))
        for what, values, least, most in (
            ('position', position, low - JOINED[0], high + JOINED[0]),
            ('velocity', velocity, -JOINED[1] * fastest, JOINED[1] * fastest),
            ('acceleration', acceleration, -JOINED[2] * hardest, JOINED[2] * hardest),
        ):
            beyond = (values[:first] < least) | (values[:first] > most)
            if beyond.any():
                k, i = np.argwhere(beyond)[0]
                allowed = f'{least[i]:.6g} to {most[i]:.6g}'
                return int(k), f'joint "{self.names[i]}": {what} {values[k, i]:.6g}, allowed: {allowed}'
        return None

    def _compared(
        self,
        last: _Last,
        dts: Array,
        positions: Array,
        velocities: Array,
        shares: tuple[float, float, float] = (1.0, 1.0, 1.0),
    ) -> tuple[tuple[int, str] | None, Array]:
        """Compare setpoints (k, n), each dts (k,) after the one before.

        Return the first that must not be published, and why, else None, and the mean accelerations (k, n).
        """
        finite = (np.isfinite(positions) & np.isfinite(velocities)).all(axis=1)
        if not finite.all():
            k = int((~finite).argmax())
            row = f'positions {positions[k].tolist()} or velocities {velocities[k].tolist()}'
            return (k, f'{row} are not finite'), positions
        dt, last_dt = dts[:, None], np.append(last.dt, dts[:-1])[:, None]
        before = np.vstack([last.position, positions[:-1]])
        gain = np.diff(velocities, axis=0, prepend=last.velocity[None])
        mean = np.where(dt > 0.0, gain / np.where(dt > 0.0, dt, 1.0), last.acceleration)
        change = np.diff(mean, axis=0, prepend=last.acceleration[None])
        fastest, hardest, sharpest = (x * share for x, share in zip(self._bounds, shares, strict=True))
        # The rounding of a velocity counts more in a short period.
        rounding = sum(ROUNDING / np.where(x > 0.0, x, np.inf) for x in (dt, last_dt))
        checks = (
            ('position', positions, np.maximum(self._upper, before), SWING),
            ('velocity', velocities, fastest, 0.0),
            ('step', positions - before, fastest * dt, 0.0),
            ('change of velocity', gain, hardest * dt, 0.0),
            ('change of acceleration', change, sharpest * (dt + last_dt) / 2, rounding),
        )
        first: tuple[int, str] | None = None
        for what, values, high, more in checks:
            low = np.minimum(self._lower, before) if what == 'position' else -high
            beyond = (values > high + ROUNDING + more) | (values < low - ROUNDING - more)
            if not beyond.any():
                continue
            k, i = np.argwhere(beyond)[0]
            if first is None or k < first[0]:
                least, most = (np.broadcast_to(bound, beyond.shape)[k, i] for bound in (low, high))
                allowed = f'{least:.6g} to {most:.6g}'
                first = int(k), f'joint "{self.names[i]}": {what} {values[k, i]:.6g}, allowed: {allowed}'
        return first, mean
