# SPDX-License-Identifier: Apache-2.0
"""KnownDistances: what the last looks at distances say about configurations near them."""

from __future__ import annotations

import numpy as np

from ik_node.checks import Array

KEPT = 8  # looks
ROUNDING = 1e-5  # [m] of measured distances


class KnownDistances:
    """Distances of groups of parts at the last configurations that were looked at.

    A distance shrinks by no more than the joints can move its parts. Where that rules a collision out,
    nothing has to be measured again, and the verdict is the same. Safe to use from several threads.
    sweep (g, n): how fast a distance can change with each variable.
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
