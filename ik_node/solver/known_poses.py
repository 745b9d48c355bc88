# SPDX-License-Identifier: Apache-2.0
"""KnownPoses: configurations of an arm with their tool poses, where searches for the closest one start."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.solver.unit_size import UnitSize

KNOWN = 2048  # configurations, the same for every goal and seed
CLUSTERS = 64  # of them; a search starts from one of each
MOST_CORNERED = 7  # joints of arms whose corners, every joint at a limit, are known ones


class KnownPoses:
    """table (n + 6, KNOWN): configurations with tool poses, as in kernels.tabulate_poses, cluster by cluster.

    In the unit of UnitSize. Each is in the cluster of the nearest of CLUSTERS configurations that are far
    from each other.
    """

    def __init__(self, arm: Arm, size: UnitSize, random_seed: int) -> None:
        samples = arm.sample(np.random.default_rng((random_seed, KNOWN)), KNOWN)
        if arm.n <= MOST_CORNERED and not arm.has_cones:  # where limits stop many joints, a corner is nearest
            ends = np.array([samples.min(axis=0), samples.max(axis=0)])
            ends = np.where(np.isfinite(arm.limits[:2]), arm.limits[:2], ends)
            samples[: 2**arm.n] = list(itertools.product(*ends.T))
        span = np.ptp(samples, axis=0)
        scaled = (samples / np.where(span > 0.0, span, 1.0)).T.copy()
        nearest, cluster, centre = np.full(KNOWN, np.inf), np.zeros(KNOWN, dtype=np.int64), 0
        for number in range(CLUSTERS):
            distance = np.abs(scaled - scaled[:, centre, None]).max(axis=0)
            cluster[distance < nearest] = number
            nearest = np.minimum(nearest, distance)
            centre = int(nearest.argmax())
        self.table = np.empty((arm.n + 6, KNOWN))
        ordered = samples[np.argsort(cluster, kind='stable')] / size.units
        kernels.tabulate_poses(size.joints, size.tool, ordered, 1.0, self.table)
        self._ends = np.cumsum(np.unique(cluster, return_counts=True)[1])

    def ranked(self, goal: Array, weight: float) -> NDArray[np.int64]:
        """Return the column of each cluster that is nearest to goal (9,), nearest first.

        weight [m/rad]: of the direction.
        """
        ranked = np.empty(len(self._ends), dtype=np.int64)
        kernels.rank_starts(self.table, self._ends, goal, weight, np.empty(KNOWN), ranked)
        return ranked
