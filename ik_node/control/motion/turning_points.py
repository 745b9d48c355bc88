# SPDX-License-Identifier: Apache-2.0
"""TurningPoints: where a moving target reversed recently, and where it may reverse again."""

from __future__ import annotations

from collections import deque

import numpy as np

from ik_node.checks import Array

PIECE = 0.02  # [s] of which only the extreme positions are stored
LATELY = 300  # pieces that are stored
FRESH = 10  # newest pieces that do not count, so that a target which goes on is not expected to turn
BEYOND = 0.02  # share of the range by which the target must leave it to be expected to go on
ROOM = 0.08  # share of the range beyond it, so that a target within the limits is not hindered


class TurningPoints:
    """The range within which each of n joints of a target moved in the last seconds.

    Joints that are too slow for a turn would otherwise brake only after the target has turned, and overshoot.
    """

    def __init__(self, n: int) -> None:
        self._nowhere = np.array([np.full(n, np.inf), np.full(n, -np.inf)])
        self._piece, self._time = self._nowhere.copy(), 0.0  # lowest and highest positions (2, n), and age
        self._fresh: deque[Array] = deque()
        self._pieces: Array | None = None  # (LATELY, 2, n)
        self._oldest = 0
        self._known = False  # whether any joint turned
        self._range = self._ends = -self._nowhere  # where it may turn, and beyond which it goes on

    def between(self, position: Array, dt: float) -> Array:
        """Note a position (n,) of the target, dt [s] after the last one; return where it may turn.

        The lowest and highest positions (2, n), with some room; infinite where no turn is known, or where the
        target goes on.
        """
        np.minimum(self._piece[0], position, out=self._piece[0])
        np.maximum(self._piece[1], position, out=self._piece[1])
        self._time += dt
        if self._time >= PIECE:
            self._fresh.append(self._piece)
            self._piece, self._time = self._nowhere.copy(), 0.0
            if len(self._fresh) > FRESH:
                self._store(self._fresh.popleft())
        if not self._known:
            return -self._nowhere
        goes_on = np.array([position < self._ends[0], position > self._ends[1]])
        return np.where(goes_on, -self._nowhere, self._range)

    def _store(self, piece: Array) -> None:
        """Store a piece, and find the extreme positions; where the memory begins there was no turn."""
        if self._pieces is None:
            self._pieces = np.tile(piece, (LATELY, 1, 1))
        self._pieces[self._oldest] = piece
        self._oldest = (self._oldest + 1) % LATELY
        first_low, first_high = self._pieces[self._oldest]
        low, high = self._pieces[:, 0].min(axis=0), self._pieces[:, 1].max(axis=0)
        size = high - low
        turns = np.array([np.where(low < first_low, low, -np.inf), np.where(high > first_high, high, np.inf)])
        self._known = bool(np.isfinite(turns).any())
        outwards = np.array([-size, size])
        self._range, self._ends = turns + ROOM * outwards, turns + BEYOND * outwards
