# SPDX-License-Identifier: Apache-2.0
"""Steps along the Jacobian's transpose."""

from math import inf

from ..arrays import WEIGHT
from ..chain import clip, hold_in_balls, normal_equations
from ..language import compiled, specialised
from .driver import MEMORY, anneal, drive

MAX_STEP = 0.7  # rad or m, of a joint in one step


@compiled
def step(iteration, joints, tool, limits, goal, options, q, frames, work):
    """One step along J^T e, of the best length for the linear model, <e, J J^T e> / |J J^T e|^2 (Buss 2004).

    Each length is used twice, which ends the zigzag that makes steepest descent slow near the target
    (Raydan and Svaiter 2002: Cauchy-Barzilai-Borwein). No joint moves more than MAX_STEP at once;
    joints at a limit that the step pushes further out are frozen.
    """
    n = q.shape[0]
    hessian, jac = work[:n, :n], work[2 * n : 3 * n, :6]
    gradient, memory = work[3 * n, :n], work[3 * n + MEMORY]
    length = memory[0]
    normal_equations(joints, frames, goal, options[WEIGHT], jac, hessian, gradient)
    if limits.shape[0] > 2:
        hold_in_balls(q, limits, gradient, hessian, False)
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
        memory[0] = length
    if not (across > 0.0 and 0.0 < length < inf):
        return False
    share = min(1.0, MAX_STEP / (length * steepest))
    for i in range(n):
        q[i] += share * length * gradient[i]
    clip(q, limits)
    return True


local_transpose = specialised(drive, 'local_transpose', step=step)
search_transpose = specialised(anneal, 'search_transpose', descend=local_transpose)
