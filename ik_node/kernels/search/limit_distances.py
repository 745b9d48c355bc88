# SPDX-License-Identifier: Apache-2.0
"""How far from the joint limits an arm can stay at many goals, one after the other."""

from math import inf, isnan, sqrt

import numpy as np

from ..arrays.copies import copy, copy_column
from ..arrays.layout import DIRECTION, FAMILY, KIND, POSITION_TOLERANCE, WEIGHT
from ..chain.forward import met, squared_errors
from ..chain.known_poses import squared_distances
from ..closed_form.candidates import MOST_CANDIDATES, formula_solutions
from ..methods.lm import FIRST_DAMPING, descend_lm
from ..runtime.compiled import compiled
from .reachability import out_of_reach

HOPELESS = 8  # descents without success after which a goal counts as not met
HALVINGS = 8  # of the interval in which the largest distance to the limits is
BETTER = 1e-3  # rad or m: by how much farther from the limits another solution has to be


@compiled
def distance_to_limits(q, limits):
    """Return the least distance [rad or m] of q (n,) to a limit of a joint that is not held."""
    least = inf
    for i in range(q.shape[0]):
        if limits[0, i] < limits[1, i]:
            least = min(least, min(q[i] - limits[0, i], limits[1, i] - q[i]))
    return least


@compiled
def turn_to_middle(q, limits, period):
    """Turn each joint of q (n,) by whole turns to where it is farthest from its limits, in place."""
    for i in range(q.shape[0]):
        span = limits[1, i] - limits[0, i]
        if 0.0 < period[i] <= span < inf:
            q[i] -= period[i] * round((q[i] - 0.5 * (limits[0, i] + limits[1, i])) / period[i])


@compiled
def draw_in(limits, inset, narrow):
    """Write limits, those of each joint that is not held drawn in by inset [rad or m], into narrow."""
    for i in range(limits.shape[1]):
        by = inset if limits[0, i] < limits[1, i] else 0.0
        narrow[0, i], narrow[1, i] = limits[0, i] + by, limits[1, i] - by


@compiled
def keep_from_limits(joints, tool, limits, goal, options, q, narrow, trial, frames, work):
    """Move q (n,), which meets goal, to where it is farthest from the limits, in place; return the distance.

    By bisection: descents within limits that are drawn in. narrow (as limits) and trial (n,) are scratch.
    """
    low, high = distance_to_limits(q, limits), inf
    for i in range(q.shape[0]):
        if limits[0, i] < limits[1, i]:
            high = min(high, 0.5 * (limits[1, i] - limits[0, i]))
    if high == inf:
        return low
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        draw_in(limits, middle, narrow)
        copy(q, trial)
        descend_lm(joints, tool, narrow, goal, options, FIRST_DAMPING, trial, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        if met(position, direction, options):
            copy(trial, q)
            low = max(middle, distance_to_limits(q, limits))
        else:
            high = middle
    return low


@compiled
def farthest_by_descents(joints, tool, limits, period, goal, options, table, starts, q, narrow, frames, work):
    """Write into q (n,) the solution of goal that is farthest from the limits, of those that descents find.

    They start at as many poses of table as starts says, those nearest to goal, within limits drawn in by the
    best distance so far; what meets goal there is moved on as far as goal allows. Returns the distance, -inf
    if there is no solution.
    """
    distances, trial = np.empty(table.shape[1]), np.empty(q.shape[0])
    squared_distances(table, goal, options[WEIGHT], distances)
    least = -inf
    for start in range(starts):
        if least == -inf and start == HOPELESS:
            break
        pose = distances.argmin()
        distances[pose] = inf
        copy_column(table, pose, trial)
        draw_in(limits, max(least + BETTER, 0.0), narrow)
        descend_lm(joints, tool, narrow, goal, options, FIRST_DAMPING, trial, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        if met(position, direction, options):
            if limits.shape[0] == 2:
                turn_to_middle(trial, limits, period)
            copy(trial, q)
            least = keep_from_limits(joints, tool, limits, goal, options, q, narrow, trial, frames, work)
    return least


@compiled
def limit_distances(
    joints, tool, limits, period, form, trusted, goals, shells, options, table, starts, q, found, distances,
    solved,
):  # fmt: skip
    """Write for each of goals (N, 9) the solution farthest from the joint limits, and its distance to them.

    found (N, n), distances (N,) [rad or m]: -inf where no solution was found. solved (N,): whether that is
    shown to be the best, as the formula finds all solutions or there is none; else see farthest_by_descents.
    trusted: the formula is exact. shells: as in out_of_reach. q (n,): where joints are that are free.
    """
    n = limits.shape[1]
    frames, work = np.empty((2 * joints.shape[0] + 3, 3)), np.empty((3 * n + 4, max(n, 6)))
    rows, trial, narrow = np.empty((MOST_CANDIDATES, n)), q.copy(), limits.copy()
    for k in range(goals.shape[0]):
        goal = goals[k]
        distances[k], solved[k] = -inf, True
        if out_of_reach(shells, goal, options[POSITION_TOLERANCE]) != 0:
            continue
        if form[KIND, FAMILY] != 0.0 and not isnan(goal[DIRECTION]):
            count, regular = formula_solutions(joints, tool, limits, period, form, goal, options, q, rows)
            for row in range(count):
                turn_to_middle(rows[row], limits, period)
                distance = distance_to_limits(rows[row], limits)
                if distance > distances[k]:
                    distances[k] = distance
                    copy(rows[row], found[k])
            if trusted and regular:
                continue
        solved[k] = False
        distance = farthest_by_descents(
            joints, tool, limits, period, goal, options, table, starts, trial, narrow, frames, work
        )
        if distance > distances[k]:
            distances[k] = distance
            copy(trial, found[k])


@compiled
def lacking(joints, tool, limits, goals, options, table, distances, lack):
    """Write by how much [m] each of goals (N, 9) of distance -inf is missed, 0 for others, into lack (N,).

    A descent from the pose of table nearest to the goal tells; options weigh a direction against a position.
    distances (N,): as limit_distances writes them.
    """
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    n = limits.shape[1]
    work, q, apart = np.empty((3 * n + 4, max(n, 6))), np.empty(n), np.empty(table.shape[1])
    for k in range(goals.shape[0]):
        lack[k] = 0.0
        if distances[k] > -inf:
            continue
        squared_distances(table, goals[k], options[WEIGHT], apart)
        copy_column(table, apart.argmin(), q)
        descend_lm(joints, tool, limits, goals[k], options, FIRST_DAMPING, q, frames, work)
        position, direction = squared_errors(joints, frames, goals[k])
        lack[k] = sqrt(position + options[WEIGHT] * options[WEIGHT] * direction)
