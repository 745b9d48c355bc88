# SPDX-License-Identifier: Apache-2.0
"""B-splines: the smooth curves of joint paths and of their timing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array

DEGREE = 5  # of curves, odd

Columns = NDArray[np.intp]


def knots_between(breaks: Array, degree: int) -> Array:
    """Return the clamped knots of a spline whose pieces meet at breaks (k,)."""
    return np.concatenate([np.repeat(breaks[0], degree), breaks, np.repeat(breaks[-1], degree)])


def basis(knots: Array, degree: int, x: Array, derivatives: int = 0) -> tuple[Columns, Array]:
    """Return which B-splines are not 0 at x (p,), and their values and derivatives there.

    Columns (p, degree + 1) of the coefficients, and (derivatives + 1, p, degree + 1). Cox and de Boor's
    recursion.
    """
    last = len(knots) - degree - 2
    piece = np.clip(np.searchsorted(knots, x, side='right') - 1, degree, last)
    rows = []
    for order in range(derivatives + 1):
        values = np.ones((len(x), 1))
        for k in range(1, degree + 1):
            before = piece[:, None] + np.arange(1 - k, 1)  # of the splines of degree k - 1 that are not 0
            values = values / (knots[before + k] - knots[before])
            if k <= degree - order:
                rising, falling = x[:, None] - knots[before], knots[before + k] - x[:, None]
            else:  # the derivative of a spline of degree k
                rising, falling = np.array(k), np.array(-k)
            none = np.zeros((len(x), 1))
            values = np.hstack([none, values * rising]) + np.hstack([values * falling, none])
        rows.append(values)
    return piece[:, None] + np.arange(-degree, 1), np.array(rows)


class Curve:
    """The spline of DEGREE through values (k, n) at increasing sites (k,), k > DEGREE; not-a-knot."""

    def __init__(self, sites: Array, values: Array) -> None:
        inner = (DEGREE + 1) // 2
        breaks = np.concatenate([sites[:1], sites[inner:-inner], sites[-1:]])
        self._knots = knots_between(breaks, DEGREE)
        columns, rows = basis(self._knots, DEGREE, sites)
        matrix = np.zeros((len(sites), len(sites)))
        np.put_along_axis(matrix, columns, rows[0], axis=1)
        self._coefficients = np.asarray(np.linalg.solve(matrix, values), float)

    def __call__(self, x: Array, derivatives: int = 0) -> Array:
        """Return the curve and its derivatives (derivatives + 1, p, n) at x (p,)."""
        columns, rows = basis(self._knots, DEGREE, x, derivatives)
        curve: Array = np.einsum('dpc,pcn->dpn', rows, self._coefficients[columns])
        return curve
