"""Closest configurations where axes 2, 3, 4 are parallel: a search over joint 5."""

from math import inf, isnan, pi, sin, sqrt

import numpy as np

from ..chain import clip, forward, goal_errors
from ..closed_form.candidates import EXACT
from ..compiled import compiled
from ..layout import DIRECTION, FREE_ROLL, KIND, LINK1, LINK2, SIGN3, SIGN4, SIGNS, U
from ..rotation import FULL_TURN, stops_within_a_turn, wrap_into_limits
from .general import refine, refine_together, wrap_rows_into_limits
from .plane import (
    first_joint_angles,
    in_plane,
    phase,
    phasor,
    planar_problem,
    planar_sign,
    plane_axes,
    solve_triangle_nearest,
    wrap_planar_joints,
)

SCAN = 48  # values of q5 that are tried, evenly spread
CANDIDATES = 6  # best of them that are refined
SCAN_MARGIN = 0.3  # a scanned direction error that exceeds the best by more cannot become the best
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
def nearest_positions(form, limits, goal, plane, l1, l2, q1, q5, seed, scratch, table, errors, count, most):
    """Configurations with joints 1 and 5 given whose tool point is nearest to the goal.

    Where the distance has a minimum, each joint is at a limit or free, and the rigid pieces between
    free joints point along the line to the target: 27 cases and the senses of the pieces. The best
    go into table (k, 5) below row most, sorted by errors (k, 2) [m]; returns the new count.
    """
    target, end, _, _, off = planar_problem(form, goal, plane, q1, q5)
    angles, trial = scratch[0], scratch[1]
    for case in range(27):
        free, usable = 0, True
        for j in range(3):
            at = case // 3**j % 3  # 0 free, 1 lower limit, 2 upper limit
            free += at == 0
            usable = usable and (at == 0 or stops_within_a_turn(limits, j + 1))
            angles[j] = planar_sign(form, j + 1) * limits[at - 1, j + 1] if at > 0 else 0.0
        if not usable:
            continue
        for senses in range(1 << free):
            heading, tip, first, piece, piece_turn = 0.0, 0.0j, -1, 0.0j, 0.0
            left, reach, toward = senses, 0.0, 1.0 + 0.0j
            for j in range(4):
                if j == 3 or case // 3**j % 3 == 0:
                    if first >= 0:  # the piece that began at the free joint first ends here
                        sense = 1.0 if left & 1 else -1.0
                        left >>= 1
                        reach += sense * abs(piece)
                        angles[first] = phase(sense * toward) - phase(piece) - heading
                        heading += angles[first] + piece_turn
                    elif j < 3 and abs(target - tip) > 1e-12:
                        toward = (target - tip) / abs(target - tip)
                    if j < 3:
                        first, piece, piece_turn = j, 0.0j, 0.0
                if j == 3:
                    break
                link = l1 if j == 0 else l2 if j == 1 else end
                if first < 0:
                    heading += angles[j]
                    tip += phasor(heading) * link
                else:
                    piece_turn += angles[j] if j > first else 0.0
                    piece += phasor(piece_turn) * link
            missed = abs(abs(target - tip) - reach)
            missed = sqrt(missed * missed + off * off)
            if count == most and missed >= errors[most - 1, 0]:
                continue
            if not wrap_planar_joints(form, limits, seed, angles[0], angles[1], angles[2], trial):
                continue
            k = min(count, most - 1)
            while k > 0 and errors[k - 1, 0] > missed:
                table[k] = table[k - 1]
                errors[k, 0] = errors[k - 1, 0]
                k -= 1
            errors[k, 0] = missed
            table[k, 0], table[k, 4] = q1, q5
            table[k, 1], table[k, 2], table[k, 3] = trial[1], trial[2], trial[3]
            count = min(count + 1, most)
    return count


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
        low, high = seed[4] - pi, seed[4] + pi
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
def nearest_places(form, limits, goal, plane, l1, l2, seed, scratch, table, errors):
    """Configurations whose tool point is near a goal out of reach, for a few values of joints 1 and 5.

    Joint 1 turns the plane towards the goal or stops at a limit; q5, where it matters, takes three values
    evenly spread from seed's. Fills table (k, 5) and errors (k, 2) [m]; returns the number of rows.
    """
    roots = np.empty(4)
    count = 0
    for third in range(1 if form[KIND, FREE_ROLL] != 0.0 else 3):
        q5 = wrap_into_limits(seed[4] + third * FULL_TURN / 3.0, seed[4], limits[0, 4], limits[1, 4])
        if isnan(q5):
            continue
        choices, _ = first_joint_angles(form, goal, q5, roots)
        if choices == 0:
            choices, roots[0] = 1, seed[0]
        if stops_within_a_turn(limits, 0):
            roots[choices], roots[choices + 1] = limits[0, 0], limits[1, 0]
            choices += 2
        rows, misses, part = table[count:], errors[count:], 0
        for k in range(choices):
            q1 = wrap_into_limits(roots[k], seed[0], limits[0, 0], limits[1, 0])
            if not isnan(q1):
                part = nearest_positions(
                    form, limits, goal, plane, l1, l2, q1, q5, seed, scratch, rows, misses, part, 4
                )
        count += part
    return count


@compiled
def closest_parallel(joints, tool, limits, opened, period, form, goal, narrow, seed, found, table, errors):
    """Best efforts of an arm whose axes 2, 3, 4 are parallel, by formula and then refined on the true model.

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
    if in_place:
        settled = (
            form[KIND, FREE_ROLL] != 0.0
        )  # what is exact already stays in the table, beside what is refined
        for k in range(kept):
            forward(joints, tool, table[k], frames)
            errors[k, 0], errors[k, 1] = goal_errors(joints, frames, goal)
            settled = settled and errors[k, 0] < EXACT
        count = kept if settled else 2 * kept
        table[kept:count] = table[: count - kept]
    else:
        settled = False
        count = nearest_places(form, limits, goal, plane, l1, l2, near, scratch, table, errors)
    if not settled:
        table[count] = found
        count = kept + refine_together(
            joints, tool, opened, goal, narrow, table[kept:], errors[kept:], count + 1 - kept, frames, work
        )
        table[count] = near  # what is best already stays as it is: no weights that would move it
        errors[count, 0], errors[count, 1] = refine(
            joints, tool, opened, goal, narrow, narrow.shape[0] - 1, table[count], frames, work
        )
        count += 1
    wrap_rows_into_limits(limits, period, near, table, count)
    return count, in_place
