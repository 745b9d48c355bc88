# SPDX-License-Identifier: Apache-2.0
"""Which directions the tool axis of an arm can take, position by position."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.model.arm import Arm

from .batch import in_parts

PART = 16  # positions that one thread processes at a time
STARTS = 100  # random start configurations per position
POSITION_TOLERANCE = 1e-6  # m
WEIGHT_PER_REACH = 0.02  # one radian weighs as much as this share of the reach: the position dominates
ITERATIONS, STALL_RATIO = 30, 1e-2  # of a descent


def fibonacci_sphere(count: int) -> Array:
    """Return count directions (count, 3), spread evenly over the sphere along a golden-angle spiral."""
    heights = 1.0 - (2.0 * np.arange(count) + 1.0) / count
    angles = np.pi * (3.0 - math.sqrt(5.0)) * np.arange(count)
    radii = np.sqrt(1.0 - heights**2)
    return np.column_stack([radii * np.cos(angles), radii * np.sin(angles), heights])


def reachable_directions(
    arm: Arm,
    positions: Array,
    directions: Array,
    within: float,
    cores: int | None = None,
) -> Iterator[tuple[slice, NDArray[np.bool_], NDArray[np.bool_]]]:
    """Return an iterator over (rows of positions, positions reached, directions reached there) of the parts.

    positions (N, 3) [m], directions (K, 3) unit, base frame. A direction counts if the tool point is at the
    position, to 1e-6 m, and the tool axis within [rad] of the direction. Each part has arrays (rows,) and
    (rows, K) bool. cores: that work, by default all; the results do not depend on their number.
    """
    kernels.prepare(wait=True)  # millions of descents: too slow uncompiled
    cosine = math.cos(within)

    def part(rows: slice) -> tuple[slice, NDArray[np.bool_], NDArray[np.bool_]]:
        there = np.zeros(rows.stop - rows.start, dtype=np.bool_)
        reached = np.zeros((len(there), len(directions)), dtype=np.bool_)
        for k in range(len(there)):
            number = rows.start + k  # also the random seed
            found = configurations_at(arm, positions[number], directions, cosine, number, reached[k])
            there[k] = len(found) > 0
        return rows, there, reached

    return in_parts(part, len(positions), PART, cores)


def configurations_at(
    arm: Arm, position: Array, directions: Array, cosine: float, random_seed: int, reached: NDArray[np.bool_]
) -> Array:
    """Mark in reached (K,) the directions (K, 3) that the tool axis can take at position (3,) [m].

    cosine: of the angle within which a direction counts. Returns configurations there (c, n + 3), each with
    its tool axis: at least one for each marked direction, none if the position is out of reach. The kernel
    reached_directions must be compiled, and reached be False before.
    """
    if math.dist(position, arm.joints[0, 3:6]) > arm.reach + POSITION_TOLERANCE:
        return np.empty((0, arm.n + 3))
    table = np.empty((STARTS + kernels.ATTEMPTS * len(directions), arm.n + 3))
    weight = WEIGHT_PER_REACH * max(arm.reach, 1e-3)
    options = np.array([POSITION_TOLERANCE, 2.0, weight, ITERATIONS, STALL_RATIO])
    state = np.array([random_seed], dtype=np.uint64)
    count = kernels.reached_directions(
        arm.joints, arm.tool, arm.limits, options, position, directions, cosine, STARTS, state, table, reached
    )
    return table[:count]
