# SPDX-License-Identifier: Apache-2.0
"""KnownDistances: bounds of distances near recently checked configurations."""

from __future__ import annotations

import numpy as np

from ik_node.checks import Array

KEPT = 8  # checks
ROUNDING = 1e-5  # [m] of measured distances


class KnownDistances:
    """Distances of groups of links at the last checked configurations.

    A distance shrinks at most by the motion of its links. If that rules a collision out, the distance need
    not be computed again, and the verdict is the same. Thread-safe. sweep (g, n): how fast a distance can
    change with each variable.
    """

    def __init__(self, sweep: Array) -> None:
        self._sweep = sweep
        self._looks = np.empty((0, sweep.shape[1])), np.empty((0, sweep.shape[0]))

    def add(self, q: Array, distances: Array) -> None:
        """Note the distances (g,) at q (n,)."""
        rows, known = self._looks
        self._looks = np.vstack([rows[1 - KEPT :], q]), np.vstack([known[1 - KEPT :], distances])

    def clear(self, low: Array, high: Array, clearance: float) -> bool:
        """Whether all distances are known to stay above clearance [m] where low <= q <= high, each (n,)."""
        rows, known = self._looks
        moved = np.maximum(np.abs(rows - low), np.abs(rows - high))
        return bool((moved @ self._sweep.T + (clearance + ROUNDING) < known).any(axis=0).all())
