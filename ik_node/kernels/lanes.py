# SPDX-License-Identifier: Apache-2.0
"""Closed forms for many goals at once: emit/lanes.py translates these kernels to vector instructions too."""

from __future__ import annotations

from math import inf, isnan

import numpy as np

from .arrays import CHORD_TOLERANCE, DIRECTION, FAMILY, FULL_TURN, KIND, SIZE, WEIGHT, copy, wrap_into_limits
from .chain import forward, goal_errors, met, normal_equations, squared_errors
from .closed_form import (
    EQUAL,
    EXACT,
    HOPELESS,
    PARALLEL,
    STAYED,
    TIGHT,
    may_be_near,
    nearest_pair,
    parallel_pairs,
    planar_candidates,
    wrist_candidates,
    wrist_pairs,
)
from .language import B1, F1, F2, I0, R1, R2, compiled, each

# Lanes look for candidates a little beyond where the scalar kernel does, so that they miss none of its.
REPLACED = {'ROOT_SLACK': 2e-6}
SIZES = {
    'joints': (5, 10),
    'tool': (9,),
    'limits': (2, 5),
    'form': (14, 3),
    'goals': (None, 9),
    'options': (9,),
    'seeds': (None, 5),
    'q': (None, 5),
    'errors': (None, 2),
}
ROUNDING = 1e-11  # rad: moves that are the same in exact arithmetic differ by less
TIE = 4e-9  # rad: moves that differ by less, but not by ROUNDING, may be EQUAL there
INDEPENDENT = 1e-7  # share of its square that is left of a column of the Jacobian beside those before it


@compiled
def nearest_candidate(form, limits, goal, options, seed, work, rows, best):
    """Write into best (5,) the configuration of candidates that is nearest to seed (5,), if there is one.

    Returns (its largest single joint move, by how much it is clear that no other one is nearer, and whether goal
    is regular). Of moves that are EQUAL the first counts. That is clear where they differ by ROUNDING only, as
    those of mirrored elbows do, unless it is rounding that says which one comes first.
    """
    parallel, pairs = form[KIND, FAMILY] == PARALLEL, work[7:]
    if parallel:
        count = parallel_pairs(form, limits, goal, seed, work, pairs)
    else:
        count = wrist_pairs(form, limits, goal, seed, pairs)
    least, clear, outer_of_best, missed = inf, inf, 0.0, 0.0
    far = 2.0 * max(HOPELESS, options[CHORD_TOLERANCE])
    regular = count >= 0
    for _ in range(count):
        k = nearest_pair(pairs, count)
        if not pairs[k, 0] < least + TIE:
            break
        if parallel:
            determined, missed = planar_candidates(form, goal, pairs[k], seed, rows)
            regular = regular and determined
        else:
            wrist_candidates(form, goal, pairs[k], rows)
        outer = pairs[k, 0]
        pairs[k, 0] = inf
        for r in range(2 if parallel else 4):
            if isnan(rows[r, 0]) or missed > far:  # FK rejects it
                continue
            move = outer  # of joint 1, and of joint 5 unless there is a wrist: these are within the limits
            for i in range(1, 4 if parallel else 5):
                value = rows[r, i]
                if isnan(value):  # free
                    value = min(max(seed[i], limits[0, i]), limits[1, i])
                value = wrap_into_limits(value, seed[i], limits[0, i], limits[1, i])
                rows[r, i] = value
                move = inf if isnan(value) else max(move, abs(value - seed[i]))
            gap = move - least
            if gap < -EQUAL:
                least, outer_of_best, clear = move, outer, -gap
                copy(rows[r], best)
            elif abs(gap) > ROUNDING or ROUNDING < abs(outer - outer_of_best) < TIE:
                clear = min(clear, abs(gap))
    return least, clear, regular


@compiled
def is_regular(joints, frames, goal, options, jac, hessian, gradient):
    """Whether the Jacobian at frames is far from losing rank: rounding then moves the solution by little.

    By the pivots of J^T J = L D L^T. Columns that are zero, of a roll about the tool, are left out.
    """
    normal_equations(joints, frames, goal, options[WEIGHT], jac, hessian, gradient)
    regular = True
    for i in range(5):
        pivot = hessian[i, i]
        for j in range(i):
            s = hessian[i, j]
            for k in range(j):
                s -= hessian[i, k] * hessian[k, j]
            hessian[j, i] = s
            hessian[i, j] = s / hessian[j, j] if hessian[j, j] > 0.0 else 0.0
            pivot -= s * hessian[i, j]
        if hessian[i, i] > 1e-18:
            regular = regular and pivot > INDEPENDENT * hessian[i, i]
            hessian[i, i] = pivot
        else:
            hessian[i, i] = 0.0
    return regular


@compiled
def nearest_in_lanes(
    lanes: I0, joints: R2, tool: R1, limits: R2, form: R2, goals: F2, options: F1, seeds: F2, q: F2, errors:
    F2, solved: B1,
):  # fmt: skip
    """nearest_solution of goals (N, 9), where it is beyond doubt, for a form that is exact.

    seeds (N, 5), or (1, 5) for all. Writes solved (N,), and where it is True q (N, 5) and errors (N, 2) [m, rad].
    False leaves a goal to solve_many: it has no solution, or one that is nearly as near as another one, next to
    a limit or a singularity, not confirmed by FK, or on the branch of a seed that meets the goal. lanes: how many
    at a time at most. Returns how many there were: 0 if the processor has no such vectors, and nothing is written.
    """
    if lanes > 1:  # more than these kernels without vectors have
        return 0
    goal, seed, best = np.empty(9), np.empty(5), np.empty(5)
    work, rows, frames = np.empty((11, 7)), np.empty((4, 5)), np.empty((13, 3))
    jac, hessian, gradient = np.empty((5, 6)), np.empty((5, 5)), np.empty(5)
    for k in each(goals.shape[0]):
        solved[k] = False
        copy(goals[k], goal)
        copy(seeds[min(k, seeds.shape[0] - 1)], seed)
        if isnan(goal[DIRECTION]) or outside(limits, seed, False):
            continue
        least, clear, regular = nearest_candidate(form, limits, goal, options, seed, work, rows, best)
        if not regular or not least < inf or not clear > TIE or not abs(least - 0.5 * FULL_TURN) > TIE:
            continue
        if least > 0.5 * STAYED and may_be_near(form, goal, seed, 2.0 * TIGHT * form[KIND, SIZE]):
            continue
        if outside(limits, best, True):
            continue
        forward(joints, tool, best, frames)
        position, direction = squared_errors(joints, frames, goal)
        if not (position <= EXACT * EXACT and direction <= EXACT * EXACT and met(position, direction, options)):
            continue
        if not is_regular(joints, frames, goal, options, jac, hessian, gradient):
            continue
        copy(best, q[k])
        errors[k, 0], errors[k, 1] = goal_errors(joints, frames, goal)
        solved[k] = True
    return 1


@compiled
def outside(limits, q, strictly):
    """Whether q (5,) is outside the limits (2, 5), or strictly: also at one."""
    found = False
    for i in range(5):
        at = strictly and (q[i] == limits[0, i] or q[i] == limits[1, i])
        found = found or at or not (limits[0, i] <= q[i] <= limits[1, i])
    return found
