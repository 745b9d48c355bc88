# SPDX-License-Identifier: Apache-2.0
"""Survey: which directions the tool axis can take at a position, and how far from the joint limits."""

from __future__ import annotations

import math

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.errors import KernelError
from ik_node.kernels.arrays.layout import DIRECTION, LATERAL
from ik_node.model.arm import Arm
from ik_node.solver.limit_distances import LimitDistances, distances_to_limits
from ik_node.solver.reachability import configurations_at, fibonacci_sphere

STARTS = 8  # descents per direction that no formula decides


class Survey:
    """Surveys single positions. Safe to call from several threads, which run side by side."""

    def __init__(self, arm: Arm, directions: int, within: float) -> None:
        """directions: how many are tried. within [rad]: of the tool axis, for a direction to count.

        Raises KernelError if the kernels cannot be compiled.
        """
        served = kernels.prepare(('reached_directions',), wait=True)
        if served.stage is not kernels.Stage.READY:
            raise KernelError(str(served))
        self._arm, self._cosine = arm, math.cos(within)
        self._limit_distances = LimitDistances(arm)
        self.directions = fibonacci_sphere(directions)

    def distances(self, place: Array, random_seed: int) -> Array | None:
        """Return for each direction (K,) the largest distance to the joint limits [rad or m] that was found.

        The tool point is at place (3,) [m], base frame. -inf: no configuration was found for the direction.
        None: the position is out of reach. Lower bounds, except where a closed form gives all solutions.
        """
        arm, n = self._arm, self._arm.n
        reached = np.zeros(len(self.directions), dtype=np.bool_)
        found = configurations_at(arm, place, self.directions, self._cosine, random_seed, reached)
        if not len(found):
            return None
        near = found[:, n:] @ self.directions.T >= self._cosine
        nearby = np.where(near, distances_to_limits(arm, found[:, :n])[:, None], -np.inf).max(axis=0)
        goals = np.full((len(self.directions), 9), np.nan)
        goals[:, :DIRECTION], goals[:, DIRECTION:LATERAL] = place, self.directions
        _, exact, _ = self._limit_distances.find(goals, STARTS)
        distances: Array = np.maximum(nearby, exact)
        return distances
