# SPDX-License-Identifier: Apache-2.0
"""Closest configurations of any arm: position first, then direction."""

from math import inf, isnan, pi, sqrt

import numpy as np

from ..arrays.copies import copy, copy_column
from ..arrays.distance import largest_difference
from ..arrays.layout import DIRECTION
from ..arrays.rotation import stops_within_a_turn, wrap_into_limits
from ..chain.balls import excess_of_balls
from ..chain.forward import forward, goal_errors
from ..methods.lm import FIRST_DAMPING, descend_lm
from ..runtime.compiled import compiled
from .newton import descend_newton, descend_position

EQUAL = 1e-6  # m and rad: configurations whose errors differ by less are equally good
SAME_BASIN = 0.02  # rad or m: two first descents that end this near continue to the same minimum
WIDE = 3  # of every four starts, from 0: the one that is refined with other weights
PRUNING_MARGIN = (
    1e-4  # share by which a value may exceed the best while its descent is not carried to the end
)


@compiled
def penalty(position, direction, weight):
    """What descents minimise [m^2], of the errors in m and rad."""
    return 0.5 * (position * position + weight * weight * direction * direction)


@compiled
def refine(joints, tool, limits, goal, ladder, first, end, distance, angle, q, frames, work):
    """Descend from q (n,), in place, for weights number first to end - 1 of ladder; returns both errors.

    The last descent is carried to the precision asked for, the others as far as the next one needs. q is
    given up, with infinite errors, where it cannot end with errors of distance [m] and angle [rad]: what
    exceeds the penalty form of these at a minimum exceeds it also with smaller weights.
    """
    last = ladder.shape[0] - 1
    position, direction = inf, inf
    for k in range(first, end):
        share = 1e-8 if k == last else 1e-5
        ceiling = penalty(distance, angle, ladder[k])
        descend_newton(joints, tool, limits, goal, ladder[k], share, ceiling, q, frames, work)
        position, direction = goal_errors(joints, frames, goal)
        if penalty(position, direction, ladder[k]) > ceiling:
            return inf, inf
    return position, direction


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
            descend_newton(joints, tool, limits, goal, ladder[k], share, inf, table[row], frames, work)
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
def restore_position(joints, tool, limits, goal, least, table, errors, count, frames, work):
    """Bring rows of table (k, n) whose position error exceeds least by a trace back to a minimum of it."""
    for k in range(count):
        if errors[k, 0] > least + 0.1 * EQUAL:
            errors[k, 0], errors[k, 1] = descend_position(joints, tool, limits, goal, table[k], frames, work)


@compiled
def best_row(errors, table, count, seed, tolerance):
    """Index of the best of count rows: least position error, then direction error, then nearest to seed.

    errors (k, 2) [m, rad], table (k, n). Position errors within tolerance [m] count as equal, so does what
    differs by less than EQUAL; nearness is the largest single joint move. -1 if there is no row.
    """
    nearest = inf
    for k in range(count):
        nearest = min(nearest, errors[k, 0])
    near, least_turn = max(nearest + EQUAL, tolerance), inf
    for k in range(count):
        if errors[k, 0] <= near:
            least_turn = min(least_turn, errors[k, 1])
    best, least = -1, inf
    for k in range(count):
        if errors[k, 0] <= near and errors[k, 1] <= least_turn + EQUAL:
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
def refine_seed(joints, tool, limits, goal, ladder, distance, angle, least, table, errors, frames, work):
    """Refine the first row of table (k, n) with the last weight of ladder alone.

    See refine and restore_position. Returns 1, 0 if it is given up.
    """
    end = ladder.shape[0]
    errors[0, 0], errors[0, 1] = refine(
        joints, tool, limits, goal, ladder, end - 1, end, distance, angle, table[0], frames, work
    )
    if errors[0, 0] == inf:
        return 0
    restore_position(joints, tool, limits, goal, least, table, errors, 1, frames, work)
    return 1


