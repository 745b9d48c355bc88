# SPDX-License-Identifier: Apache-2.0
"""Volume: what an arm can do at the positions of a lattice."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.reach.survey import Reached, Survey
from ik_node.solver.cores import usable_cores

PART = 16  # positions that one thread processes at a time


@dataclass(frozen=True)
class Volume:
    """Values at the positions x (a,), y (b,), z (c,) [m] of a lattice in the base frame, NaN out of reach.

    Each (a, b, c). share: of all directions, those that the tool axis can take there. Means over these, of
    the configuration farthest from the joint limits: to_limits [rad or m], its distance to them; singular,
    the least singular value of the Jacobian, see least_singular_values. solutions: mean number of solutions
    over the directions that are met exactly; None: they were not counted.
    """

    x: Array
    y: Array
    z: Array
    share: Array
    to_limits: Array
    singular: Array
    solutions: Array | None


def surveyed(
    survey: Survey, x: Array, y: Array, z: Array, done: Callable[[int], object] = lambda _: None
) -> Volume:
    """Survey the positions of a lattice on all cores; the values do not depend on their number.

    done: called with the number of positions that were completed since the last call.
    """
    shape = len(x), len(y), len(z)
    count = len(x) * len(y) * len(z)
    values = np.full((4, count), np.nan)

    def part(first: int) -> int:
        last = min(first + PART, count)
        for row in range(first, last):
            i, j, k = np.unravel_index(row, shape)
            reached = survey.at(np.array([x[i], y[j], z[k]]), row)
            if reached is not None:
                values[:, row] = _means(reached)
        return last - first

    pool = ThreadPoolExecutor(usable_cores())
    try:
        for number in pool.map(part, range(0, count, PART)):
            done(number)
    finally:  # after Ctrl-C only the parts in progress are waited for
        pool.shutdown(cancel_futures=True)
    share, to_limits, singular, solutions = values.reshape(4, *shape)
    return Volume(x, y, z, share, to_limits, singular, solutions if survey.counts else None)


def _means(reached: Reached) -> tuple[float, float, float, float]:
    """Return share, to_limits, singular and solutions of a position."""
    possible = reached.to_limits > -np.inf
    if not possible.any():
        return 0.0, np.nan, np.nan, np.nan
    counted = np.empty(0) if reached.solutions is None else reached.solutions
    counted = counted[counted > 0]
    return (
        float(possible.mean()),
        float(reached.to_limits[possible].mean()),
        float(reached.singular[possible].mean()),
        float(counted.mean()) if len(counted) else np.nan,
    )
