# SPDX-License-Identifier: Apache-2.0
"""One branch of solutions along a moving goal."""

from math import isnan, sqrt

import numpy as np

from ..arrays.copies import copy
from ..arrays.distance import DISTINCT, largest_difference
from ..arrays.layout import DEVIATION, DIRECTION, LATERAL, SIGNS, WEIGHT
from ..chain.balls import hold_in_balls
from ..chain.forward import clip, forward, goal_errors, met, squared_errors
from ..chain.linear import damped_step, normal_equations
from ..closed_form.candidates import nearest_solution
from ..methods.lm import descend_lm
from ..runtime.compiled import compiled

SMALLEST_SHARE = 1.0 / 4096.0  # of a step: where even this is not a smooth motion, the branch has ended
BEND = 0.3  # a joint move may miss its linear prediction by this share and still be the same branch
DEMANDED = 3.0  # times the linear prediction: no joint move of a step needs more than this
LARGE_MOVE = 0.2  # rad or m: larger ones are looked at piece by piece


@compiled
def interpolate_goal(goal, start, share, out):
    """Write out (9,): the goal that lies share of the way from start (9,) to goal (9,)."""
    copy(goal, out)
    for i in range(3):
        out[i] = start[i] + share * (goal[i] - start[i])
    if not isnan(goal[DIRECTION]):
        size = 0.0
        for i in range(3, 6):
            out[i] = start[i] + share * (goal[i] - start[i])
            size += out[i] * out[i]
        size = 1.0 / sqrt(size) if size > 1e-12 else 1.0
        for i in range(3, 6):
            out[i] *= size


@compiled
def predict(joints, tool, limits, goal, options, q, frames, work, step):
    """Write step (n,): the joint move from q (n,) towards goal by the linear model, limits kept.

    Frames are left at q. Returns (weighted error at q [m], largest joint move).
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient, free = work[3 * n, :n], work[3 * n + 1, :n]
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    normal_equations(joints, frames, goal, options[WEIGHT], jac, hessian, gradient)
    for i in range(n):
        outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0)
        free[i] = 0.0 if outward else 1.0
    if limits.shape[0] > 2:
        hold_in_balls(q, limits, gradient, hessian, False)
    damped_step(hessian, gradient, free, 1e-8 * options[WEIGHT] * options[WEIGHT], factor, step)
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(step[i]))
    return sqrt(position + options[WEIGHT] * options[WEIGHT] * direction), largest


@compiled
def follow(joints, tool, limits, goal, options, q, work):
    """Move q (n,) to goal without leaving its branch, in place.

    The way to goal is cut until each piece moves the joints as its linear prediction says; where
    no piece is small enough, the branch ends and q stays at that point. Goals on the way need not
    be reachable (4 effective DoF): there the nearest configuration serves. work (3 n + 8,
    max(n, 9)) is scratch. Returns (solved, position error [m], direction error [rad]).
    """
    n, m = q.shape[0], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    base = 3 * n + 4  # descend_lm and predict use the rows before
    step, trial, start, target = work[base, :n], work[base + 1, :n], work[base + 2, :9], work[base + 3, :9]
    clip(q, limits)
    forward(joints, tool, q, frames)
    copy(goal, start)
    copy(frames[2 * m], start[:DIRECTION])
    if not isnan(goal[DIRECTION]):
        copy(frames[2 * m + 1], start[DIRECTION:LATERAL])
    done, share = 0.0, 1.0
    while done < 1.0:
        share = min(share, 1.0 - done)
        last = done + share >= 1.0
        interpolate_goal(goal, start, 1.0 if last else done + share, target)
        before, predicted = predict(joints, tool, limits, target, options, q, frames, work, step)
        copy(q, trial)
        descend_lm(joints, tool, limits, target, options, 1e-8, trial, frames, work)
        position, direction = squared_errors(joints, frames, target)
        near = met(position, direction, options)
        if not last:
            near = near or sqrt(position + options[WEIGHT] * options[WEIGHT] * direction) <= BEND * before
        missed = 0.0
        for i in range(n):
            missed = max(missed, abs(trial[i] - q[i] - step[i]))
        if near and missed <= BEND * predicted + 1e-6:
            copy(trial, q)
            done += share
            share *= 2.0
            continue
        share *= 0.5
        if share < SMALLEST_SHARE:
            break
    forward(joints, tool, q, frames)
    position_error, direction_error = goal_errors(joints, frames, goal)
    return done >= 1.0, position_error, direction_error


@compiled
def has_spare_joints(n, goal):
    """Whether n joints are more than any goal of this kind needs."""
    return n > (3 if isnan(goal[DIRECTION]) else 5)


@compiled
def passes_between(joints, tool, limits, goal, options, q, arrived, move, frames, work):
    """Whether half-way from q (n,) to arrived (n,) the tool is half-way to goal, but for a share of the move.

    So a step with some motion in the null space is told from a jump. frames are those at q.
    """
    n, m = q.shape[0], joints.shape[0]
    base = 3 * n + 5
    middle, start, target = work[base, :n], work[base + 1, :9], work[base + 2, :9]
    copy(goal, start)
    copy(frames[2 * m], start[:DIRECTION])
    if not isnan(goal[DIRECTION]):
        copy(frames[2 * m + 1], start[DIRECTION:LATERAL])
    interpolate_goal(goal, start, 0.5, target)
    for i in range(n):
        middle[i] = 0.5 * (q[i] + arrived[i])
    descend_lm(joints, tool, limits, target, options, 1e-8, middle, frames, work)
    position, direction = squared_errors(joints, frames, target)
    if not met(position, direction, options):
        return False
    missed = 0.0
    for i in range(n):
        missed = max(missed, abs(middle[i] - 0.5 * (q[i] + arrived[i])))
    return missed <= BEND * move


@compiled
def is_smooth(joints, tool, limits, goal, options, q, arrived, work):
    """Whether arrived (n,), a solution of goal, continues the branch of q (n,)."""
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    step = work[3 * n + 4, :n]
    _, predicted = predict(joints, tool, limits, goal, options, q, frames, work, step)
    move = largest_difference(arrived, q)
    if move <= min(DEMANDED * predicted + 1e-6, LARGE_MOVE):
        return True
    if move <= LARGE_MOVE and has_spare_joints(n, goal):
        return passes_between(joints, tool, limits, goal, options, q, arrived, move, frames, work)
    followed = q.copy()
    if not follow(joints, tool, limits, goal, options, followed, work)[0]:
        return False
    return largest_difference(followed, arrived) <= DISTINCT


@compiled
def leave_null_space(joints, tool, goal, options, q, step, frames, work):
    """Take from step (n,), a joint move at q (n,), what moves neither tool point nor tool axis, in place.

    Such a motion serves no goal, and carried on it would never end.
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient, free = work[3 * n, :n], work[3 * n + 1, :n]
    forward(joints, tool, q, frames)
    normal_equations(joints, frames, goal, options[WEIGHT], jac, hessian, gradient)
    for i in range(n):
        free[i], gradient[i] = 1.0, 0.0
        for j in range(n):
            gradient[i] += hessian[max(i, j), min(i, j)] * step[j]
    damped_step(hessian, gradient, free, 1e-8 * options[WEIGHT] * options[WEIGHT], factor, step)


