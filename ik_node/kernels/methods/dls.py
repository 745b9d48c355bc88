"""Damped least squares with a constant damping (damped pseudo-inverse)."""

from math import inf

from ..chain import clip, forward, squared_errors
from ..compiled import compiled
from ..layout import CHORD_TOLERANCE, ITERATIONS, POSITION_TOLERANCE, STALL, WEIGHT
from ..linear import LEAST_DAMPING, damped_step, normal_equations
from .stall import AIM, keeps_improving

DLS_DAMPING = 0.3  # 1/rad^2


@compiled
def descend_dls(joints, tool, limits, goal, options, q, frames, work):
    """Damped least-squares descent from q (n,), in place; frames are left at the returned q.

    The damped pseudo-inverse with the squared error, times DLS_DAMPING, as damping (Chan and Lawrence
    1988). Every step is taken, whether the error falls or not; the best configuration on the way is
    returned. Limits as in descend_lm. Returns the number of iterations.
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient, step, free, best = (
        work[3 * n, :n],
        work[3 * n + 1, :n],
        work[3 * n + 2, :n],
        work[3 * n + 3, :n],
    )
    position_goal = min(options[POSITION_TOLERANCE], AIM) ** 2
    direction_goal = min(options[CHORD_TOLERANCE], AIM) ** 2
    weight = options[WEIGHT]
    clip(q, limits)
    for i in range(n):
        best[i] = q[i]
    least, mark = inf, inf
    iteration = 0
    while True:
        forward(joints, tool, q, frames)
        position, direction = squared_errors(joints, frames, goal)
        cost = position + weight * weight * direction
        if cost < least:
            least = cost
            for i in range(n):
                best[i] = q[i]
        met = position <= position_goal and direction <= direction_goal
        go_on, mark = keeps_improving(least, iteration, options[STALL], mark)
        if met or not go_on or iteration >= options[ITERATIONS]:
            break
        iteration += 1
        normal_equations(joints, frames, goal, weight, jac, hessian, gradient)
        damping = DLS_DAMPING * cost
        for i in range(n):
            outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (
                q[i] >= limits[1, i] and gradient[i] > 0.0
            )
            free[i] = 0.0 if outward else 1.0
            damping = max(damping, LEAST_DAMPING * hessian[i, i])
        damped_step(hessian, gradient, free, damping, factor, step)
        for i in range(n):
            q[i] += step[i]
        clip(q, limits)
    if not cost <= least:
        for i in range(n):
            q[i] = best[i]
        forward(joints, tool, q, frames)
    return iteration
