# SPDX-License-Identifier: Apache-2.0
"""Which directions a tool can take at a position; bounds on the workspace."""

from math import isfinite, nan, sqrt

import numpy as np

from ..arrays.copies import copy
from ..arrays.layout import DIRECTION, LATERAL, POSITION_TOLERANCE
from ..chain.forward import squared_errors
from ..chain.random import perturb
from ..methods.lm import FIRST_DAMPING, descend_lm
from ..runtime.compiled import compiled

LATER_STARTS = 3  # times as many random starts before a place counts as out of reach
ATTEMPTS = 3  # at a direction, each from the configuration nearest to it
ANOTHER = 0.5  # rad or m: of those that differ by so much from the ones tried before


@compiled
def out_of_reach(shells, goal, tolerance):
    """1 if the position of goal is too far for a shell by more than tolerance [m], -1 if too near, else 0.

    shells (k, 5): centre (3), least and largest distance of the tool point from it.
    """
    for k in range(shells.shape[0]):
        x, y, z = (
            goal[0] - shells[k, 0],
            goal[1] - shells[k, 1],
            goal[2] - shells[k, 2],
        )
        distance = sqrt(x * x + y * y + z * z)
        if distance > shells[k, 4] + tolerance:
            return 1
        if distance < shells[k, 3] - tolerance:
            return -1
    return 0


@compiled
def mark_reached(axis, directions, cosine, reached):
    """Mark in reached (k,) the directions (k, 3) whose angle to axis (3,) has at least this cosine."""
    for k in range(directions.shape[0]):
        if axis[0] * directions[k, 0] + axis[1] * directions[k, 1] + axis[2] * directions[k, 2] >= cosine:
            reached[k] = True


@compiled
def nearest_apart(table, count, direction, tried):
    """Find the row of table (count, n + 3) whose axis (last three) is nearest to direction (3,).

    Rows that differ by less than ANOTHER from a row in tried (t,) are passed over. Returns (row, cosine
    of the angle); row -1 where none is left.
    """
    n = table.shape[1] - 3
    best, nearest = -1, -2.0
    for i in range(count):
        dot = table[i, n] * direction[0] + table[i, n + 1] * direction[1] + table[i, n + 2] * direction[2]
        if dot <= nearest:
            continue
        another = True
        for t in range(tried.shape[0]):
            gap = 0.0
            for j in range(n):
                gap = max(gap, abs(table[i, j] - table[tried[t], j]))
            another = another and gap > ANOTHER
        if another:
            best, nearest = i, dot
    return best, nearest


@compiled
def reached_directions(
    joints, tool, limits, options, place, directions, cosine, starts, state, table, reached
):
    """Mark in reached (k,) the directions (k, 3) that the tool axis can take with the tool at place (3,).

    cosine: of the angle by which a direction may be missed. Configurations at place are collected in
    table (starts + ATTEMPTS k, n + 3) with their tool axes: first from random starts; then each
    direction not met yet is tried from those with the nearest axes, as a small penalty beside the
    position, which a last descent makes exact again. Returns their number, 0 if the place is out of reach.
    """
    n = limits.shape[1]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    goal, q, middle = np.full(9, nan), np.empty(n), np.zeros(n)
    tried = np.empty((directions.shape[0], ATTEMPTS), dtype=np.int64)
    axis = frames[2 * joints.shape[0] + 1]
    least = options[POSITION_TOLERANCE] * options[POSITION_TOLERANCE]
    for i in range(n):
        if isfinite(limits[1, i] - limits[0, i]):
            middle[i] = 0.5 * (limits[0, i] + limits[1, i])
    reached[:] = False
    copy(place, goal[:DIRECTION])
    count = 0
    for start in range(LATER_STARTS * starts):
        if count > 0 and start >= starts:
            break
        perturb(middle, limits, 1.0, state, q)
        descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
        if squared_errors(joints, frames, goal)[0] <= least:
            copy(q, table[count, :n])
            copy(axis, table[count, n:])
            mark_reached(axis, directions, cosine, reached)
            count += 1
    for attempt in range(ATTEMPTS):
        for k in range(directions.shape[0]):
            if reached[k]:
                continue
            row, nearest = nearest_apart(table, count, directions[k], tried[k, :attempt])
            tried[k, attempt] = max(row, 0)
            if row < 0:
                continue
            copy(table[row], q)
            copy(directions[k], goal[DIRECTION:LATERAL])
            descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
            goal[DIRECTION:LATERAL] = nan
            descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
            dot = axis[0] * directions[k, 0] + axis[1] * directions[k, 1] + axis[2] * directions[k, 2]
            if squared_errors(joints, frames, goal)[0] <= least and dot > nearest:
                copy(q, table[count, :n])
                copy(axis, table[count, n:])
                mark_reached(axis, directions, cosine, reached)
                count += 1
    return count
