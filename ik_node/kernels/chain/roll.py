# SPDX-License-Identifier: Apache-2.0
"""A spare last joint that serves the lateral direction."""

from math import atan2, cos, isnan

import numpy as np

from ..arrays.layout import LATERAL
from ..arrays.rotation import harmonics, wrap_into_limits
from ..runtime.compiled import compiled
from .forward import angle_between, forward


@compiled
def serve_lateral(joints, tool, limits, goal, roll, seed, q):
    """Turn joint roll of q (n,), in place, so that the tool's lateral axis comes nearest to the goal's.

    roll: the last joint, whose axis is the tool axis, so that nothing else moves; -1 where there is none.
    Of whole turns the nearest to seed (n,) is taken; a limit in the way leaves the better end. Returns the
    angle [rad] that remains between the lateral axes.
    """
    m = joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    forward(joints, tool, q, frames)
    if roll >= 0:
        lateral = frames[2 * m + 2]
        _, b, c = harmonics(
            frames[m - 1],
            lateral[0],
            lateral[1],
            lateral[2],
            goal[LATERAL],
            goal[LATERAL + 1],
            goal[LATERAL + 2],
        )
        if b * b + c * c > 1e-18:
            low, high = limits[0, roll], limits[1, roll]
            wanted = q[roll] + atan2(c, b)
            turned_there = wrap_into_limits(wanted, seed[roll], low, high)
            if isnan(turned_there):
                turned_there = low if cos(low - wanted) > cos(high - wanted) else high
            q[roll] = turned_there
            forward(joints, tool, q, frames)
    return angle_between(frames[2 * m + 2], goal[LATERAL:])
