# SPDX-License-Identifier: Apache-2.0
"""A table of poses at random joint values, and which of them are nearest to a goal."""

from math import inf, isnan

import numpy as np

from ..arrays.layout import DIRECTION
from ..runtime.compiled import compiled
from .forward import forward


@compiled
def tabulate_poses(joints, tool, samples, weight, table):
    """Fill table (n + 6, K) from samples (K, n): configurations, tool points, weighted tool axes."""
    n = samples.shape[1]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    m = joints.shape[0]
    for k in range(samples.shape[0]):
        forward(joints, tool, samples[k], frames)
        for i in range(n):
            table[i, k] = samples[k, i]
        for i in range(3):
            table[n + i, k] = frames[2 * m, i]
            table[n + 3 + i, k] = weight * frames[2 * m + 1, i]


@compiled
def squared_distances(table, goal, weight, distances):
    """Write the squared distances (K,) from goal to the tool poses of table."""
    n = table.shape[0] - 6
    x, y, z = goal[0], goal[1], goal[2]
    px, py, pz = table[n], table[n + 1], table[n + 2]
    dx, dy, dz = table[n + 3], table[n + 4], table[n + 5]
    if isnan(goal[DIRECTION]):
        for k in range(distances.shape[0]):
            distances[k] = (px[k] - x) ** 2 + (py[k] - y) ** 2 + (pz[k] - z) ** 2
        return
    u, v, w = weight * goal[DIRECTION], weight * goal[DIRECTION + 1], weight * goal[DIRECTION + 2]
    for k in range(distances.shape[0]):
        position = (px[k] - x) ** 2 + (py[k] - y) ** 2 + (pz[k] - z) ** 2
        distances[k] = position + (dx[k] - u) ** 2 + (dy[k] - v) ** 2 + (dz[k] - w) ** 2


@compiled
def distances_but_nearest(table, goal, weight, taken, distances):
    """Write the squared distances (K,), infinite for as many of the nearest poses as are taken."""
    squared_distances(table, goal, weight, distances)
    for _ in range(taken):
        distances[distances.argmin()] = inf
