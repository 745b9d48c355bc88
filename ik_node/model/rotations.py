# SPDX-License-Identifier: Apache-2.0
"""Rotations about axes."""

from __future__ import annotations

import numpy as np

from ik_node.checks import Array


def hat(a: Array) -> Array:
    """Return the matrices (..., 3, 3) of the cross product with a (..., 3): hat(a) @ b is a x b."""
    matrix: Array = np.zeros((*a.shape, 3))
    matrix[..., 2, 1], matrix[..., 0, 2], matrix[..., 1, 0] = np.moveaxis(a, -1, 0)
    return matrix - matrix.swapaxes(-1, -2)


def rotations(axes: Array, angles: Array) -> Array:
    """Return the rotations (k, 3, 3) about unit axes (3,) or (k, 3) by angles (k,) [rad].

    Rodrigues' formula: I + sin K + (1 - cos) K K.
    """
    cross = hat(axes)
    sine, versine = np.sin(angles)[:, None, None], (1.0 - np.cos(angles))[:, None, None]
    return np.eye(3) + sine * cross + versine * (cross @ cross)


def turned_by(vector: Array) -> Array:
    """Return the rotation (3, 3) by a rotation vector (3,) [rad]."""
    angle = float(np.linalg.norm(vector))
    return rotations(vector / max(angle, 1e-300), np.array([angle]))[0]
