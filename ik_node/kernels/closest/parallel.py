# SPDX-License-Identifier: Apache-2.0
"""Closest configurations where axes 2, 3, 4 are parallel: a search over joint 5."""

from math import inf, isnan, pi, sin, sqrt

import numpy as np

from ..arrays.copies import copy
from ..arrays.layout import DIRECTION, FREE_ROLL, KIND, LINK1, LINK2, SIGN3, SIGN4, SIGNS, U
from ..arrays.rotation import FULL_TURN, stops_within_a_turn, wrap_into_limits
from ..chain.forward import clip, forward, goal_errors
from ..closed_form.candidates import EXACT
from ..runtime.compiled import compiled
from .general import EQUAL, refine_seed, refine_together, restore_position, wrap_rows_into_limits
from .newton import descend_position
from .places import scan_places
from .plane import first_joint_angles, in_plane, phase, planar_problem, plane_axes, solve_triangle_nearest
from .position import keep_nearest, turn_in_place

SCAN = 48  # values of q5 that are tried, evenly spread
CANDIDATES = 6  # best of them that are refined
SCAN_MARGIN = 0.3  # a scanned direction error that exceeds the best by more cannot become the best
PLACES = 24  # of the search over joints 1 and 5 that are refined at most, and rows that may be as near
EDGE_MARGIN = 1.0  # likewise next to where the position goes out of reach: errors fall like a root there


@compiled
def least_direction_error(form, limits, goal, plane, l1, l2, q5, side, seed, bound, scratch, q):
    """Position exact, q5 given, joint 1 on its root number side: the least direction error, as a chord.

    Writes q (5,); inf where that cannot be. Chords above bound are not worked out but bounded from below.
    scratch (2, 5).
    """
    roots, trial = scratch[0], scratch[1]
    q5 = min(max(q5, limits[0, 4]), limits[1, 4])
    count, met = first_joint_angles(form, goal, q5, roots)
    if not met or side >= count:
        return inf
    q[0] = wrap_into_limits(roots[side], seed[0], limits[0, 0], limits[1, 0])
    q[4] = q5
    if isnan(q[0]):
        return inf
    target, end, turn, along, _ = planar_problem(form, goal, plane, q[0], q5)
    if abs(target) > abs(l1) + abs(l2) + abs(end) + 1e-9:
        return inf
    if isnan(goal[DIRECTION]):
        theta0 = seed[1] + form[SIGNS, SIGN3] * seed[2] + form[SIGNS, SIGN4] * seed[3]
        along = 1.0
    else:
        theta0 = phase(turn)
        chord = sqrt(max(2.0 - 2.0 * (along + abs(turn)), 0.0))
        if chord > bound:
            return chord
    gap = solve_triangle_nearest(form, limits, l1, l2, end, target, theta0, seed, trial, q)
    half = sin(0.5 * min(gap, pi))
    return (
        sqrt(max(2.0 - 2.0 * (along + abs(turn)), 0.0) + 4.0 * abs(turn) * half * half) if gap < inf else inf
    )


@compiled
def scan_roll(form, limits, goal, plane, l1, l2, seed, values, scratch, table):
    """Position exact: the q5 whose direction error is least, by a scan over its range.

    Writes up to CANDIDATES local minima of the scan into table (k, 5), the best first; returns how many.
    values (2, SCAN) is scratch. Where q5 is free (the tool axis is axis 5) it is seed's, and both roots of
    joint 1 are exact answers.
    """
    low, high = limits[0, 4], limits[1, 4]
    steps = SCAN
    if form[KIND, FREE_ROLL] != 0.0:
        low, high, steps = seed[4], seed[4], 1
    elif not stops_within_a_turn(limits, 4):
        low = max(low, -pi)  # whatever the seed
        low, high = (low, low + FULL_TURN) if low + FULL_TURN <= high else (high - FULL_TURN, high)
    spacing = (high - low) / max(steps - 1, 1)
    best = inf
    for k in range(steps):
        for side in range(2):
            values[side, k] = least_direction_error(
                form, limits, goal, plane, l1, l2, low + spacing * k, side, seed, best + EDGE_MARGIN,
                scratch, table[0],
            )  # fmt: skip
            best = min(best, values[side, k])
    count = 0
    while count < CANDIDATES:
        least, side, at = inf, 0, 0
        for i in range(2):
            for k in range(steps):
                falls = values[i, k] < least
                falls = falls and (k == 0 or values[i, k - 1] >= values[i, k])
                if falls and (k == steps - 1 or values[i, k + 1] >= values[i, k]):
                    least, side, at = values[i, k], i, k
        if least > best + EDGE_MARGIN or least == inf:
            break
        q5, chord = low + spacing * at, least
        for sense in (-1, 1):
            if 0 <= at + sense < steps and values[side, at + sense] == inf:
                step = 0.5 * sense * spacing
                for _ in range(8):
                    new = least_direction_error(
                        form, limits, goal, plane, l1, l2, q5 + step, side, seed, inf, scratch, table[count]
                    )
                    if new <= chord:
                        q5, chord = q5 + step, new
                    step *= 0.5
            # Take away the valley of this minimum, so that the next one is another's.
            k, value = at + sense, least
            while 0 <= k < steps and value <= values[side, k] < inf:
                value = values[side, k]
                values[side, k] = FULL_TURN
                k += sense
        values[side, at] = FULL_TURN
        if chord <= best + SCAN_MARGIN:
            least_direction_error(
                form, limits, goal, plane, l1, l2, q5, side, seed, inf, scratch, table[count]
            )
            best = min(best, chord)
            count += 1
    return count


