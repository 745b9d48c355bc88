# SPDX-License-Identifier: Apache-2.0
"""Rays of clicks and the meshes that they hit."""

from __future__ import annotations

import numpy as np

from ik_node.checks import Array

PARALLEL = 1e-12


def hits(origin: Array, direction: Array, triangles: Array) -> bool:
    """Whether a ray from origin (3,) along direction (3,) hits any of triangles (k, 3, 3), from either side.

    Möller and Trumbore, Fast, minimum storage ray-triangle intersection, 1997.
    """
    one, other = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    normal = np.cross(direction, other)
    scale = np.einsum('ij,ij->i', one, normal)
    facing = np.abs(scale) > PARALLEL * np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    scale = np.where(facing, scale, 1.0)
    gap = origin - triangles[:, 0]
    across = np.cross(gap, one)
    u = np.einsum('ij,ij->i', gap, normal) / scale
    v = across @ direction / scale
    way = np.einsum('ij,ij->i', other, across) / scale
    return bool((facing & (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (way > 0.0)).any())
