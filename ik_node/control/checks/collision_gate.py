# SPDX-License-Identifier: Apache-2.0
"""CollisionGate: the final check of every setpoint for self-collision."""

from __future__ import annotations

import numpy as np

from ik_node.checks import Array
from ik_node.model.collision.collision import SelfCollision

SLACK = 1e-3  # [m] by which the overlap may grow while links separate


class CollisionGate:
    """Rejects setpoints in which parts of the robot overlap; parts that overlap at the start may come apart.

    Distances are computed only if earlier ones do not rule a collision out, so most setpoints cost little.
    """

    def __init__(self, collision: SelfCollision) -> None:
        self.collision = collision
        self.restart()

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised."""
        self._last: Array | None = None
        self._least = 0.0  # allowed distance

    def reject(self, values: Array) -> str | None:
        """Return why a setpoint with these variables (n,) must not be published, else None."""
        if self._last is not None and np.array_equal(values, self._last):
            return None
        if self.collision.clear(values, values, 0.0):
            self._last, self._least = values.copy(), 0.0
            return None
        distances, pairs = self.collision.look(values)
        nearest = int(distances.argmin())
        distance, pair = float(distances[nearest]), pairs[nearest]
        if self._last is None:
            self._least = distance - SLACK if distance < 0.0 else 0.0
        if distance < self._least:
            allowed = f'allowed: {-self._least:.4f}'
            return f'link "{pair[0]}" and link "{pair[1]}" overlap by {-distance:.4f} m, {allowed}'
        if self._least < 0.0:
            self._least = 0.0 if distance > 0.0 else max(self._least, distance - SLACK)
        self._last = values.copy()
        return None

    def reject_ahead(self, path: Array) -> tuple[int, str] | None:
        """Return which of the setpoints of all variables (k, n) must not follow the last one, and why."""
        if not np.abs(np.diff(path, axis=0)).max(initial=0.0) > 0.0:
            return None
        hit = self.collision.along(path, self._least)
        if hit is None:
            return None
        k, distance, (one, other) = hit
        return k, f'link "{one}" and link "{other}" overlap by {-distance:.4f} m'
