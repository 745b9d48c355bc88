"""Steps along the Jacobian's transpose."""

from math import inf

from ..chain import clip, forward, squared_errors
from ..compiled import compiled
from ..layout import CHORD_TOLERANCE, ITERATIONS, POSITION_TOLERANCE, STALL, WEIGHT
from ..linear import normal_equations
from .stall import AIM, keeps_improving

MOST_STEP = 0.7  # rad or m, of a joint in one step along the Jacobian's transpose


@compiled
def descend_transpose(joints, tool, limits, goal, options, q, frames, work):
    """Jacobian-transpose descent from q (n,), in place; frames are left at the returned q.

    The step along J^T e is the one that is best for the linear model, <e, J J^T e> / |J J^T e|^2
    (Buss 2004). It is used twice, which ends the zigzag that makes steepest descent slow near the
    target (Raydan and Svaiter 2002: Cauchy-Barzilai-Borwein). No joint moves more than MOST_STEP at
    once; joints at a limit that the step pushes further out are frozen. The best configuration on
    the way is returned. Returns the number of iterations.
    """
    n = q.shape[0]
    hessian, jac = work[:n, :n], work[2 * n : 3 * n, :6]
    gradient, best = work[3 * n, :n], work[3 * n + 1, :n]
    position_goal = min(options[POSITION_TOLERANCE], AIM) ** 2
    direction_goal = min(options[CHORD_TOLERANCE], AIM) ** 2
    weight = options[WEIGHT]
    clip(q, limits)
    for i in range(n):
        best[i] = q[i]
    least, mark, length = inf, inf, 0.0
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
        across, steepest = 0.0, 0.0
        for i in range(n):
            if (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0):
                gradient[i] = 0.0
            across += gradient[i] * gradient[i]
            steepest = max(steepest, abs(gradient[i]))
        if iteration % 2 == 1 or length == 0.0:
            moved = 0.0
            for k in range(6):
                total = 0.0
                for i in range(n):
                    total += jac[i, k] * gradient[i]
                moved += total * total
            length = across / moved if moved > 0.0 else 0.0
        if not (across > 0.0 and 0.0 < length < inf):
            break
        share = min(1.0, MOST_STEP / (length * steepest))
        for i in range(n):
            q[i] += share * length * gradient[i]
        clip(q, limits)
    if not cost <= least:
        for i in range(n):
            q[i] = best[i]
        forward(joints, tool, q, frames)
    return iteration
