# SPDX-License-Identifier: Apache-2.0
"""Closed-form candidates, checked and polished by forward kinematics."""

from math import inf, isnan, sqrt

import numpy as np

from ..arrays.copies import copy
from ..arrays.distance import add_distinct
from ..arrays.layout import (
    CHORD_TOLERANCE,
    FAMILY,
    FREE_ROLL,
    ITERATIONS,
    KIND,
    POSITION_TOLERANCE,
    SIZE,
    WEIGHT,
)
from ..arrays.rotation import wrap_into_limits
from ..chain.forward import forward, goal_errors, jacobian, met, squared_errors
from ..methods.lm import descend_lm
from ..runtime.compiled import compiled
from .parallel import parallel_pairs, planar_candidates
from .wrist import wrist_candidates, wrist_pairs

PARALLEL = 1.0  # axes 2, 3, 4 parallel
WRIST = 2.0  # axes 2, 3 parallel; axes 4, 5 and the tool axis meet in one point W
MOST_CANDIDATES = 16
EXACT = 1e-9  # m and rad: what the formula misses by more is polished on the true model
FREE = 1e-7  # share of the length, and rad: a joint that moves the tool by less per rad is free
HOPELESS = 1e-2  # rad and share of the reach: what it misses by more is not a solution


@compiled
def candidates(form, limits, goal, seed, every, work, out):
    """Closed-form configurations for goal within the limits, each turned nearest to seed (5,).

    every: all of them, else those that may be nearest to seed by the largest single joint move. Returns
    (the number of rows of out (16, 5), whether the goal is regular for the formula: others leave joints free,
    whose values are those of seed).
    """
    parallel = form[KIND, FAMILY] == PARALLEL
    pairs = work[7:]
    if parallel:
        count = parallel_pairs(form, limits, goal, seed, work, pairs)
    else:
        count = wrist_pairs(form, limits, goal, seed, pairs)
    if count < 0:
        return 0, False
    kept, least, regular = 0, inf, True
    for k in range(count):
        if pairs[k, 0] >= least and not every:
            break
        rows = out[kept:]
        if parallel:
            found, determined = planar_candidates(form, goal, pairs[k], seed, rows)
            regular = regular and determined
        else:
            found = wrist_candidates(form, goal, pairs[k], rows)
        for r in range(found):
            move = 0.0
            for i in range(5):
                value = rows[r, i]
                if isnan(value):  # free
                    value = min(max(seed[i], limits[0, i]), limits[1, i])
                value = wrap_into_limits(value, seed[i], limits[0, i], limits[1, i])
                out[kept, i] = value
                move = max(move, abs(value - seed[i]))
            if not isnan(out[kept, 0] + out[kept, 1] + out[kept, 2] + out[kept, 3] + out[kept, 4]):
                least = min(least, move)
                kept += 1
    return kept, regular


@compiled
def polish_and_check(joints, tool, limits, goal, options, q, frames):
    """Check q (n,) by FK and polish it there if it misses EXACT; returns (solved, both errors)."""
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    far = max(5.0 * HOPELESS * options[WEIGHT], options[POSITION_TOLERANCE])
    if position > far * far or direction > max(HOPELESS, options[CHORD_TOLERANCE]) ** 2:
        return False, inf, inf
    if position > EXACT * EXACT or direction > EXACT * EXACT:
        work = np.empty((3 * q.shape[0] + 4, max(q.shape[0], 6)))
        polish = np.empty(options.shape[0])
        copy(options, polish)
        polish[POSITION_TOLERANCE], polish[CHORD_TOLERANCE], polish[ITERATIONS] = (
            min(options[POSITION_TOLERANCE], EXACT),
            min(options[CHORD_TOLERANCE], EXACT),
            8.0,
        )
        descend_lm(joints, tool, limits, goal, polish, 1e-8, q, frames, work)
        position, direction = squared_errors(joints, frames, goal)
    position_error, direction_error = goal_errors(joints, frames, goal)
    solved = met(position, direction, options)
    return solved, position_error, direction_error


@compiled
def nearest_solution(joints, tool, limits, form, goal, options, seed, q):
    """Closed-form solution nearest to seed (5,) by the largest single joint move, written into q.

    A candidate is checked by FK on the true model and polished there where the formula's geometry is
    only nearly the arm's. Returns (solved, position error [m], direction error [rad], whether the goal
    is regular for the formula).
    """
    work = np.empty((12, 7))
    found = np.empty((MOST_CANDIDATES, 5))
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    regular = True
    for every in (False, True):  # the nearest one will do, unless FK rejects it
        count, regular = candidates(form, limits, goal, seed, every, work, found)
        if count == 0:
            break
        while count > 0:
            best, least = 0, inf
            for k in range(count):
                move = 0.0
                for i in range(5):
                    move = max(move, abs(found[k, i] - seed[i]))
                if move < least:
                    best, least = k, move
            copy(found[best], q)
            solved, position_error, direction_error = polish_and_check(
                joints, tool, limits, goal, options, q, frames
            )
            if solved:
                return True, position_error, direction_error, True
            count -= 1
            copy(found[count], found[best])
    return False, inf, inf, regular


@compiled
def nearest_by_formula(model, goal, q):
    """nearest_solution near q (5,), written into q if solved, for an arm in one array.

    model: joints, tool, limits, form and options in a row; a call from Python costs less with fewer arrays.
    """
    answer = np.empty(5)
    solved, position_error, direction_error, regular = nearest_solution(
        model[:50].reshape(5, 10),
        model[50:59],
        model[59:69].reshape(2, 5),
        model[69:111].reshape(14, 3),
        goal,
        model[111:],
        q,
        answer,
    )
    if solved:
        copy(answer, q)
    return solved, position_error, direction_error, regular


@compiled
def has_free_joint(joints, form, frames, work):
    """Whether a joint, but a roll about the tool, moves neither tool point nor tool axis at frames."""
    jac = work[:5, :6]
    jacobian(joints, frames, jac)
    for i in range(4 if form[KIND, FREE_ROLL] != 0.0 else 5):
        point = jac[i, 0] * jac[i, 0] + jac[i, 1] * jac[i, 1] + jac[i, 2] * jac[i, 2]
        axis = jac[i, 3] * jac[i, 3] + jac[i, 4] * jac[i, 4] + jac[i, 5] * jac[i, 5]
        if sqrt(point) < FREE * form[KIND, SIZE] and sqrt(axis) < FREE:
            return True
    return False


@compiled
def formula_solutions(joints, tool, limits, period, form, goal, options, seed, found):
    """Every closed-form solution within the limits, turned nearest to seed (5,); limits may be infinite.

    Each is polished and checked by FK on the true model. Returns (the number of rows of found (16, 5),
    whether the goal is regular for the formula, and no joint free at a solution).
    """
    work, scratch = np.empty((12, 7)), np.empty((5, 6))
    raw = np.empty((MOST_CANDIDATES, 5))
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    candidate_count, regular = candidates(form, limits, goal, seed, True, work, raw)
    count = 0
    for k in range(candidate_count):
        if polish_and_check(joints, tool, limits, goal, options, raw[k], frames)[0]:
            count = add_distinct(period, found, count, raw[k])
            regular = regular and not has_free_joint(joints, form, frames, scratch)
    return count, regular
