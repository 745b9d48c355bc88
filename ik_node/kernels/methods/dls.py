# SPDX-License-Identifier: Apache-2.0
"""Damped least squares with a constant damping (damped pseudo-inverse)."""

from ..arrays import WEIGHT
from ..chain import MIN_DAMPING, clip, damped_step, hold_in_balls, normal_equations, squared_errors
from ..language import compiled, specialised
from .driver import anneal, drive

DAMPING = 0.3  # 1/rad^2


@compiled
def step(iteration, joints, tool, limits, goal, options, q, frames, work):
    """One damped least-squares step, taken whether the error falls or not.

    The damped pseudo-inverse with the squared error, times DAMPING, as damping (Chan and Lawrence 1988).
    Limits as in descend_lm.
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient, move, free = work[3 * n, :n], work[3 * n + 1, :n], work[3 * n + 2, :n]
    weight = options[WEIGHT]
    position, direction = squared_errors(joints, frames, goal)
    normal_equations(joints, frames, goal, weight, jac, hessian, gradient)
    damping = DAMPING * (position + weight * weight * direction)
    for i in range(n):
        outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0)
        free[i] = 0.0 if outward else 1.0
        damping = max(damping, MIN_DAMPING * hessian[i, i])
    if limits.shape[0] > 2:
        hold_in_balls(q, limits, gradient, hessian, False)
    damped_step(hessian, gradient, free, damping, factor, move)
    for i in range(n):
        q[i] += move[i]
    clip(q, limits)
    return True


local_dls = specialised(drive, 'local_dls', step=step)
search_dls = specialised(anneal, 'search_dls', descend=local_dls)
