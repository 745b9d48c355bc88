# SPDX-License-Identifier: Apache-2.0
"""Arms with a spare joint: curves of solutions, and families of such curves."""

from __future__ import annotations

from math import ceil, floor, inf, isinf, sqrt

import numpy as np

from .arrays import (
    CHORD_TOLERANCE,
    POSITION_TOLERANCE,
    WEIGHT,
    add_distinct,
    copy,
    largest_move,
    squared,
    wrap_into_limits,
)
from .chain import damped_step, forward, met, normal_equations, perturb, squared_errors
from .closed_form import EXACT, polish_and_check
from .language import F1, F2, I0, I1, R1, R2, U1, compiled
from .methods.lm import FIRST_DAMPING, descend_lm

# Curves of solutions of arms with one spare joint, step by step.
#
# curve: what all functions on one curve need, a tuple of joints, tool, limits, goal and options as
# everywhere; free (n,): 0 for joints that stay; along (n,): the motion so far; and scratch: frames, work,
# fixed (2, n).

LONGEST = 0.15  # step along a curve, all joints together [rad or m]
BENT = 0.15  # share of a step: what is further from its tangent is halved
SAME = 1e-4  # rad or m: configurations that differ by less are one
CLOSE = 1e-9  # rad or m: joint 1 is at its value
MAX_TRIALS = 20  # to bring it there
NEAREST = 1e-5  # rad or m: the shortest step towards the seed; gains by shorter ones are rounding
GAIN = 1e-3  # of squared distance by a step of length 1
AT_LIMIT = 1e-9  # rad or m
ALONG = 6  # in curve
FLAT = 1e-11  # damping as a share of the largest diagonal entry, so that the null vector remains


@compiled
def tangent(curve):
    """Turn along, the motion so far, into the unit motion that leaves the tool; whether it can.

    By inverse iteration with the normal equations at frames, so that where curves cross it goes straight on.
    """
    # (J^T J + a little) x = along, twice: of what along is made of, the null vector of J grows most
    joints, _, _, goal, options, free, along, frames, work, _ = curve
    n = along.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient, step = work[3 * n, :n], work[3 * n + 1, :n]
    normal_equations(joints, frames, goal, options[WEIGHT], jac, hessian, gradient)
    largest = 0.0
    for i in range(n):
        largest = max(largest, hessian[i, i])
    for _ in range(2):
        copy(along, gradient)
        damped_step(hessian, gradient, free, FLAT * largest, factor, step)
        length, ahead = 0.0, 0.0
        for i in range(n):
            length += step[i] * step[i]
        if not length > 0.0 or isinf(length):
            return False
        length = sqrt(length)
        for i in range(n):
            ahead += along[i] * step[i]
        if ahead < 0.0:  # the sense of the motion so far
            length = -length
        for i in range(n):
            along[i] = step[i] / length
    return True


@compiled
def room_ahead(limits, free, along, q):
    """Return (how far from q (n,) the first limit is along (n,), whose it is)."""
    least, stop = inf, -1
    for i in range(q.shape[0]):
        if free[i] != 0.0 and along[i] != 0.0:
            room = (limits[1, i] - q[i]) / along[i] if along[i] > 0.0 else (limits[0, i] - q[i]) / along[i]
            if room <= least:
                least, stop = max(room, 0.0), i
    return least, stop


