"""Least position error of any arm, for any direction: many descents of the position alone."""

from math import inf, isnan, sqrt

import numpy as np

from ..arrays import copy, copy_column
from ..compiled import compiled
from ..distance import largest_difference
from ..known_poses import squared_distances
from ..layout import DIRECTION
from .general import EQUAL, SAME_BASIN, refine, refine_together, settle
from .newton import descend_position

NEAREST, EVERY = 12, 3  # first the known configurations nearest to the goal, every third of them
FEWEST = 24  # descents before the share of missing minima is estimated
UNSEEN = 2e-4  # descents end when the next one leads to a new and nearer place with this probability
PROVEN = 1e-9  # m: a distance that exceeds a lower bound by less is the least
SEEN, NUMBER, ROWS = range(3)  # entries of progress: distances seen, descents done, rows in use


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
    joints, tool, limits, goal, bound, known, given, descents, distances, progress, values, table, errors
):
    """Descents of the position alone, until another local minimum is unlikely; returns whether that is so.

    They start at the configurations given (k, n), the nearest of known (n + 6, K; see tabulate_poses) and all
    others of known in turn. If w different distances came up in N descents, the next one is new with a
    probability of w (w + 1) / (N (N - 1)) (Boender and Rinnooy Kan, Mathematical Programming 37, 1987), and,
    were it no nearer than the others as a rule, nearer than all of them once in w + 1 times. The search ends
    when that is below UNSEEN, at a distance that is bound [m], or when known is used up. Fills table
    (k, n) and errors (k, 2) [m, rad] with what is nearest. values (v,) holds the distances seen;
    distances (K,) and progress (3,) hold the remaining state between calls of so many descents.
    """
    n, m = limits.shape[1], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((2 * n + 6 + m, max(n, 13)))
    q = np.empty(n)
    first = int(progress[NUMBER])
    if first == 0:
        squared_distances(known, goal, 0.0, distances)
    seen, rows = int(progress[SEEN]), int(progress[ROWS])
    alone = bound == 0.0 or isnan(goal[DIRECTION])  # nothing to choose among places equally near
    for number in range(first, first + descents):
        at = number - given.shape[0]
        if at < 0:
            copy(given[number], q)
        elif at < NEAREST:
            nearest = 0
            for _ in range(EVERY):
                nearest = distances.argmin()
                distances[nearest] = inf
            copy_column(known, nearest, q)
        elif at - NEAREST < known.shape[1]:
            copy_column(known, at - NEAREST, q)
        else:
            return True
        position, direction = descend_position(joints, tool, limits, goal, q, frames, work)
        rows = keep_nearest(table, errors, rows, q, position, direction)
        new = seen < values.shape[0]
        for k in range(seen):
            new = new and abs(values[k] - position) > EQUAL
        if new:
            values[seen] = position
            seen += 1
        count = number + 1
        progress[SEEN], progress[NUMBER], progress[ROWS] = seen, count, rows
        if errors[0, 0] <= bound + PROVEN and (alone or count >= FEWEST):
            return True
        if count >= FEWEST and seen < UNSEEN * count * (count - 1):
            return True
    return False


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
    settle(joints, tool, limits, goal, least, table[count:], errors[count:], total - count, frames, work)
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
    copy(near, table[count])  # what is best already stays as it is
    errors[count, 0], errors[count, 1] = refine(
        joints, tool, limits, goal, ladder, ladder.shape[0] - 1, table[count], frames, work
    )
    least = inf
    for k in range(count):
        least = min(least, errors[k, 0])
    settle(joints, tool, limits, goal, least, table[count:], errors[count:], 1, frames, work)
    return count + 1
