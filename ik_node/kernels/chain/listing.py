# SPDX-License-Identifier: Apache-2.0
"""The list of all solutions: whole-turn variants with their errors, best first."""

from math import ceil, floor, inf, isinf

import numpy as np

from ..arrays.copies import copy
from ..arrays.distance import DISTINCT, append, largest_difference, largest_move
from ..arrays.rotation import ROOT_SLACK
from ..runtime.compiled import compiled
from .balls import excess_of_balls
from .forward import forward, goal_errors, met, squared_errors

SAME_MOVE = 1e9  # parts of a rad or m to which moves are compared
EXACT_WHOLE = 2.0**52  # doubles from here on are whole numbers


@compiled
def list_solutions(joints, tool, limits, period, goal, options, start, seed, found, count):
    """Return all whole-turn variants (k, n) of the solutions found (count, n), and their errors (k, 2).

    Errors in m and rad. Best first: least largest single joint move from seed (n,), then most distance to the
    limits. A joint with finite limits has all variants within them, any other the one nearest to start (n,);
    period (n,) is 0 also for joints that stay as they are. Variants outside the cones of balls are left out,
    and those that no longer meet the goal because a limit clips them.
    """
    n = seed.shape[0]
    first, numbers = np.empty((count, n), np.int64), np.empty((count, n), np.int64)
    variants = np.empty(count, np.int64)
    most = 0
    for k in range(count):
        variants[k] = 1
        for i in range(n):
            first[k, i], numbers[k, i] = turns_within(
                found[k, i], start[i], limits[0, i], limits[1, i], period[i]
            )
            variants[k] *= numbers[k, i]
        most += variants[k]
    every, keys = np.empty((most, n)), np.empty((most, 2))
    kept = 0
    for k in range(count):
        before, again = kept, False
        for j in range(k):
            again = again or largest_move(period, found[j], found[k]) <= DISTINCT
        for variant in range(variants[k]):
            move, margin, rest = 0.0, inf, variant
            for i in range(n - 1, -1, -1):
                value = found[k, i]
                if period[i] != 0.0:
                    value += period[i] * (first[k, i] + rest % numbers[k, i])
                    value = min(max(value, limits[0, i]), limits[1, i])
                rest //= numbers[k, i]
                every[kept, i] = value
                move = max(move, abs(value - seed[i]))
                margin = min(margin, min(value - limits[0, i], limits[1, i] - value))
            seen = False
            if again:
                for j in range(before):
                    seen = seen or largest_difference(every[j], every[kept]) <= DISTINCT
            if seen:
                continue
            if limits.shape[0] == 2 or excess_of_balls(every[kept], limits) <= 0.0:
                move *= SAME_MOVE
                keys[kept, 0] = (round(move) if move < EXACT_WHOLE else move) / SAME_MOVE
                keys[kept, 1] = -margin
                kept += 1
    order = np.empty((2, kept), np.int64)
    sort_rows(keys, order[0], order[1])
    rows, errors = np.empty((kept, n)), np.empty((kept, 2))
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    listed = 0
    for k in range(kept):
        copy(every[order[0, k]], rows[listed])
        forward(joints, tool, rows[listed], frames)
        position, direction = squared_errors(joints, frames, goal)
        if met(position, direction, options):
            errors[listed, 0], errors[listed, 1] = goal_errors(joints, frames, goal)
            listed += 1
    return rows[:listed], errors[:listed]


@compiled
def turns_within(value, near, low, high, period):
    """Return (first, number) of the consecutive turns to add to value that keep it within the limits.

    Limits may be missed by ROOT_SLACK. The one nearest to near where a limit is infinite.
    """
    if period == 0.0:
        return 0, 1
    if isinf(high - low):
        return round((near - value) / period), 1
    first = ceil((low - ROOT_SLACK - value) / period)
    last = floor((high + ROOT_SLACK - value) / period)
    return first, max(last - first + 1, 0)


@compiled
def add_solution(limits, period, found, count, q):
    """Append q (n,) to found (k, n) unless a row is the same but for whole turns and has all those of q.

    Next to a limit, two solutions within DISTINCT may have different turns inside the limits (2, n). Returns
    the new count; a full table keeps what it has.
    """
    for k in range(count):
        if largest_move(period, found[k], q) <= DISTINCT and _has_turns_of(limits, period, found[k], q):
            return count
    return append(found, count, q)


@compiled
def _has_turns_of(limits, period, row, q):
    """Whether row (n,), which is q (n,) but for whole turns, has inside the limits (2, n) each turn of q."""
    for i in range(q.shape[0]):
        if period[i] > 0.0 and not isinf(limits[1, i] - limits[0, i]):
            low, high = limits[0, i], limits[1, i]
            shift = floor((q[i] - row[i]) / period[i] + 0.5)
            first, number = turns_within(q[i], 0.0, low, high, period[i])
            other, most = turns_within(row[i], 0.0, low, high, period[i])
            if first + shift < other or first + shift + number > other + most:
                return False
    return True


@compiled
def sort_rows(keys, order, spare):
    """Write into order (k,) the numbers of the rows of keys (at least k, 2), by first, then second column.

    Rows that are equal keep their order (merge sort). spare (k,) is scratch.
    """
    count = order.shape[0]
    for k in range(count):
        order[k] = k
    width = 1
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            left, right = low, middle
            for k in range(low, high):
                take_right = right < high
                if take_right and left < middle:
                    a, b = order[left], order[right]
                    take_right = keys[b, 0] < keys[a, 0] or (
                        keys[b, 0] == keys[a, 0] and keys[b, 1] < keys[a, 1]
                    )
                if take_right:
                    spare[k] = order[right]
                    right += 1
                else:
                    spare[k] = order[left]
                    left += 1
        for k in range(count):
            order[k] = spare[k]
        width *= 2
