# SPDX-License-Identifier: Apache-2.0
"""Least position error of any arm, for any direction: many descents of the position alone."""

from math import inf, isnan, sqrt

import numpy as np

from ..arrays.copies import copy, copy_column
from ..arrays.distance import largest_difference
from ..arrays.layout import DIRECTION
from ..chain.forward import goal_errors
from ..methods.lm import FIRST_DAMPING, descend_lm
from ..runtime.compiled import compiled
from .general import EQUAL, SAME_BASIN, penalty, refine_seed, refine_together, restore_position
from .newton import descend_newton

PROVEN = 1e-9  # m: a distance that exceeds a lower bound by less is the least
FEWEST, HITS = 48, 12  # descents; that is enough if so many of them have come as near as the nearest
FEWEST_OF_MANY = 150  # likewise of more than MOST_JOINTS joints, whose places are many
MOST_JOINTS = 5
OTHERS, STRIDE = 128, 997  # descents more where it is not, from known configurations so many columns apart
NUMBER, ROWS, HIT = range(
    3
)  # entries of progress: descents done, rows in use, descents as near as the nearest


@compiled
def least_possible(shells, goal):
    """Lower bound of the distance [m] of tool point and goal at any joint positions; see out_of_reach."""
    bound = 0.0
    for k in range(shells.shape[0]):
        square = 0.0
        for i in range(3):
            square += (goal[i] - shells[k, i]) ** 2
        distance = sqrt(square)
        bound = max(bound, distance - shells[k, 4], shells[k, 3] - distance)
    return bound


@compiled
def keep_nearest(table, errors, count, q, position, direction):
    """Add q (n,) to table (k, n) and errors (k, 2) unless another is nearer; returns the new count.

    Rows whose position error exceeds the least by more than EQUAL leave.
    """
    least = inf
    for k in range(count):
        least = min(least, errors[k, 0])
    if position > least + EQUAL:
        return count
    kept, new = 0, True
    for k in range(count):
        if errors[k, 0] > position + EQUAL:
            continue
        copy(table[k], table[kept])
        copy(errors[k], errors[kept])
        if largest_difference(table[kept], q) < SAME_BASIN:
            new = False
            if position < errors[kept, 0]:
                copy(q, table[kept])
                errors[kept, 0], errors[kept, 1] = position, direction
        kept += 1
    if new and kept < table.shape[0]:
        copy(q, table[kept])
        errors[kept, 0], errors[kept, 1] = position, direction
        kept += 1
    return kept


@compiled
def nearest_places(
    joints, tool, limits, goal, options, bound, known, ranked, given, descents, progress, table, errors
):  # fmt: skip
    """So many descents more of the position alone; returns whether no others are left, or of use.

    They start at the configurations given (k, n), at columns ranked of known (n + 6, K), and at others where
    few of these lead to what is nearest; first with options as in multistart. They are given up where they
    cannot come as near as the nearest so far, and end at a distance that is bound [m]. Fills table (k, n)
    and errors (k, 2) [m, rad] with what is nearest. progress (3,) holds the state between calls.
    """
    n, m = limits.shape[1], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((2 * n + 6 + m, max(n, 13)))
    q = np.empty(n)
    first, rows, hits = int(progress[NUMBER]), int(progress[ROWS]), int(progress[HIT])
    fewest = FEWEST if n <= MOST_JOINTS else FEWEST_OF_MANY
    ranks = given.shape[0] + ranked.shape[0]
    most = ranks + OTHERS
    alone = bound == 0.0 or isnan(goal[DIRECTION])  # nothing to choose among places equally near
    for number in range(first, min(first + descents, most)):
        if number < given.shape[0]:
            copy(given[number], q)
        elif number < ranks:
            copy_column(known, ranked[number - given.shape[0]], q)
        else:
            copy_column(known, (number - ranks) * STRIDE % known.shape[1], q)
        least = errors[0, 0] if rows > 0 else inf
        for k in range(rows):
            least = min(least, errors[k, 0])
        descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
        ceiling = penalty(least + EQUAL, 0.0, 0.0)
        descend_newton(joints, tool, limits, goal, 0.0, 0.0, ceiling, q, frames, work)
        position, direction = goal_errors(joints, frames, goal)
        if rows == table.shape[0] and position <= least + EQUAL:  # the one that is turned most makes room
            most_turned = int(errors[:, 1].argmax())
            if direction < errors[most_turned, 1]:
                rows -= 1
                copy(table[rows], table[most_turned])
                copy(errors[rows], errors[most_turned])
        rows = keep_nearest(table, errors, rows, q, position, direction)
        if position < least - EQUAL:
            hits = 0
        hits += position <= least + EQUAL
        progress[NUMBER], progress[ROWS], progress[HIT] = number + 1, rows, hits
        if alone and errors[0, 0] <= bound + PROVEN:
            return True
        if number + 1 >= fewest and hits >= HITS:
            return True
    return int(progress[NUMBER]) == most


@compiled
def turn_in_place(joints, tool, limits, goal, ladder, table, errors, count, frames, work):
    """Append to count rows of least position error what the least direction error makes of them.

    table (2 k, n), errors (2 k, 2) [m, rad]. The penalty of the ladder leaves the position a trace off, or
    leads elsewhere: a last descent of the position alone takes that back. Returns the new count.
    """
    least = inf
    for k in range(count):
        least = min(least, errors[k, 0])
        copy(table[k], table[count + k])
    total = count + refine_together(
        joints, tool, limits, goal, ladder, table[count:], errors[count:], count, frames, work
    )
    restore_position(
        joints, tool, limits, goal, least, table[count:], errors[count:], total - count, frames, work
    )
    return total


@compiled
def closest_out_of_reach(joints, tool, limits, goal, ladder, near, table, errors, count):
    """From count rows of least position error: least direction error, for a goal that is out of reach.

    table (2 count + 1, n), errors (2 count + 1, 2) [m, rad]. Returns the new count.
    """
    n, m = limits.shape[1], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((2 * n + 6 + m, max(n, 13)))
    if not isnan(goal[DIRECTION]):
        count = turn_in_place(joints, tool, limits, goal, ladder, table, errors, count, frames, work)
    least, turn = inf, inf
    for k in range(count):
        least = min(least, errors[k, 0])
    for k in range(count):
        if errors[k, 0] <= least + EQUAL:
            turn = min(turn, errors[k, 1])
    copy(near, table[count])  # what is best already stays as it is
    return count + refine_seed(
        joints, tool, limits, goal, ladder, least + EQUAL, turn + EQUAL, least,
        table[count:], errors[count:], frames, work,
    )  # fmt: skip