@compiled
def step_along(curve, length, q, trial):
    """Write into trial (n,) the solution about length along the unit vector along from q (n,).

    Where a limit comes first, the solution at that limit. Returns (how far it is from the tangent as a
    share of the step, infinite if there is none; the joint at its limit, -1 if none).
    """
    joints, tool, limits, goal, options, free, along, frames, work, fixed = curve
    n = q.shape[0]
    # predict along the tangent, at most to the first limit, whose joint is held there
    room, stop = room_ahead(limits, free, along, q)
    if room <= length:
        length = room
    else:
        stop = -1
    for i in range(n):
        trial[i] = q[i] + length * along[i]
        fixed[0, i], fixed[1, i] = limits[0, i], limits[1, i]
    if stop >= 0:
        trial[stop] = limits[1, stop] if along[stop] > 0.0 else limits[0, stop]
        fixed[0, stop] = fixed[1, stop] = trial[stop]
    if length < AT_LIMIT:
        copy(q, trial)
        return 0.0, stop
    # correct: back to the goal
    descend_lm(joints, tool, fixed, goal, options, 1e-8, trial, frames, work)
    position, direction = squared_errors(joints, frames, goal)
    if not met(position, direction, options):
        return inf, stop
    # the correction measures how much the curve is bent here
    total = 0.0
    for i in range(n):
        total += squared(trial[i] - q[i] - length * along[i])
    return sqrt(total) / length, stop


@compiled
def crossing(curve, length, value, behind, ahead, q, out):
    """Write into out (n,) the solution with joint 1 at value; whether there is one on this piece of curve.

    The piece begins at q (n,) in the direction along and is length long; behind and ahead: joint 1 less
    value at its ends. Regula falsi (Illinois) along the curve, which leads to no other one.
    """
    joints, tool, limits, goal, options, _, _, frames, work, fixed = curve
    low, high = 0.0, length
    for _ in range(MAX_TRIALS):
        distance = low + (high - low) * behind / (behind - ahead)  # where the chord is zero
        bent, _ = step_along(curve, distance, q, out)
        if not bent < 2.0 * BENT:
            return False
        gap = out[0] - value
        if abs(gap) < CLOSE:
            break
        # the end of the other sign stays; halved, so that it is replaced soon too
        if (gap > 0.0) == (ahead > 0.0):
            high, ahead, behind = distance, gap, 0.5 * behind
        else:
            low, behind, ahead = distance, gap, 0.5 * ahead
    # the last digits by a descent of the other joints
    for i in range(q.shape[0]):
        fixed[0, i], fixed[1, i] = limits[0, i], limits[1, i]
    out[0] = fixed[0, 0] = fixed[1, 0] = value
    descend_lm(joints, tool, fixed, goal, options, 1e-8, out, frames, work)
    return True


@compiled
def closes(curve, period, length, start, q, out):
    """Whether the piece of length along the unit vector along from q (n,) comes by start (n,).

    Whole turns left out. A little before and behind the piece too. out (n,) is scratch.
    """
    n, along = q.shape[0], curve[ALONG]
    distance = 0.0
    copy(q, out)
    for trials in range(MAX_TRIALS):
        # how far start is from here, along the tangent and in all
        ahead, square, largest = 0.0, 0.0, 0.0
        for i in range(n):
            gap = start[i] - out[i]
            if period[i] > 0.0:
                gap -= period[i] * floor(gap / period[i] + 0.5)
            ahead += gap * along[i]
            square += gap * gap
            largest = max(largest, abs(gap))
        if largest < SAME:
            return True
        distance += ahead
        far = square > squared(1.5 * length) if trials == 0 else abs(ahead) < CLOSE
        if far or not -0.2 * length < distance < 1.2 * length:
            return False
        bent, _ = step_along(curve, distance, q, out)
        if bent == inf:
            return False
    return False


@compiled
def approach(joints, tool, limits, goal, options, seed, q, scratch, frames, work):
    """Move q (n,), a solution, along its curve within limits to where it is nearest to seed (n,), in place.

    Not by nearest_on_self_motion, whose steps may lead to the next piece of the curve. Steps are halved where
    they do not lead nearer.
    """
    n = q.shape[0]
    along, trial, free, fixed = scratch[0], scratch[1], scratch[2], scratch[3:5]
    curve = joints, tool, limits, goal, options, free, along, frames, work, fixed
    least = 0.0
    for i in range(n):
        free[i] = 0.0 if limits[0, i] == limits[1, i] else 1.0
        along[i] = 1.0 / (1.0 + i)
        least += squared(q[i] - seed[i])
    length = 0.5 * LONGEST
    while length > NEAREST:
        forward(joints, tool, q, frames)
        if not tangent(curve):
            return
        slope = 0.0
        for i in range(n):
            slope += along[i] * (seed[i] - q[i])
        if slope < 0.0:
            for i in range(n):
                along[i] = -along[i]
        bent, _ = step_along(curve, length, q, trial)
        total = 0.0
        for i in range(n):
            total += squared(trial[i] - seed[i])
        if bent <= BENT and total < least - GAIN * length * length:
            least = total
            copy(trial, q)
        else:
            length *= 0.5


