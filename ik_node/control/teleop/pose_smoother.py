# SPDX-License-Identifier: Apache-2.0
"""PoseSmoother: estimates the operator pose at any time from noisy setpoints."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from ik_node.checks import Array
from ik_node.control.motion.stamps import plausible_stamps

POSES = 15  # used by an estimate: 0.3 s at 50 Hz
GAP = 0.1  # [s] between poses: after a longer gap the estimate starts anew; also the longest extrapolation
LEAP = 0.04  # [m, or of a unit vector] from the expected pose: tracking has jumped, the estimate starts anew
# Ratio of noise to speed [s] and to acceleration [s^2] assumed for few poses: 0.4 mm to 0.3 m/s and
# 0.3 m/s^2. It keeps the noise of the first poses from looking like a fast motion.
NOISE = 1.3e-3


class _Value(NamedTuple):
    value: Array
    received: float
    stamp: float | None


class PoseSmoother:
    """A parabola through the newest values (n,) by least squares. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._values: deque[_Value] = deque(maxlen=POSES)
        self._fit, self._last = np.zeros((3, 0)), 0.0

    @property
    def known(self) -> bool:
        """Whether there is any value."""
        return bool(self._values)

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()

    def add(self, value: Array, received: float, stamp: float | None) -> None:
        """Add a value received at a time; stamp: when it was measured, if known."""
        if self._values and not self._continues(value, received, stamp):
            self._values.clear()
        self._values.append(_Value(value, received, stamp))
        times = self._times()
        self._last = float(times[-1])
        rows = np.vander(times - self._last, 3, increasing=True)
        calm = np.diag([0.0, NOISE, 2.0 * NOISE])[1:]
        values = np.array([one.value for one in self._values])
        self._fit = np.linalg.lstsq(
            np.vstack([rows, calm]), np.vstack([values, np.zeros((2, value.size))]), rcond=None
        )[0]

    def _continues(self, value: Array, received: float, stamp: float | None) -> bool:
        last = self._values[-1]
        if not 0.0 < received - last.received <= GAP:
            return False
        if stamp is None or last.stamp is None:
            return stamp is last.stamp and bool(np.abs(self.at(received) - value).max() <= LEAP)
        expected = self.at(self._last + stamp - last.stamp)
        return stamp > last.stamp and bool(np.abs(expected - value).max() <= LEAP)

    def _times(self) -> Array:
        received = np.array([one.received for one in self._values])
        if self._values[-1].stamp is None:
            return received
        return plausible_stamps(np.array([one.stamp for one in self._values], float), received)

    def at(self, time: float) -> Array:
        """Return the value (n,) at a time; constant from GAP after the newest one."""
        ahead = min(time - self._last, GAP)
        place, rate, bend = self._fit
        return np.asarray(place + (rate + bend * ahead) * ahead)
