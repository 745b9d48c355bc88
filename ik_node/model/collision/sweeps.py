# SPDX-License-Identifier: Apache-2.0
"""Sweeps: bounds of the approach of two links per motion of a joint."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.model.collision.bodies import Bodies


class Sweeps:
    """Bounds for shapes on bodies, from the lengths between joints alone: they hold in any configuration.

    A joint between two shapes moves one against the other. Seen from either of them, a point of the other
    moves no farther than its distance from the axis times the angle; the smaller of both bounds holds.
    """

    def __init__(self, bodies: Bodies, travel: Array, body: NDArray[np.int64], centres: Array, radii: Array):
        """travel (k,): farthest position of each joint of bodies from zero [rad or m].

        body, centres, radii: by shape, its body and the sphere around it there, (s,), (s, 3), (s,) [m].
        """
        self._bodies = bodies
        self._body, self._centres, self._radii = body, centres, radii
        self._above = bodies.movers([True] * len(bodies.joints))
        self._slides = [joint.type == 'prismatic' for joint in bodies.joints]
        lengths = [float(np.linalg.norm(origin[:3, 3])) for origin in bodies.origins]
        slid = np.where(self._slides, travel, 0.0).tolist()
        self._length = [length + far for length, far in zip(lengths, slid, strict=True)]

    def between(self, i: int, j: int) -> dict[int, float]:
        """Return by joint between shapes i and j how far a point of one moves against the other at most.

        [m/rad] for a revolute joint, 1 for a prismatic one.
        """
        found = {}
        for k in self._above[self._body[i]] ^ self._above[self._body[j]]:
            below, beside = (i, j) if k in self._above[self._body[i]] else (j, i)
            found[k] = 1.0 if self._slides[k] else min(self._below(below, k), self._beside(beside, k))
        return found

    def _below(self, shape: int, k: int) -> float:
        """Return the largest distance of a shape that joint k carries from its axis [m]."""
        body = int(self._body[shape])
        if body == k + 1:
            return self._from_axis(shape, np.zeros(3), np.asarray(self._bodies.joints[k].axis))
        path = self._above[body] - self._above[k + 1]
        return self._reach(shape) + sum(self._length[m] for m in path)

    def _beside(self, shape: int, k: int) -> float:
        """Return the same for a shape that joint k does not carry."""
        body, parent = int(self._body[shape]), self._bodies.parents[k]
        origin = self._bodies.origins[k]
        if body == parent:
            return self._from_axis(shape, origin[:3, 3], origin[:3, :3] @ self._bodies.joints[k].axis)
        path = self._above[body] ^ self._above[parent]
        return self._reach(shape) + sum(self._length[m] for m in path) + float(np.linalg.norm(origin[:3, 3]))

    def _reach(self, shape: int) -> float:
        """Return the distance of the farthest point of a shape from the origin of its body [m]."""
        return float(np.linalg.norm(self._centres[shape]) + self._radii[shape])

    def _from_axis(self, shape: int, origin: Array, axis: Array) -> float:
        """Return the distance of the farthest point of a shape from an axis in its body [m]."""
        away = self._centres[shape] - origin
        return float(np.linalg.norm(away - (away @ axis) * axis) + self._radii[shape])