SHORTEST = 1e-6  # step along a curve, all joints together [rad or m]
MAX_STEPS = 20_000  # in one sense
STRAIGHT = 0.05  # share of a step: what is nearer to its tangent makes the next one longer
MAX_PIECES = 256
MORE = 0.1  # rad: a joint with more than a turn has so much more
UNKNOWN, AGAIN, ENDED = -1, -2, -3  # of a solution, and of how a curve ends


@compiled
def turns_freely(limits, period, i):
    """Whether joint i has room for more than a turn: all its turns fit, so its limits do not cut a family."""
    return period[i] > 0.0 and limits[1, i] - limits[0, i] > period[i] + MORE


@compiled
def turned_into(limits, period, q, turned):
    """Write into turned (n,) the joints of q (n,) turned into the limits; whether they fit.

    Joints that turn freely fit always and stay as they are.
    """
    inside = True
    for i in range(q.shape[0]):
        turned[i] = q[i]
        if turns_freely(limits, period, i):
            continue
        if period[i] > 0.0:
            turned[i] += period[i] * ceil((limits[0, i] - AT_LIMIT - q[i]) / period[i])
        inside = inside and limits[0, i] - AT_LIMIT <= turned[i] <= limits[1, i] + AT_LIMIT
    return inside


@compiled
def inside_between(limits, period, a, b):
    """Return where between a and b (n,), from 0 to 1, joints are likely to be inside the limits, else -1.

    By straight lines.
    """
    low, high = 0.0, 1.0
    for i in range(a.shape[0]):
        if turns_freely(limits, period, i):
            continue
        # the turn of this joint whose middle is nearest to that of its limits
        change, start = b[i] - a[i], a[i]
        if period[i] > 0.0:
            middle = start + 0.5 * change - 0.5 * (limits[0, i] + limits[1, i])
            start -= period[i] * floor(middle / period[i] + 0.5)
        if change == 0.0:
            continue
        # the shares at which the line crosses the limits; what is inside for all joints is left
        one, two = (limits[0, i] - start) / change, (limits[1, i] - start) / change
        low, high = max(low, min(one, two)), min(high, max(one, two))
    return 0.5 * (low + high) if low < high else -1.0


@compiled
def add_member(limits, period, seed, turned, piece, best, least):
    """Add turned (n,) to a piece of a curve, of which best (k, n) is the member nearest to seed (n,).

    least (k,): its squared distance. Joints that turn freely are turned towards seed, in place.
    """
    total = 0.0
    for i in range(turned.shape[0]):
        if turns_freely(limits, period, i):
            turned[i] = wrap_into_limits(turned[i], seed[i], limits[0, i], limits[1, i])
        total += squared(turned[i] - seed[i])
    if total < least[piece]:
        least[piece] = total
        copy(turned, best[piece])


@compiled
def join(piece, other, best, least):
    """Make one piece of two: other keeps the nearer member."""
    if least[piece] < least[other]:
        least[other] = least[piece]
        copy(best[piece], best[other])
    if piece != other:
        least[piece] = inf


@compiled
def is_jump(limits, period, a, b):
    """Whether some joint with a turn at most was turned between a and b (n,): its limits lie between them."""
    for i in range(a.shape[0]):
        parts = period[i] > 0.0 and not turns_freely(limits, period, i)
        if parts and abs(a[i] - b[i]) > 0.5 * period[i]:
            return True
    return False


