# SPDX-License-Identifier: Apache-2.0
"""Closed-form candidates, checked and polished by forward kinematics."""

from math import cos, inf, isnan, sin, sqrt

import numpy as np

from ..arrays.copies import copy
from ..arrays.distance import largest_difference
from ..arrays.layout import (
    C1,
    C5,
    CHORD_TOLERANCE,
    DEVIATION,
    END,
    FAMILY,
    FREE_ROLL,
    ITERATIONS,
    KIND,
    P0,
    POSITION_TOLERANCE,
    SIGNS,
    SIZE,
    W1,
    W5,
    WEIGHT,
    U,
)
from ..arrays.rotation import rotate_axis_angle, wrap_into_limits
from ..chain.forward import clip, forward, goal_errors, jacobian, met, squared_errors
from ..chain.listing import add_solution
from ..methods.lm import descend_lm
from ..runtime.compiled import compiled
from .parallel import parallel_pairs, planar_candidates
from .wrist import wrist_candidates, wrist_pairs, wrist_point

PARALLEL = 1.0  # axes 2, 3, 4 parallel
WRIST = 2.0  # axes 2, 3 parallel; axes 4, 5 and the tool axis meet in one point W
MOST_CANDIDATES = 16
EXACT = 1e-9  # m and rad: what the formula misses by more is polished on the true model
FREE = 1e-7  # share of the length, and rad: a joint that moves the tool by less per rad is free
HOPELESS = 1e-2  # rad and share of the reach: what it misses by more is not a solution
OUTSIDE = 16.0  # times the deviation [rad]: what it puts outside the limits by less may belong inside
STAYED = 1e-3  # rad: a solution that moves no joint by more is on the branch of the seed
NEAR = 0.1  # rad and share of the reach: the seed's own branch is looked for where its tool is this near
TIGHT = 1e-3  # likewise, of an exact form, whose seeds must meet the goal
STEEP = 8.0  # rad per rad and share of the reach: joints that move more than this suggest another branch


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
def may_be_near(form, goal, q, distance):
    """Whether the tool at q (5,) can be within distance [m] of goal (9,), by joints 1 and 5 alone.

    The part along u of tool point or wrist point does not depend on the others: most seeds end here.
    """
    w1, r1, u, w5, r5, p0 = form[W1], form[C1], form[U], form[W5], form[C5], form[P0]
    if form[KIND, FAMILY] == PARALLEL:
        x, y, z = goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2]
        ex, ey, ez = p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2]
        if form[KIND, FREE_ROLL] == 0.0:
            ex, ey, ez = rotate_axis_angle(w5, cos(q[4]), sin(q[4]), ex, ey, ez)
        ex, ey, ez = ex + r5[0], ey + r5[1], ez + r5[2]
    else:
        x, y, z = wrist_point(form, goal)
        ex, ey, ez = form[END, 0], form[END, 1], form[END, 2]
        distance += distance  # of the direction's part, as much again
    x, y, z = rotate_axis_angle(w1, cos(q[0]), -sin(q[0]), x, y, z)
    gap = u[0] * (x + r1[0] - ex) + u[1] * (y + r1[1] - ey) + u[2] * (z + r1[2] - ez)
    return abs(gap) <= distance


@compiled
def stay_on_branch(joints, tool, limits, form, goal, options, seed, move, q, frames):
    """Replace q (5,), which moves a joint by move from seed (5,), by a nearer solution on the seed's branch.

    Formulas lose it next to a limit or a double root if the geometry is only nearly theirs, and an exact one
    where the goal is met within the tolerances only. Returns (whether it is replaced, both errors).
    """
    copy(seed, q)
    clip(q, limits)
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    if form[SIGNS, DEVIATION] == 0.0:
        if not met(position, direction, options):
            return False, inf, inf
    else:
        gap = max(sqrt(position) / (5.0 * options[WEIGHT]), sqrt(direction))
        if gap > NEAR or move < STEEP * gap:
            return False, inf, inf
    descend_lm(joints, tool, limits, goal, options, 1e-8, q, frames, np.empty((19, 6)))
    position, direction = squared_errors(joints, frames, goal)
    if not met(position, direction, options) or largest_difference(q, seed) > move:
        return False, inf, inf
    position_error, direction_error = goal_errors(joints, frames, goal)
    return True, position_error, direction_error


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
    regular, solved, position_error, direction_error = True, False, inf, inf
    within = limits
    if form[SIGNS, DEVIATION] > 0.0:
        within = limits.copy()
        for i in range(5):
            within[0, i] -= OUTSIDE * form[SIGNS, DEVIATION]
            within[1, i] += OUTSIDE * form[SIGNS, DEVIATION]
    for every in (False, True):  # the nearest one will do, unless FK rejects it
        count, regular = candidates(form, within, goal, seed, every, work, found)
        if count == 0:
            break
        while count > 0 and not solved:
            best, least = 0, inf
            for k in range(count):
                move = 0.0
                for i in range(5):
                    move = max(move, abs(found[k, i] - seed[i]))
                if move < least:
                    best, least = k, move
            copy(found[best], q)
            clip(q, limits)
            solved, position_error, direction_error = polish_and_check(
                joints, tool, limits, goal, options, q, frames
            )
            count -= 1
            copy(found[count], found[best])
        if solved:
            break
    move = largest_difference(q, seed) if solved else inf
    exact = form[SIGNS, DEVIATION] == 0.0
    near = TIGHT if exact else NEAR
    if move > STAYED and may_be_near(form, goal, seed, near * form[KIND, SIZE]):
        stays, position, direction = stay_on_branch(
            joints, tool, limits, form, goal, options, seed, move, found[0], frames
        )
        if stays:
            copy(found[0], q)
            solved, position_error, direction_error = True, position, direction
    return solved, position_error, direction_error, regular or solved


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
            count = add_solution(limits, period, found, count, raw[k])
            regular = regular and not has_free_joint(joints, form, frames, scratch)
    return count, regular
