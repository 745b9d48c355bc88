# SPDX-License-Identifier: Apache-2.0
"""Demand: the share of the velocity, acceleration and jerk limits that a moving target needs."""

from __future__ import annotations

from collections import deque

import numpy as np

from ik_node import kernels
from ik_node.checks import Array

PIECE = 0.02  # [s] of which only the largest demand is stored
LATELY = 100  # pieces that are stored, so that a curve is known after its first lap
BRIEF = 6  # largest pieces that are ignored: single corners and changes of speed
NOW = 15  # pieces that give the present speed
SLOWER = 0.78  # share of the largest speed below which the target slows down


class Demand:
    """The demand of a moving target of n joints, as shares of the limits.

    peaks: of velocity and acceleration (2, n); they decay. worst: the largest recent share that lasted.
    """

    def __init__(self, n: int) -> None:
        self.peaks = np.zeros((2, n))
        self.worst = 0.0
        self._smooth: Array | None = None  # acceleration (n,)
        self._pieces: deque[tuple[float, float]] = deque(maxlen=LATELY)  # largest share, and speed
        self._share = self._speed = self._time = 0.0  # of the piece that has begun

    def note(self, target: Array, limits: Array, dt: float) -> None:
        """Note the state (3, n) of the target, dt [s] after the last time. limits (3, n)."""
        if self._smooth is None:
            self._smooth = target[2].copy()
        share, speed = kernels.note_demand(target, limits, self.peaks, self._smooth, dt)
        self._share, self._speed = max(self._share, share), max(self._speed, speed)
        self._time += dt
        if self._time >= PIECE:
            self._pieces.append((self._share, self._speed))
            self._share = self._speed = self._time = 0.0
            self._judge()

    def _judge(self) -> None:
        """Find the worst; if the target has slowed down, scale its acceleration with the square of speed."""
        shares, speeds = zip(*self._pieces, strict=True)
        slower = max(speeds[-NOW:]) / max(*speeds, 1e-9)
        self.worst = sorted(shares)[max(0, len(shares) - 1 - BRIEF)] * min(1.0, slower / SLOWER) ** 2
