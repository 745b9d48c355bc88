# SPDX-License-Identifier: Apache-2.0
"""All candidates by polynomials in one to three outer joints, the inner joints eliminated; see layout.py.

With N the covectors that the inner joints leave alone, M_k the motions of the joints before them and behind:
N M_behind m(tool) - N (M_before)^-1 m(goal) = 0 contains the outer joints alone.
"""

from __future__ import annotations

from math import isnan

import numpy as np

from ..arrays import DIRECTION
from ..language import compiled
from .layout import (
    ACTIVE,
    ALONG,
    ANY_THREE,
    COEFFICIENTS,
    EQUATIONS,
    FIRST_INNER,
    INNER,
    JOINTS,
    NO_UNKNOWN,
    ONE_JOINT,
    ONE_UNKNOWN,
    ORIGIN,
    OUTER_A,
    OUTER_B,
    OUTER_C,
    SIZE,
    SLACK,
    SLIDING,
    STAGE,
    TOOL,
    TWO_JOINTS,
    VARIABLE,
    WRIST,
    linear_in,
    move,
    write_row,
    write_vector,
)
from .triple import inner_values, wrist_values
from .unknowns import add_slides, add_turns, solve_three, solve_two

MAX_VALUES = 256  # of the outer joints
SAME = 1e-4  # share of the size, or rad: of candidates that differ by less the better one is kept
FAR = 5e-2  # share of the size, and rad: candidates that miss the goal by more are none


@compiled
def solve_one(form, m, work, pairs):
    """Values of one joint: the equation of six that varies most with it, two roots.

    m (15,): the goal's vector. Returns (number of rows of pairs (k, 3), whether the goal is regular).
    """
    joint = JOINTS + int(form[0, OUTER_A])
    best, a, b, c = -1.0, 0.0, 0.0, 0.0
    for k in range(int(form[0, EQUATIONS])):
        row = COEFFICIENTS + 3 * k
        cosine, sine = linear_in(form, row + 1, m), linear_in(form, row + 2, m)
        swing = cosine * cosine + sine * sine
        if swing > best:
            best, a, b, c = swing, linear_in(form, row, m), cosine, sine
    if best < 1e-16:
        return 0, False
    if form[joint, SLIDING] != 0.0:
        return add_slides(a, b, c, form[0, SLACK], 0.0, work, pairs, 0), True
    return add_turns(a, b, c, form[0, SLACK], 0.0, pairs, 0), True


@compiled
def outer_values(form, m, work, pairs):
    """Values of the outer joints A, B and C for the goal with vector m (15,), into pairs (k, 3).

    One such joint is B. Returns (how many, whether the goal is regular).
    """
    if form[0, STAGE] == NO_UNKNOWN:
        return 1, True
    if form[0, STAGE] == ONE_UNKNOWN:
        return solve_one(form, m, work, pairs)
    if form[0, STAGE] == ANY_THREE:
        return solve_three(form, m, work, pairs)
    # two equations in 1, cos b, sin b (j), whose coefficients are quadratic forms in joint a (i)
    e = work[20:26]
    for k in range(2):
        for i in range(3):
            for j in range(3):
                e[3 * k + j, i] = linear_in(form, COEFFICIENTS + 9 * k + 3 * i + j, m)
    slides = form[JOINTS + int(form[0, OUTER_B]), SLIDING] != 0.0
    return solve_two(form, e, slides, work, work[26:34], pairs)


