# SPDX-License-Identifier: Apache-2.0
"""Volume: what an arm can do at the positions of a lattice."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.reach.refinement import COARSEST, Rows, coarse_rows, refined
from ik_node.reach.survey import Reached, Survey
from ik_node.solver.cores import usable_cores

PART = 16  # positions that one thread processes at a time


@dataclass(frozen=True)
class Volume:
    """Values at the positions x (a,), y (b,), z (c,) [m] of a lattice in the base frame, NaN out of reach.

    Each (a, b, c). share: of all directions, those that the tool axis can take there. Means over these, of
    the configuration farthest from the joint limits: to_limits [rad or m], its distance to them; singular,
    the least singular value of the Jacobian, see least_singular_values. solutions: mean number of solutions
    over the directions that are met exactly; None: they were not counted. surveyed: False where the values
    are interpolated.
    """

    x: Array
    y: Array
    z: Array
    share: Array
    to_limits: Array
    singular: Array
    solutions: Array | None
    surveyed: NDArray[np.bool_]


def surveyed(
    survey: Survey,
    x: Array,
    y: Array,
    z: Array,
    tolerance: float = 0.0,
    done: Callable[[int], object] = lambda _: None,
) -> Volume:
    """Survey the positions of a lattice on all cores; the values do not depend on their number.

    tolerance: positions between which each value changes by no more than this share of its range over the
    coarsest lattice are interpolated; 0: every position is surveyed. done: called with the number of
    positions that were completed since the last call.
    """
    shape = len(x), len(y), len(z)
    values = np.full((4, math.prod(shape)), np.nan)
    known = np.zeros(math.prod(shape), np.bool_)

    def part(rows: Rows) -> int:
        for row in rows.tolist():
            i, j, k = np.unravel_index(row, shape)
            reached = survey.at(np.array([x[i], y[j], z[k]]), row)
            if reached is not None:
                values[:, row] = _means(reached)
        return len(rows)

    pool = ThreadPoolExecutor(usable_cores())

    def fill(rows: Rows) -> None:
        for number in pool.map(part, np.split(rows, range(PART, len(rows), PART))):
            done(number)
        known[rows] = True

    try:
        stride = COARSEST if tolerance > 0.0 else 1
        fill(coarse_rows(shape, stride))
        with np.errstate(invalid='ignore'):  # joints without limits are infinitely far from them
            allowed = tolerance * (np.fmax.reduce(values, axis=1) - np.fmin.reduce(values, axis=1))
        while stride > 1:
            rows, between, uncertain = refined(values, shape, stride, allowed)
            values[:, rows] = between
            values[:, uncertain] = np.nan
            done(len(rows) - len(uncertain))
            fill(uncertain)
            stride //= 2
    finally:  # after Ctrl-C only the parts in progress are waited for
        pool.shutdown(cancel_futures=True)
    share, to_limits, singular, solutions = values.reshape(4, *shape)
    return Volume(
        x, y, z, share, to_limits, singular, solutions if survey.counts else None, known.reshape(shape)
    )


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
