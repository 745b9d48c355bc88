# SPDX-License-Identifier: Apache-2.0
"""Where the search for a closest configuration starts: the best known configuration of each cluster."""

from math import inf

from ..arrays.layout import DIRECTION
from ..runtime.compiled import compiled


@compiled
def rank_starts(known, ends, goal, weight, values, ranked):
    """Write into ranked (c,) the columns of known (n + 6, K) with tool poses near goal, nearest first.

    One of each cluster of columns; ends (c,) says where these end. weight [m/rad] of the direction; 0: the
    position alone. values (K,) is scratch.
    """
    n = known.shape[0] - 6
    x, y, z = goal[0], goal[1], goal[2]
    px, py, pz = known[n], known[n + 1], known[n + 2]
    dx, dy, dz = known[n + 3], known[n + 4], known[n + 5]
    for k in range(values.shape[0]):
        values[k] = (px[k] - x) ** 2 + (py[k] - y) ** 2 + (pz[k] - z) ** 2
    if weight > 0.0:
        square = weight * weight
        u, v, w = goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2]
        for k in range(values.shape[0]):
            values[k] += square * ((dx[k] - u) ** 2 + (dy[k] - v) ** 2 + (dz[k] - w) ** 2)
    column = 0
    for cluster in range(ends.shape[0]):
        best, least = column, inf
        for k in range(column, ends[cluster]):
            if values[k] < least:
                best, least = k, values[k]
        column = ends[cluster]
        place = cluster
        while place > 0 and values[ranked[place - 1]] > least:
            ranked[place] = ranked[place - 1]
            place -= 1
        ranked[place] = best
