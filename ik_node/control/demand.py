"""Demand: the share of the velocity, acceleration and jerk limits that a moving target needs."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from ik_node.checks import Array
from ik_node.control.goal_stream import JointState

MEMORY = 0.7  # [s] for which the largest velocity and acceleration of the target count
PIECE = 0.02  # [s] of which the largest demand counts
LATELY = 100  # pieces that count, so that a curve is known after its first lap
BRIEF = 6  # pieces that do not: single corners, and the moment at which the speed changes
NOW = 15  # pieces that tell the speed of now
SLOWER = 0.78  # share of the largest speed below which the target slows down
SMOOTHING = 0.04  # [s] of the acceleration

Limits = tuple[Array, Array, Array]  # velocity, acceleration and jerk


class Demand:
    """What following a moving target of n joints needs, as shares of the limits.

    peaks: of velocity and acceleration, each (n,); they decay. worst: the largest share lately that lasted.
    """

    def __init__(self, n: int) -> None:
        self.peaks = np.zeros((2, n))
        self.worst = 0.0
        self._acceleration: Array | None = None
        self._pieces: deque[tuple[float, float]] = deque(maxlen=LATELY)  # largest share, and speed
        self._share = self._speed = self._time = 0.0  # of the piece that has begun

    def note(self, target: JointState, limits: Limits, dt: float) -> None:
        """Note where the target is, dt [s] after the last time."""
        fastest, hardest, jerkiest = limits
        shares = np.abs(np.array([target.velocity / fastest, target.acceleration / hardest]))
        self.peaks = np.maximum(shares, self.peaks * math.exp(-dt / MEMORY))
        before = target.acceleration if self._acceleration is None else self._acceleration
        change = (target.acceleration - before) * min(1.0, dt / SMOOTHING)
        self._acceleration = before + change
        lasting = shares[0], np.abs(self._acceleration) / hardest, np.abs(change) / (jerkiest * dt)
        self._share = max(self._share, *(float(x.max()) for x in lasting))
        self._speed = max(self._speed, float(np.sqrt(shares[0] @ shares[0])))
        self._time += dt
        if self._time >= PIECE:
            self._pieces.append((self._share, self._speed))
            self._share = self._speed = self._time = 0.0
            self._judge()

    def _judge(self) -> None:
        """Find the worst; if the target has slowed down, its acceleration fell with the square of speed."""
        shares, speeds = zip(*self._pieces, strict=True)
        slower = max(speeds[-NOW:]) / max(*speeds, 1e-9)
        self.worst = sorted(shares)[max(0, len(shares) - 1 - BRIEF)] * min(1.0, slower / SLOWER) ** 2
