# SPDX-License-Identifier: Apache-2.0
"""The one judge of limits, which shares nothing with the gates of the product."""

from __future__ import annotations

import numpy as np

INF = float('inf')


class Judge:
    """Judges samples of joints, one after the other: limits hold, and what a reader computes from them."""

    def __init__(
        self,
        lower=-INF,
        upper=INF,
        velocity=INF,
        acceleration=INF,
        jerk=INF,
        slack: float = 1e-6,  # absolute [rad or m, and per s, per s^2]
    ) -> None:
        self.limits = lower, upper, velocity, acceleration, jerk
        self._slack = slack
        self._last: tuple[np.ndarray, np.ndarray, np.ndarray | None] | None = None

    def __call__(self, dt: float, position, velocity, acceleration=None) -> None:
        """Judge a sample dt [s] after the last one. All are (n,)."""
        lower, upper, fastest, hardest, jerk = self.limits
        slack = self._slack
        assert (position >= lower - slack).all(), f'{position} below {lower}'
        assert (position <= upper + slack).all(), f'{position} above {upper}'
        assert (np.abs(velocity) <= fastest + slack).all(), f'velocity {velocity}, allowed: {fastest}'
        if acceleration is not None:
            assert (np.abs(acceleration) <= hardest + slack).all(), f'acceleration {acceleration}'
        if self._last is not None:
            before, speed, rise = self._last
            step, change = np.abs(position - before), np.abs(velocity - speed)
            assert (step <= fastest * dt + slack).all(), f'step {step} in {dt} s'
            assert (change <= hardest * dt + slack).all(), f'change of velocity {change} in {dt} s'
            if acceleration is not None and rise is not None:
                change = np.abs(acceleration - rise)
                assert (change <= jerk * dt + slack).all(), f'change of acceleration {change} in {dt} s'
        self._last = np.array(position), np.array(velocity), None if acceleration is None else acceleration

    def all(self, dt: float, positions, velocities=None, accelerations=None) -> None:
        """Judge samples (k, n), dt [s] apart; without velocities by differences of the positions."""
        if velocities is None:
            velocities = np.gradient(positions, dt, axis=0)
        for k, (position, velocity) in enumerate(zip(positions, velocities, strict=True)):
            self(dt, position, velocity, None if accelerations is None else accelerations[k])