@compiled
def advance(joints, tool, limits, form, goal, options, q, before, work):
    """Move q (n,) on to goal along its branch, in place: the nearest solution if it is a smooth step.

    before (n,): the configuration before q, or q itself. What is nearest is measured from where the
    motion would carry the arm, so that it passes straight through places where branches cross.
    Else the branch is followed piece by piece. Returns (solved, position error [m], direction error
    [rad]); not solved: the branch has ended and q is its last point on the way.
    """
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    step, trial, ahead = work[3 * n + 4, :n], work[3 * n + 5, :n], work[3 * n + 6, :n]
    carried = 0.0
    for i in range(n):
        step[i] = q[i] - before[i]
    if has_spare_joints(n, goal):
        leave_null_space(joints, tool, goal, options, q, step, frames, work)
    for i in range(n):
        ahead[i] = q[i] + step[i]
        carried = max(carried, abs(step[i]))
    clip(q, limits)
    clip(ahead, limits)
    if form[SIGNS, DEVIATION] == 0.0 and not isnan(goal[DIRECTION]):
        solved, position_error, direction_error, _ = nearest_solution(
            joints, tool, limits, form, goal, options, ahead, trial
        )
    else:
        copy(ahead, trial)
        descend_lm(joints, tool, limits, goal, options, 1e-8, trial, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        solved = met(position, direction, options)
        position_error, direction_error = goal_errors(joints, frames, goal)
    if solved:
        move, missed = 0.0, 0.0
        for i in range(n):
            move = max(move, abs(trial[i] - q[i]))
            missed = max(missed, abs(trial[i] - ahead[i]))
        smooth = missed <= BEND * carried
        if not smooth:
            _, predicted = predict(joints, tool, limits, goal, options, q, frames, work, step)
            smooth = move <= min(DEMANDED * predicted + 1e-6, LARGE_MOVE)
        if smooth:
            copy(trial, q)
            return True, position_error, direction_error
    return follow(joints, tool, limits, goal, options, q, work)