@compiled
def value_of(position, direction, weight, least):
    """What errors in m and rad count for [rad]; see multistart. Infinite if they exceed the position."""
    if least < inf:
        return direction if position <= least + EQUAL else inf
    return sqrt((position / weight) ** 2 + direction * direction)


@compiled
def multistart(
    joints, tool, limits, goal, options, wide, narrow, given, known, ranked, first, last, table, errors,
    marks, count, least,
):  # fmt: skip
    """Descents number first to last - 1, from given (k, n), then from columns ranked of known (n + 6, K).

    Each start comes nearer with options, by steps that are cheaper than Newton's and as good far away. It is
    refined with the weights narrow, where the position dominates throughout; every fourth with the weights
    wide, where the direction dominates at first: minima that narrow takes for one are apart there. A start is
    dropped where its first weight leads to where another one was led (marks (k, n) holds these places), and
    as soon as it cannot become as good as the best: see refine.
    least [m]: the position error to restore; infinite for a compromise, the last weight. Fills table
    (k, n) and errors (k, 2) [m, rad] from row count on; returns the new count.
    """
    n, m, weight = limits.shape[1], joints.shape[0], narrow[narrow.shape[0] - 1]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((2 * n + 6 + m, max(n, 13)))
    best = inf
    for k in range(count):
        best = min(best, value_of(errors[k, 0], errors[k, 1], weight, least))
    for start in range(first, last):
        q = table[count]
        if start < given.shape[0]:
            copy(given[start], q)
        else:
            copy_column(known, ranked[start - given.shape[0]], q)
        ladder = wide if start % 4 == WIDE else narrow
        end = ladder.shape[0]
        marks[start, :] = inf
        descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
        angle = (1.0 + PRUNING_MARGIN) * best + EQUAL
        position, direction = refine(joints, tool, limits, goal, ladder, 0, 1, 0.0, angle, q, frames, work)
        seen = position == inf
        for k in range(start):
            same = (k % 4 == WIDE) == (start % 4 == WIDE)
            seen = seen or (same and largest_difference(marks[k], q) < SAME_BASIN)
        if seen:
            continue
        copy(q, marks[start])
        if end > 1:
            position, direction = refine(
                joints, tool, limits, goal, ladder, 1, end, 0.0, angle, q, frames, work
            )
        if position == inf:
            continue
        errors[count, 0], errors[count, 1] = position, direction
        restore_position(joints, tool, limits, goal, least, table[count:], errors[count:], 1, frames, work)
        best = min(best, value_of(errors[count, 0], errors[count, 1], weight, least))
        count += 1
    if last == given.shape[0] + ranked.shape[0]:
        angle, end = (1.0 + PRUNING_MARGIN) * best + EQUAL, narrow.shape[0]
        for k in range(count):
            if end > 1 and value_of(errors[k, 0], errors[k, 1], weight, least) <= best:
                # A descent along a narrow valley may have ended early: once more.
                copy(table[k], table[count])
                errors[count, 0], errors[count, 1] = refine(
                    joints, tool, limits, goal, narrow, 1, end, 0.0, angle, table[count], frames, work
                )
                if errors[count, 0] < inf:
                    restore_position(
                        joints, tool, limits, goal, least, table[count:], errors[count:], 1, frames, work
                    )
                    count += 1
                break
        # What is best already stays as it is.
        copy(given[0], table[count])
        count += refine_seed(
            joints, tool, limits, goal, narrow, 0.0, angle, least, table[count:], errors[count:], frames, work
        )
    return count


@compiled
def wrap_rows_into_limits(limits, period, seed, table, count):
    """Turn the joints of count rows of table (k, n) into the limits again, nearest to seed (n,)."""
    for k in range(count):
        for i in range(seed.shape[0]):
            if period[i] > 0.0 and not stops_within_a_turn(limits, i):
                table[k, i] = wrap_into_limits(table[k, i], seed[i], limits[0, i], limits[1, i])
