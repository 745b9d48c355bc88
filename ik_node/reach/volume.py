# SPDX-License-Identifier: Apache-2.0
"""Volume: the directions that an arm can take at the positions of a lattice, and how far from its limits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.reach.survey import Survey
from ik_node.solver.cores import usable_cores

PART = 16  # positions that one thread processes at a time


@dataclass(frozen=True)
class Volume:
    """Values at the positions x (a,), y (b,), z (c,) [m] of a lattice in the base frame, NaN out of reach.

    share (a, b, c): of all directions, those that the tool axis can take there. to_limits (a, b, c) [rad or
    m]: distance to the joint limits of the configuration farthest from them, mean over these directions.
    """

    x: Array
    y: Array
    z: Array
    share: Array
    to_limits: Array


def surveyed(
    survey: Survey, x: Array, y: Array, z: Array, done: Callable[[int], object] = lambda _: None
) -> Volume:
    """Survey the positions of a lattice on all cores; the values do not depend on their number.

    done: called with the number of positions that were completed since the last call.
    """
    shape = len(x), len(y), len(z)
    count = len(x) * len(y) * len(z)
    share, to_limits = np.full(count, np.nan), np.full(count, np.nan)

    def part(first: int) -> int:
        last = min(first + PART, count)
        for row in range(first, last):
            i, j, k = np.unravel_index(row, shape)
            distances = survey.distances(np.array([x[i], y[j], z[k]]), row)
            if distances is not None:
                possible = distances > -np.inf
                share[row] = possible.mean()
                to_limits[row] = distances[possible].mean() if possible.any() else np.nan
        return last - first

    pool = ThreadPoolExecutor(usable_cores())
    try:
        for number in pool.map(part, range(0, count, PART)):
            done(number)
    finally:  # after Ctrl-C only the parts in progress are waited for
        pool.shutdown(cancel_futures=True)
    return Volume(x, y, z, share.reshape(shape), to_limits.reshape(shape))