@compiled
def follow(curve, number, start, limits, period, listed, marks, begin, piece, pieces, members, scratch):
    """Follow a curve of solutions, as the functions above do, from start (n,) on; free and along: out and in.

    Its pieces inside limits (2, n), narrower than those of the curve, are numbered from pieces on; piece:
    that of start, -1 outside. listed: grid, first and known of find_families; solutions in known (s, n) that
    it passes get marks (2, s): number, which is that of the curve, and the piece. begin: the one it starts
    at. members: seed, best and least of add_member. scratch (5, n).
    Returns (pieces, how it ended: ENDED, AGAIN where it began or passed before, or the number of another
    curve that it has come upon).
    """
    joints, tool, opened, _, _, free, along, frames, _, _ = curve
    grid, first, known = listed
    seed, best, least = members
    n = start.shape[0]
    q, trial, middle, turned, before = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    count, spacing = grid.shape[0], grid[1] - grid[0]
    endless = isinf(opened[1, 0] - opened[0, 0])
    own, now = piece, piece
    for i in range(n):
        free[i] = 0.0 if opened[0, i] == opened[1, i] else 1.0
    length = LONGEST
    copy(start, q)
    turned_into(limits, period, q, before)
    forward(joints, tool, q, frames)
    for steps in range(MAX_STEPS):
        if not tangent(curve):
            return pieces, ENDED
        # one step: no more than from one value of the grid to the next, halved until the curve is straight
        length = min(length, 0.9 * spacing / max(abs(along[0]), 1e-9))
        stop = -1
        while True:
            bent, stop = step_along(curve, length, q, trial)
            if bent <= BENT:
                break
            length *= 0.5
            if length < SHORTEST:
                return pieces, ENDED
        # the piece that the step is on: a new one where it enters the limits, or where a joint with less than
        # a turn of room comes round to its other limit
        room, _ = room_ahead(opened, free, along, q)
        done = min(length, room)
        past, jump = now, False
        if turned_into(limits, period, trial, turned):
            jump = now >= 0 and is_jump(limits, period, before, turned)
            if now < 0 or jump:
                now, pieces = new_piece(pieces, least)
            copy(turned, before)
            add_member(limits, period, seed, turned, now, best, least)
        else:  # outside at its end, but a short piece between two points outside may be inside
            share = inside_between(limits, period, q, trial) if now < 0 else -1.0
            now = -1
            if share > 0.0:
                bend, _ = step_along(curve, share * done, q, middle)
                if bend < inf and turned_into(limits, period, middle, turned):
                    short, pieces = new_piece(pieces, least)
                    add_member(limits, period, seed, turned, short, best, least)
        # where joint 1 passes a value of the grid, the curve passes one of the solutions known there; it is
        # marked, so that no curve is followed twice
        here, there = (q[0] - grid[0]) / spacing, (trial[0] - grid[0]) / spacing
        crossed = floor(max(here, there))
        index = crossed % count if endless else crossed
        if floor(min(here, there)) < crossed and 0 <= index < count:
            value = grid[0] + spacing * crossed
            s = UNKNOWN
            if crossing(curve, done, value, q[0] - value, trial[0] - value, q, middle):
                for k in range(first[index], first[index + 1]):
                    if largest_move(period, known[k], middle) < SAME:
                        s = k
            if s >= 0:
                at = -1
                if turned_into(limits, period, middle, turned):
                    at = now if past < 0 or (jump and not is_jump(limits, period, turned, before)) else past
                    if at < 0:  # outside at both ends of the step
                        at, pieces = new_piece(pieces, least)
                    add_member(limits, period, seed, turned, at, best, least)
                if marks[0, s] == UNKNOWN:
                    marks[0, s], marks[1, s] = number, at
                elif marks[0, s] != number or s != begin or steps > 0:  # passed before, by this curve or another
                    if at >= 0 and marks[1, s] >= 0:
                        join(at, marks[1, s], best, least)
                    return pieces, AGAIN if marks[0, s] == number else marks[0, s]
        if steps > 0 and closes(curve, period, done, start, q, middle):
            if own >= 0 and past >= 0:
                join(past, own, best, least)
            return pieces, AGAIN
        if stop >= 0:
            return pieces, ENDED
        if bent < STRAIGHT:
            length = min(1.5 * length, LONGEST)
        copy(trial, q)
        forward(joints, tool, q, frames)
    return pieces, ENDED


