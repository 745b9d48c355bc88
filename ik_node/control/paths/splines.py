# SPDX-License-Identifier: Apache-2.0
"""B-splines: the smooth curves of joint paths and of their timing."""

from __future__ import annotations

import numpy as np

from ik_node.checks import Array


def knots_between(breaks: Array, degree: int) -> Array:
    """Return the clamped knots of a spline whose pieces meet at breaks (k,)."""
    return np.concatenate([np.repeat(breaks[0], degree), breaks, np.repeat(breaks[-1], degree)])


def basis(knots: Array, degree: int, x: Array) -> Array:
    """Return the values (p, count) of all B-splines at x (p,). Cox and de Boor's recursion."""
    last = len(knots) - degree - 2
    piece = np.clip(np.searchsorted(knots, x, side='right') - 1, degree, last)
    rows = np.arange(len(x))
    values = np.zeros((len(x), len(knots) - 1))
    values[rows, piece] = 1.0
    for k in range(1, degree + 1):
        wide = knots[k:-1] - knots[: -k - 1]
        narrow = np.divide(1.0, wide, out=np.zeros_like(wide), where=wide > 0.0)
        rising = (x[:, None] - knots[: -k - 1]) * narrow
        wide = knots[k + 1 :] - knots[1:-k]
        narrow = np.divide(1.0, wide, out=np.zeros_like(wide), where=wide > 0.0)
        falling = (knots[k + 1 :] - x[:, None]) * narrow
        values = rising * values[:, :-1] + falling * values[:, 1:]
    return values


def derivative(knots: Array, degree: int, coefficients: Array) -> Array:
    """Return the coefficients (count - 1, ...) of the derivative: a spline of degree - 1 on knots[1:-1]."""
    wide = knots[degree + 1 : -1] - knots[1 : -degree - 1]
    shape = (-1,) + (1,) * (coefficients.ndim - 1)
    slopes: Array = degree * np.diff(coefficients, axis=0) / wide.reshape(shape)
    return slopes


class Curve:
    """The spline of odd degree through values (k, n) at increasing sites (k,), k > degree; not-a-knot."""

    def __init__(self, sites: Array, values: Array, degree: int = 5) -> None:
        inner = (degree + 1) // 2
        breaks = np.concatenate([sites[:1], sites[inner:-inner], sites[-1:]])
        self._knots, self._degree = knots_between(breaks, degree), degree
        self._coefficients = np.asarray(np.linalg.solve(basis(self._knots, degree, sites), values), float)

    def __call__(self, x: Array, derivatives: int = 0) -> Array:
        """Return the curve and its derivatives (derivatives + 1, p, n) at x (p,)."""
        knots, degree, coefficients = self._knots, self._degree, self._coefficients
        rows = [basis(knots, degree, x) @ coefficients]
        for _ in range(derivatives):
            coefficients = derivative(knots, degree, coefficients)
            knots, degree = knots[1:-1], degree - 1
            rows.append(basis(knots, degree, x) @ coefficients)
        return np.array(rows)
