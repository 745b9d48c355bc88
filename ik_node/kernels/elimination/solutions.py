# SPDX-License-Identifier: Apache-2.0
"""All solutions by elimination: candidates, polished and checked on the true model, within the limits."""

from __future__ import annotations

from math import inf, isnan, sqrt

import numpy as np

from ..arrays import (
    CHORD_TOLERANCE,
    DIRECTION,
    ITERATIONS,
    POSITION_TOLERANCE,
    ROOT_SLACK,
    WEIGHT,
    copy,
    largest_move,
    squared,
    wrap_into_limits,
)
from ..chain import add_solution, forward, jacobian, met, squared_errors
from ..language import F1, F2, I0, R1, R2, compiled
from ..methods.lm import polish_candidate
from .general import general_candidates
from .layout import ANY_TWO, FAMILY, GENERAL, PAIR, STAGE
from .pair import pair_candidates

EXACT = 1e-9  # m and rad: what a candidate misses by more is polished
FAR_OUTSIDE = 0.05  # rad or m: what may be lost next to a singular solution is nearer to it
HOPELESS = 0.3  # rad and share of the reach: what it misses by more is not a solution
MOST_CANDIDATES = 64
SINGULAR = 1e-5  # share: solutions nearer to a singularity than this cast doubt on how many there are
NEARLY_SINGULAR = 2e-4  # likewise, for equations of higher degree
NUDGE = 0.1  # rad and share of the reach by which a singular solution is left
RETURNED = 0.02  # rad or m: a descent from there that ends nearer has come back
SAME = 1e-5  # rad or m: polished candidates that differ by less are one
STEPS = 12.0  # of polishing


@compiled
def polish(joints, tool, limits, goal, options, exact, q, frames, work):
    """Bring q (n,) to goal within limits, unless it is there or far off.

    options: what counts as solved. exact: of a descent to EXACT. Returns squared errors, infinite if far off.
    """
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    if position > squared(5.0 * HOPELESS * options[WEIGHT]) or direction > HOPELESS * HOPELESS:
        return inf, inf
    if position > EXACT * EXACT or direction > EXACT * EXACT:
        position, direction = polish_candidate(joints, tool, limits, goal, options, exact, q, frames, work)
    return position, direction


@compiled
def wrap_within(limits, period, seed, q):
    """Turn the joints of q (n,) into the limits, as near to seed (n,) as they go; whether they fit."""
    for i in range(q.shape[0]):
        if period[i] > 0.0:
            q[i] = wrap_into_limits(q[i], seed[i], limits[0, i], limits[1, i])
            if isnan(q[i]):
                return False
        else:
            if q[i] < limits[0, i] - ROOT_SLACK or q[i] > limits[1, i] + ROOT_SLACK:
                return False
            q[i] = min(max(q[i], limits[0, i]), limits[1, i])
    return True


@compiled
def is_singular(joints, opened, frames, goal, weight, share, work):
    """Whether a small motion of the joints leaves the tool where it is, at frames of a solution.

    By the pivots, largest first, of the products of the joints' motions, each of unit length: squares of what
    singular values are; below share of the largest they are zero. Joints held by opened do not count.
    work (3 n, 6 or more) is scratch.
    """
    n = opened.shape[1]
    jac, table = work[:n, :6], work[n : 2 * n, :n]
    radius = 0.0 if isnan(goal[DIRECTION]) else weight
    jacobian(joints, frames, jac)
    for i in range(n):
        for k in range(3, 6):
            jac[i, k] *= radius
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(6):
                total += jac[i, k] * jac[j, k]
            table[i, j] = table[j, i] = total
    left = 0
    for i in range(n):
        if opened[0, i] < opened[1, i]:
            length = sqrt(table[i, i])
            if not length > share * weight:
                return True
            for j in range(n):
                table[i, j] /= length
                table[j, i] /= length
            left += 1
        else:
            table[i, i] = 0.0
    while left > 0:
        pivot = 0
        for i in range(n):
            if table[i, i] > table[pivot, pivot]:
                pivot = i
        largest = table[pivot, pivot]
        if not largest > share * share:
            return True
        for i in range(n):
            if i != pivot and table[i, i] > 0.0:
                factor = table[i, pivot] / largest
                for j in range(n):
                    if table[j, j] > 0.0 and j != pivot:
                        table[i, j] -= factor * table[pivot, j]
        table[pivot, pivot] = 0.0
        left -= 1
    return False