@compiled
def new_piece(pieces, least):
    """Return (the number of a new piece of a curve, how many there are); a full table reuses the last."""
    number = min(pieces, least.shape[0] - 1)
    least[number] = inf
    return number, number + 1


@compiled
def find_families(
    joints: R2,
    tool: R1,
    limits: R2,
    opened: R2,
    period: R1,
    goal: F1,
    options: F1,
    grid: F1,
    first: I1,
    known: F2,
    descents: I0,
    state: U1,
    seed: F1,
    found: F2,
):
    """Write the member nearest to seed (n,) of each family of solutions into the rows of found; how many.

    known (s, n): solutions with joint 1 at the values grid (k,), evenly spaced, inside opened (2, n); those
    of grid[k] are the rows from first[k] to first[k + 1]. From each the curve of solutions is followed inside
    opened, wider limits; its pieces inside limits (2, n) are the families. Descents from random
    configurations look for curves between the values of the grid. limits, opened: equal for joints that do
    not count.
    """
    n = seed.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work, scratch = np.empty((3 * n + 8, max(n, 6))), np.empty((8, n))
    exact = options.copy()
    exact[0], exact[1] = min(options[POSITION_TOLERANCE], EXACT), min(options[CHORD_TOLERANCE], EXACT)
    best, least = np.empty((MAX_PIECES, n)), np.empty(MAX_PIECES)
    start, along, turned = np.empty(n), np.empty(n), np.empty(n)
    curve = joints, tool, opened, goal, exact, scratch[0], along, frames, work, scratch[1:3]
    listed, members = (grid, first, known), (seed, best, least)
    marks = np.empty((2, known.shape[0]), np.int64)
    marks[:, :] = UNKNOWN
    pieces = 0
    # curves through the known solutions that no other curve has passed, then from random configurations
    for s in range(known.shape[0] + descents):
        begin, before, piece = UNKNOWN, pieces, -1
        if s < known.shape[0]:
            if marks[0, s] != UNKNOWN:
                continue
            begin = s
            copy(known[s], start)
        else:
            perturb(seed, limits, 1.0, state, start)
            descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, start, frames, work)
            descend_lm(joints, tool, limits, goal, exact, 1e-8, start, frames, work)
            position, direction = squared_errors(joints, frames, goal)
            if not met(position, direction, exact):
                continue
        if turned_into(limits, period, start, turned):
            piece, pieces = new_piece(pieces, least)
            add_member(limits, period, seed, turned, piece, best, least)
        if begin >= 0:
            marks[0, s], marks[1, s] = s, piece
        for sense in (1.0, -1.0):  # both ways, unless the curve is closed
            for i in range(n):
                along[i] = sense / (1.0 + i)  # joint 1 moves most, but a curve may turn back just here
            pieces, end = follow(
                curve, s, start, limits, period, listed, marks, begin, piece, pieces, members, scratch[3:]
            )
            if end == AGAIN:
                break
            if end >= 0 and begin == UNKNOWN:  # a curve that is known
                pieces = before
                break
    # of each piece the member nearest to seed, moved along the curve to where it is nearest
    count = 0
    for piece in range(pieces):
        q = best[piece]
        if isinf(least[piece]):
            continue
        approach(joints, tool, limits, goal, exact, seed, q, scratch, frames, work)
        if polish_and_check(joints, tool, limits, goal, options, q, frames)[0]:
            count = add_distinct(period, found, count, q)
    return count
