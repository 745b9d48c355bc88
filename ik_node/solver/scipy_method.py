# SPDX-License-Identifier: Apache-2.0
"""The reference: scipy's bounded least_squares, with an exact Jacobian."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import DIRECTION, ITERATIONS, WEIGHT

FARTHEST = 1e50  # m; the square of more overflows in scipy
PRECISION = 1e-12  # of steps and gradients at which a descent ends


def descend(
    joints: Array,
    tool: Array,
    limits: Array,
    goal: Array,
    options: Array,
    q: Array,
    frames: Array,
    _: Array,
) -> int:
    """One descent by method trf (trust region, reflective at the bounds) from q (n,), in place.

    As kernels.local_lm: within the limits, frames at the returned q; joints without a range stay.
    Returns the number of evaluations.
    """
    kernels.clip(q, limits)
    free = limits[0] < limits[1]
    weight, rows = options[WEIGHT], slice(0, 3) if np.isnan(goal[DIRECTION]) else slice(0, 6)
    jacobian, at = np.empty((len(q), 6)), q.copy()

    def residuals(values: Array) -> Array:
        at[free] = values
        kernels.forward(joints, tool, at, frames)
        return np.concatenate([frames[-3] - goal[:3], weight * (frames[-2] - goal[3:6])])[rows]

    def derivatives(values: Array) -> Array:
        at[free] = values
        kernels.forward(joints, tool, at, frames)
        kernels.jacobian(joints, frames, jacobian)
        return (jacobian[free] * np.repeat([1.0, weight], 3))[:, rows].T

    evaluations = 0
    if free.any() and np.abs(residuals(q[free])).max() < FARTHEST:
        result = least_squares(
            residuals,
            q[free],
            derivatives,
            (limits[0, free], limits[1, free]),
            xtol=PRECISION,
            gtol=PRECISION,
            max_nfev=int(options[ITERATIONS]),
        )
        q[free], evaluations = result.x, result.nfev
        kernels.clip(q, limits)
    kernels.forward(joints, tool, q, frames)
    return int(evaluations)