@compiled
def least_distances(
    joints, tool, limits, opened, form, goal, plane, l1, l2, seed, found, table, errors, frames, work
):
    """Fill table (k, 5) and errors (k, 2) [m, rad] with the least position error and where it is; returns k.

    Two descents give a distance that is reached. The scan by formula leaves out what cannot be nearer, and
    descents on the true model take what is left to its minima.
    """
    q, best, count = seed.copy(), inf, 0
    for start in range(2):
        if start == 1:
            copy(found, q)
        position, direction = descend_position(joints, tool, opened, goal, q, frames, work)
        count = keep_nearest(table, errors, count, q, position, direction)
        best = min(best, position)
    places = np.empty((PLACES, 7))
    kept, margin = scan_places(form, limits, goal, plane, l1, l2, seed, best, places)
    for k in range(kept):
        if places[k, 0] - margin > best:
            break
        copy(places[k, 2:], q)
        position, direction = descend_position(joints, tool, opened, goal, q, frames, work)
        count = keep_nearest(table, errors, count, q, position, direction)
        best = min(best, position)
    return count


@compiled
def closest_parallel(joints, tool, limits, opened, period, form, goal, narrow, seed, found, table, errors):
    """Closest configurations of an arm with parallel axes 2, 3, 4: by formula, refined on the true model.

    opened (2, 5): the limits, infinite where a joint turns all the way round. found (5,): one more place
    to start from. Fills table (k, 5) and errors (k, 2) [m, rad]; returns (number of rows, whether the
    formula reaches the position). Where the tool axis is axis 5 and the geometry exact, that is proof
    either way.
    """
    frames = np.empty((13, 3))
    work = np.empty((21, 13))
    scratch = np.empty((2, 5))
    near = seed.copy()
    clip(near, limits)
    plane = np.empty((2, 3))
    plane_axes(form[U], plane)
    l1 = in_plane(plane, form[LINK1, 0], form[LINK1, 1], form[LINK1, 2])
    l2 = in_plane(plane, form[LINK2, 0], form[LINK2, 1], form[LINK2, 2])
    kept = scan_roll(form, limits, goal, plane, l1, l2, near, np.empty((2, SCAN)), scratch, table)
    in_place = kept > 0
    settled, least, count = in_place and form[KIND, FREE_ROLL] != 0.0, inf, kept
    for k in range(kept):  # what is exact already stays in the table, beside what is refined
        forward(joints, tool, table[k], frames)
        errors[k, 0], errors[k, 1] = goal_errors(joints, frames, goal)
        settled = settled and errors[k, 0] < EXACT
        copy(table[k], table[kept + k])
    if in_place and not settled:
        copy(found, table[2 * kept])
        count = kept + refine_together(
            joints, tool, opened, goal, narrow, table[kept:], errors[kept:], kept + 1, frames, work
        )
        restore_position(
            joints, tool, opened, goal, 0.0, table[kept:], errors[kept:], count - kept, frames, work
        )
    for k in range(count):
        least = min(least, errors[k, 0])
    if least > EQUAL:
        rows = least_distances(
            joints, tool, limits, opened, form, goal, plane, l1, l2, near, found,
            table[count : count + PLACES], errors[count:], frames, work,
        )  # fmt: skip
        count += turn_in_place(
            joints, tool, opened, goal, narrow, table[count:], errors[count:], rows, frames, work
        )
        for k in range(count):
            least = min(least, errors[k, 0])
    if not settled:
        copy(near, table[count])  # what is best already stays as it is: no weights that would move it
        count += refine_seed(
            joints, tool, opened, goal, narrow, inf, inf, least, table[count:], errors[count:], frames, work
        )
    wrap_rows_into_limits(limits, period, near, table, count)
    return count, in_place