@compiled
def is_far_outside(limits, period, seed, q):
    """Whether a joint of q (n,), whole turns removed, is beyond its limits by more than FAR_OUTSIDE."""
    for i in range(q.shape[0]):
        low, high = limits[0, i] - FAR_OUTSIDE, limits[1, i] + FAR_OUTSIDE
        if period[i] > 0.0:
            if isnan(wrap_into_limits(q[i], seed[i], low, high)):
                return True
        elif not low <= q[i] <= high:
            return True
    return False


@compiled
def is_isolated(joints, tool, opened, period, goal, options, q, trial, frames, work):
    """Whether descents from all around a solution q (n,) come back to it, or find none: not on a self-motion.

    options: of polish. trial (n,) is scratch.
    """
    for i in range(q.shape[0]):
        if opened[0, i] < opened[1, i]:
            nudge = NUDGE if period[i] > 0.0 else 5.0 * NUDGE * options[WEIGHT]
            for side in range(2):
                copy(q, trial)
                trial[i] += nudge if side == 0 else -nudge
                position, direction = polish(joints, tool, opened, goal, options, options, trial, frames, work)
                found = met(position, direction, options)
                if found and largest_move(period, trial, q) > RETURNED:
                    return False
    return True


@compiled
def eliminated(
    joints: R2,
    tool: R1,
    limits: R2,
    opened: R2,
    period: R1,
    form: R2,
    goal: F1,
    options: F1,
    seed: F1,
    found: F2,
    count: I0,
):
    """Every solution within the limits by elimination, turned nearest to seed (n,).

    Each candidate is polished within opened (2, n), wider limits, and checked by FK on the true model.
    Those in the first count rows of found (k, n) already stay. Returns (the number of rows, whether none can
    be missing: a singular solution casts doubt on others near it, unless it is isolated and far outside).
    """
    n = seed.shape[0]
    raw, within = np.empty((MOST_CANDIDATES, n + joints.shape[0])), np.empty(n)  # also for mimic joints
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    exact = np.empty(options.shape[0])
    copy(options, exact)
    exact[POSITION_TOLERANCE], exact[CHORD_TOLERANCE], exact[ITERATIONS] = (
        min(options[POSITION_TOLERANCE], EXACT),
        min(options[CHORD_TOLERANCE], EXACT),
        STEPS,
    )
    if form[0, FAMILY] == GENERAL:
        candidates, expected = general_candidates(form, goal, raw)
    else:
        candidates, regular = pair_candidates(form, goal, raw)
        expected = 0 if regular else -1
    rough = form[0, FAMILY] == PAIR and form[0, STAGE] >= ANY_TWO
    doubtful, distinct = (NEARLY_SINGULAR if rough else SINGULAR), 0
    for k in range(candidates):
        q = raw[k, :n]
        for i in range(n):
            if isnan(q[i]):  # free
                q[i] = min(max(seed[i], limits[0, i]), limits[1, i])
        position, direction = polish(joints, tool, opened, goal, options, exact, q, frames, work)
        if not met(position, direction, options):
            continue
        seen = False
        for j in range(distinct):
            seen = seen or largest_move(period, raw[j, :n], q) < SAME
        if seen:
            continue
        copy(q, raw[distinct, :n])
        distinct += 1
        if is_singular(joints, opened, frames, goal, exact[WEIGHT], doubtful, work) and not (
            is_far_outside(limits, period, seed, q)
            and is_isolated(joints, tool, opened, period, goal, exact, q, within, frames, work)
        ):
            expected = -1
        copy(q, within)
        if not wrap_within(limits, period, seed, within):
            continue
        position, direction = polish(joints, tool, limits, goal, options, exact, within, frames, work)
        if met(position, direction, options):
            count = add_solution(limits, period, found, count, within)
    return count, 0 <= expected <= distinct
