"""Closest configurations of any arm: position first, then direction."""

from math import inf, isnan, pi

import numpy as np

from ..arrays import copy
from ..balls import excess_of_balls
from ..chain import forward, goal_errors
from ..compiled import compiled
from ..distance import largest_difference
from ..layout import DIRECTION
from ..random import perturb
from ..rotation import stops_within_a_turn, wrap_into_limits
from .newton import descend_newton, descend_position

EQUAL = 1e-6  # m and rad: configurations whose errors differ by less are equally good
SAME_BASIN = 0.02  # rad or m: two first descents that end this near continue to the same minimum


@compiled
def refine(joints, tool, limits, goal, ladder, first, q, frames, work):
    """Descend from q (n,), in place, for each weight of ladder from number first on; returns both errors.

    The last descent is carried to the precision asked for, the others as far as the next one needs.
    """
    last = ladder.shape[0] - 1
    for k in range(first, ladder.shape[0]):
        share = 1e-8 if k == last else 1e-5
        descend_newton(joints, tool, limits, goal, ladder[k], share, q, frames, work)
    return goal_errors(joints, frames, goal)


@compiled
def refine_together(joints, tool, limits, goal, ladder, table, errors, count, frames, work):
    """As refine, for count rows of table (k, n) weight by weight; returns how many are left, all in errors.

    Rows are dropped that come to where another row is, and those that cannot become the best: the
    penalty form at a minimum rises as its weight falls no less than the direction's part allows, so the
    position error will not fall below sqrt(position^2 - weight^2 (pi^2 - direction^2)).
    """
    last = ladder.shape[0] - 1
    for k in range(ladder.shape[0]):
        least = inf
        for row in range(count):
            share = 1e-8 if k == last else 1e-5
            descend_newton(joints, tool, limits, goal, ladder[k], share, table[row], frames, work)
            errors[row, 0], errors[row, 1] = goal_errors(joints, frames, goal)
            least = min(least, errors[row, 0])
        if k == last:
            break
        square = 0.0 if isnan(goal[DIRECTION]) else ladder[k] * ladder[k]
        kept = 0
        for row in range(count):
            position, direction = errors[row, 0], errors[row, 1]
            bound = position * position - square * (pi * pi - direction * direction)
            seen = bound > (least + EQUAL) ** 2
            for i in range(kept):
                seen = seen or largest_difference(table[i], table[row]) < SAME_BASIN
            if not seen:
                copy(table[row], table[kept])
                copy(errors[row], errors[kept])
                kept += 1
        count = kept
    return count


@compiled
def settle(joints, tool, limits, goal, least, table, errors, count, frames, work):
    """Bring rows of table (k, n) whose position error exceeds least by a trace back to a minimum of it."""
    for k in range(count):
        if errors[k, 0] > least + 0.1 * EQUAL:
            errors[k, 0], errors[k, 1] = descend_position(joints, tool, limits, goal, table[k], frames, work)


@compiled
def best_row(errors, table, count, seed):
    """Index of the best of count rows: least position error, then direction error, then nearest to seed.

    errors (k, 2) [m, rad], table (k, n). What differs by less than EQUAL counts as equal; nearness is the
    largest single joint move. -1 if there is no row.
    """
    nearest = inf
    for k in range(count):
        nearest = min(nearest, errors[k, 0])
    least_turn = inf
    for k in range(count):
        if errors[k, 0] <= nearest + EQUAL:
            least_turn = min(least_turn, errors[k, 1])
    best, least = -1, inf
    for k in range(count):
        if errors[k, 0] <= nearest + EQUAL and errors[k, 1] <= least_turn + EQUAL:
            move = largest_difference(table[k], seed)
            if move < least:
                best, least = k, move
    return best


@compiled
def keep_unused_joints(joints, tool, limits, goal, seed, q):
    """Set joints of q (n,), in place, to their positions in seed where that leaves the errors unchanged.

    So joints that do not matter stay still: the roll of a tool, or one axis of a straight wrist.
    """
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    forward(joints, tool, q, frames)
    position, direction = goal_errors(joints, frames, goal)
    for i in range(q.shape[0]):
        value = q[i]
        q[i] = min(max(seed[i], limits[0, i]), limits[1, i])
        forward(joints, tool, q, frames)
        new_position, new_direction = goal_errors(joints, frames, goal)
        worse = not (new_position <= position + 0.1 * EQUAL and new_direction <= direction + 0.1 * EQUAL)
        if worse or (limits.shape[0] > 2 and excess_of_balls(q, limits) > 0.0):
            q[i] = value


@compiled
def multistart(
    joints, tool, limits, goal, wide, narrow, given, first, last, state, table, errors, marks, count, least
):  # fmt: skip
    """Descents number first to last - 1, from the configurations given (k, n), then from random ones.

    Every start is refined with one of two ladders in turn: with wide the direction dominates at first,
    with narrow the position; each finds optima that the other misses. A start whose first descent leads
    where another one led is dropped: marks (2, k, n) holds these places for either ladder. least [m]: the
    position error to restore if it is attainable; infinite for a compromise. Fills table (k, n)
    and errors (k, 2) [m, rad] from row count on; returns the new count.
    """
    n, m = limits.shape[1], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((2 * n + 6 + m, max(n, 13)))
    if first == 0:  # what is best already stays as it is
        copy(given[0], table[count])
        errors[count, 0], errors[count, 1] = refine(
            joints, tool, limits, goal, narrow, narrow.shape[0] - 1, table[count], frames, work
        )
        settle(joints, tool, limits, goal, least, table[count:], errors[count:], 1, frames, work)
        count += 1
    for start in range(first, last):
        side = start % 2
        q = table[count]
        if start < 2 * given.shape[0]:
            copy(given[start // 2], q)
        else:
            perturb(given[0], limits, 1.0, state, q)
        ladder = wide if side == 0 else narrow
        descend_newton(joints, tool, limits, goal, ladder[0], 1e-5, q, frames, work)
        copy(q, marks[side, start // 2])
        seen = False
        for k in range(start // 2):
            seen = seen or largest_difference(marks[side, k], q) < SAME_BASIN
        if seen:
            continue
        errors[count, 0], errors[count, 1] = refine(joints, tool, limits, goal, ladder, 1, q, frames, work)
        settle(joints, tool, limits, goal, least, table[count:], errors[count:], 1, frames, work)
        count += 1
    return count


@compiled
def wrap_rows_into_limits(limits, period, seed, table, count):
    """Turn the joints of count rows of table (k, n) into the limits again, nearest to seed (n,)."""
    for k in range(count):
        for i in range(seed.shape[0]):
            if period[i] > 0.0 and not stops_within_a_turn(limits, i):
                table[k, i] = wrap_into_limits(table[k, i], seed[i], limits[0, i], limits[1, i])
