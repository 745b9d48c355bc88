# SPDX-License-Identifier: Apache-2.0
"""Bounded Levenberg-Marquardt, the default local method."""

from ..arrays import CHORD_TOLERANCE, ITERATIONS, POSITION_TOLERANCE, STALL, WEIGHT, squared
from ..chain import MIN_DAMPING, clip, damped_step, forward, hold_in_balls, met, normal_equations, squared_errors
from ..language import F1, F2, R1, R2, compiled, specialised
from .ccd import close_balls, free_opened, open_balls
from .driver import AIM, anneal

FIRST_DAMPING = 0.1  # 1/rad^2, of a descent that starts far away
LAST_DAMPING = 1e-8  # likewise, of one that starts at a candidate of an algebraic solution
POSITION_FIRST = 1e-2  # share of the direction's weight where only the position can be met exactly
BESIDE = 4.0  # times the direction tolerance: a position at a direction farther off is left


@compiled
def descend_lm(joints, tool, limits, goal, options, damping, q, frames, work):
    """Bounded Levenberg-Marquardt descent from q (n,), in place; frames are left at the returned q.

    Joints at a limit that the gradient pushes further out are frozen for the step; the step is
    clipped to the limits. Balls at the edge of their cone slide along it; where their joints lock, the
    step is that of their rotation vector, and the joints are chosen anew. The damping is the squared
    error times damping [1/rad^2] (Sugihara 2011: large far away, vanishing at the goal), times 10 for
    every step rejected. Ends within AIM and both tolerances, at a local minimum or after the iterations
    allowed. Returns the number of iterations.
    """
    n = q.shape[0]
    hessian, factor = work[:n, :n], work[n : 2 * n, :n]
    jac = work[2 * n : 3 * n, :6]
    gradient, step, free, trial = (
        work[3 * n, :n],
        work[3 * n + 1, :n],
        work[3 * n + 2, :n],
        work[3 * n + 3, :n],
    )
    position_goal = squared(min(options[POSITION_TOLERANCE], AIM))
    direction_goal = squared(min(options[CHORD_TOLERANCE], AIM))
    weight = options[WEIGHT]
    max_iterations = int(options[ITERATIONS])
    stalled, stiffness = 0, 1.0
    clip(q, limits)
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    cost = position + weight * weight * direction
    for iteration in range(max_iterations):
        if position <= position_goal and direction <= direction_goal:
            return iteration
        opened = limits.shape[0] > 2 and open_balls(q, limits, frames)
        normal_equations(joints, frames, goal, weight, jac, hessian, gradient)
        for i in range(n):
            outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0)
            free[i] = 0.0 if outward else 1.0
        floor = 0.0
        for i in range(n):
            floor = max(floor, MIN_DAMPING * hessian[i, i])
        if limits.shape[0] > 2:
            hold_in_balls(q, limits, gradient, hessian, opened)
            if opened:
                free_opened(q, limits, free)
        better = False
        for _ in range(8):
            damped_step(hessian, gradient, free, stiffness * (damping * cost + floor), factor, step)
            for i in range(n):
                trial[i] = q[i] + step[i]
            if opened:
                close_balls(q, limits, step, trial)
            clip(trial, limits)
            forward(joints, tool, trial, frames)
            position, direction = squared_errors(joints, frames, goal)
            new = position + weight * weight * direction
            if new < cost:
                better = True
                break
            stiffness *= 10.0
        if not better:
            forward(joints, tool, q, frames)
            return iteration + 1
        stalled = stalled + 1 if cost - new < options[STALL] * cost else 0
        cost = new
        for i in range(n):
            q[i] = trial[i]
        stiffness = max(0.1 * stiffness, 1.0)
        if stalled == 3:
            return iteration + 1
    return max_iterations


@compiled
def polish_candidate(joints, tool, limits, goal, options, exact, q, frames, work):
    """Descend from q (n,), a candidate of an algebraic solution, in place; return squared errors.

    options: what counts as solved. exact: likewise, as near as rounding goes. An arm with four effective DoF cannot
    meet a direction that was rounded, and the least sum of squares shares that error between direction and position,
    whose tolerance is far smaller. There a second descent, in which the direction weighs less, meets the position.
    """
    descend_lm(joints, tool, limits, goal, exact, LAST_DAMPING, q, frames, work)
    position, direction = squared_errors(joints, frames, goal)
    if not met(position, direction, options) and direction <= squared(BESIDE * options[CHORD_TOLERANCE]):
        weight = exact[WEIGHT]
        exact[WEIGHT] = POSITION_FIRST * weight
        descend_lm(joints, tool, limits, goal, exact, LAST_DAMPING, q, frames, work)
        exact[WEIGHT] = weight
        position, direction = squared_errors(joints, frames, goal)
    return position, direction


@compiled
def local_lm(joints: R2, tool: R1, limits: R2, goal: F1, options: F1, q: F1, frames: F2, work: F2):
    """Levenberg-Marquardt from a start q (n,) that may be far away."""
    return descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)


search_lm = specialised(anneal, 'search_lm', descend=local_lm)