@compiled
def pair_candidates(form, goal, out):
    """Write into out (k, n) configurations that may meet goal (9,), whatever the limits; angles in any turn.

    Good to about 1e-6 where the goal is regular, for FK to decide and a descent to polish. NaN: a joint that
    the goal leaves free. Returns (number of rows, whether none can be missing: the goal is regular).
    """
    work = np.empty((34, 15))
    pairs, inner, tips = np.empty((MAX_VALUES, 3)), np.empty((2, 3)), np.empty((2, 2))
    v, g, target, m = np.empty(6), np.empty(6), np.empty(6), np.empty(15)
    # the goal in units of the arm's size, from its origin; the wrist point in row of the tool point
    position_only = isnan(goal[DIRECTION])
    for k in range(3):
        target[k] = (goal[k] - form[0, ORIGIN + k]) / form[0, SIZE]
        target[3 + k] = 0.0 if position_only else goal[DIRECTION + k]
    wrist = form[0, WRIST] != 0.0
    if wrist:
        for k in range(3):
            target[k] -= form[0, ALONG] * target[3 + k]
    # the outer joints, from equations whose coefficients are linear in m
    write_vector(target, m)
    found, certain = outer_values(form, m, work, pairs)
    first = int(form[0, FIRST_INNER])
    width = 1 if form[0, INNER] == ONE_JOINT else (2 if form[0, INNER] == TWO_JOINTS else 3)
    chain = 3 if wrist else int(form[0, ACTIVE])
    joint_a, joint_b, joint_c = int(form[0, OUTER_A]), int(form[0, OUTER_B]), int(form[0, OUTER_C])
    three, loose = form[0, STAGE] == ANY_THREE, form[0, INNER] == TWO_JOINTS
    values, offs = np.empty(5), np.empty(out.shape[0])
    count = 0
    for p in range(found):
        values[joint_a] = pairs[p, 0]
        values[joint_b] = pairs[p, 1]
        if three:
            values[joint_c] = pairs[p, 2]
        # the goal seen through the joints before the inner ones, the tool as those behind hold it
        for k in range(6):
            g[k], v[k] = target[k], form[TOOL, k]
        if position_only or wrist:
            for k in range(3, 6):
                g[k] = v[k] = 0.0
        for k in range(first):
            move(form[JOINTS + k], -values[k], g)
        for k in range(chain - 1, first + width - 1, -1):
            move(form[JOINTS + k], values[k], v)
        closed, regular = inner_values(form, v, g, work, inner)
        certain = certain and regular
        for r in range(closed):
            for k in range(width):
                values[first + k] = inner[r, k]
                certain = certain and not isnan(inner[r, k])  # free
            if loose:  # the equations of two inner joints hold at values that are no solution, too
                off = miss(form, values, target, v)
                row = -1 if off > FAR else row_for(form, values, off, offs, out, count)
                if row >= 0:
                    offs[row] = off
                    count = max(write_row(form, values, out, row), count)
                continue
            if not wrist:
                count = write_row(form, values, out, count)
                continue
            if isnan(values[0]):  # the wrist point is on axis 1
                certain = False
                continue
            # joints 4 and 5 turn the tool axis as joints 1, 2, 3 leave it onto the goal's direction
            for k in range(3):
                g[3 + k], v[3 + k] = target[3 + k], form[TOOL, 3 + k]
            for k in range(3):
                move(form[JOINTS + k], -values[k], g)
            for i in range(wrist_values(form[JOINTS + 3], form[JOINTS + 4], form[0, SLACK], v, g, tips)):
                values[3], values[4] = tips[i, 0], tips[i, 1]
                count = write_row(form, values, out, count)
    return count, certain


@compiled
def miss(form, values, target, v):
    """By how much these values miss target (6,), share of the size or rad. v (6,): scratch."""
    for k in range(6):
        v[k] = form[TOOL, k]
    for k in range(int(form[0, ACTIVE]) - 1, -1, -1):
        move(form[JOINTS + k], values[k], v)
    off = 0.0
    for k in range(6):
        off = max(off, abs(v[k] - target[k]))
    return off


@compiled
def row_for(form, values, off, offs, out, count):
    """Row of out (k, n) for values that miss by off: that of nearly the same ones with larger offs, or count.

    In a full table that with the largest offs. -1 where these are better.
    """
    worst = 0
    for r in range(count):
        if offs[r] > offs[worst]:
            worst = r
        same = True
        for k in range(int(form[0, ACTIVE])):
            joint = form[JOINTS + k]
            scale = form[0, SIZE] if joint[SLIDING] != 0.0 else 1.0
            same = same and abs(out[r, int(joint[VARIABLE])] - scale * values[k]) < SAME * scale
        if same:
            return r if off < offs[r] else -1
    if count < out.shape[0]:
        return count
    return worst if off < offs[worst] else -1
