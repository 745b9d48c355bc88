# SPDX-License-Identifier: Apache-2.0
"""Rigid motions as 15 x 15 matrices: they transform a point and a direction linearly, products and all.

The vector of a point x and a direction y is m = (1, x, y, x.x, x.y, x cross y, (x.x) y - 2 (x.y) x), after
the equations of Raghavan and Roth 1990.
"""

from __future__ import annotations

import numpy as np

from ik_node.checks import Array
from ik_node.model.rotations import hat

# the monomials of a joint, 1, cos q, sin q or 1, t, t^2, as forms in (Y^2, X Y, X^2), a row for each
HALF_TANGENT = np.array([[1.0, 0.0, 1.0], [1.0, 0.0, -1.0], [0.0, 2.0, 0.0]])
AFFINE = np.eye(3)


def vector_of(
    one: float = 0.0,
    x: Array | None = None,
    y: Array | None = None,
    square: float = 0.0,
    along: float = 0.0,
    cross: Array | None = None,
) -> Array:
    """Return the covector (15,) with these parts."""
    zero = np.zeros(3)
    parts = [part if part is not None else zero for part in (x, y, np.array([square, along]), cross, zero)]
    return np.concatenate([[one], *parts])


def motion_matrix(turn: Array, shift: Array) -> Array:
    """Return the matrix (15, 15) of x -> turn x + shift, y -> turn y."""
    m = np.zeros((15, 15))
    x, y, square, along, cross, last = slice(1, 4), slice(4, 7), 7, 8, slice(9, 12), slice(12, 15)
    m[0, 0] = m[square, square] = m[along, along] = 1.0
    m[x, 0], m[x, x], m[y, y], m[cross, cross], m[last, last] = shift, turn, turn, turn, turn
    m[square, 0], m[square, x] = shift @ shift, 2.0 * shift @ turn
    m[along, y] = shift @ turn
    m[cross, y] = hat(shift) @ turn
    m[last, y] = (shift @ shift) * turn - 2.0 * np.outer(shift, shift @ turn)
    m[last, along] = -2.0 * shift
    m[last, cross] = -2.0 * hat(shift) @ turn
    return m


def joint_matrices(axis: Array, point: Array, slides: bool, inverse: bool) -> Array:
    """Return the matrices (3, 15, 15) of 1, cos q, sin q, or 1, t, t^2, whose sum is a joint's motion."""
    sign = -1.0 if inverse else 1.0
    if slides:
        none, one, back = (motion_matrix(np.eye(3), t * sign * axis) for t in (0.0, 1.0, -1.0))
        return np.array([none, (one - back) / 2.0, (one + back) / 2.0 - none])
    k = hat(axis)
    turns = (np.eye(3), np.eye(3) + 2.0 * k @ k, np.eye(3) + sign * k + k @ k)  # by 0, pi, pi / 2
    zero, half, quarter = (motion_matrix(turn, point - turn @ point) for turn in turns)
    mean = (zero + half) / 2.0
    return np.array([mean, (zero - half) / 2.0, quarter - mean])


def invariants_of(axis: Array, point: Array, slides: bool) -> Array:
    """Return covectors (k, 15) that are invariant under a joint, the two of the point alone first."""
    if not slides:
        return np.array(
            [
                vector_of(x=axis),
                vector_of(one=float(point @ point), x=-2.0 * point, square=1.0),
                vector_of(y=axis),
                vector_of(y=-point, along=1.0),
                vector_of(y=-np.cross(axis, point), cross=axis),
            ]
        )
    across = np.linalg.svd(axis[None])[2][1:]
    return np.array(
        [*(vector_of(x=a) for a in across), *(vector_of(y=a) for a in np.eye(3)), vector_of(cross=axis)]
    )
