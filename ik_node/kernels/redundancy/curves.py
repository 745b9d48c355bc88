# SPDX-License-Identifier: Apache-2.0
"""Curves of solutions of arms with one spare joint, step by step.

curve: what all functions on one curve need, a tuple of joints, tool, limits, goal and options as everywhere;
free (n,): 0 for joints that stay; along (n,): the motion so far; and scratch: frames, work, held (2, n).
"""

from math import floor, inf, isinf, sqrt

from ..arrays.copies import copy
from ..arrays.layout import WEIGHT
from ..chain.forward import forward, met, squared_errors
from ..chain.linear import damped_step, normal_equations
from ..methods.lm import descend_lm
from ..runtime.compiled import compiled

LONGEST = 0.15  # step along a curve, all joints together [rad or m]
BENT = 0.15  # share of a step: what is further from its tangent is halved
SAME = 1e-4  # rad or m: configurations that differ by less are one
CLOSE = 1e-9  # rad or m: joint 1 is at its value
MOST_TRIALS = 20  # to bring it there
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
        if ahead < 0.0:
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
    joints, tool, limits, goal, options, free, along, frames, work, held = curve
    n = q.shape[0]
    room, stop = room_ahead(limits, free, along, q)
    if room <= length:
        length = room
    else:
        stop = -1
    for i in range(n):
        trial[i] = q[i] + length * along[i]
        held[0, i], held[1, i] = limits[0, i], limits[1, i]
    if stop >= 0:
        trial[stop] = limits[1, stop] if along[stop] > 0.0 else limits[0, stop]
        held[0, stop] = held[1, stop] = trial[stop]
    if length < AT_LIMIT:
        copy(q, trial)
        return 0.0, stop
    descend_lm(joints, tool, held, goal, options, 1e-8, trial, frames, work)
    position, direction = squared_errors(joints, frames, goal)
    if not met(position, direction, options):
        return inf, stop
    total = 0.0
    for i in range(n):
        total += (trial[i] - q[i] - length * along[i]) ** 2
    return sqrt(total) / length, stop


@compiled
def crossing(curve, length, value, behind, ahead, q, out):
    """Write into out (n,) the solution with joint 1 at value; whether there is one on this piece of curve.

    The piece begins at q (n,) in the direction along and is length long; behind and ahead: joint 1 less
    value at its ends. Regula falsi (Illinois) along the curve, which leads to no other one.
    """
    joints, tool, limits, goal, options, _, _, frames, work, held = curve
    low, high = 0.0, length
    for _ in range(MOST_TRIALS):
        place = low + (high - low) * behind / (behind - ahead)
        bent, _ = step_along(curve, place, q, out)
        if not bent < 2.0 * BENT:
            return False
        gap = out[0] - value
        if abs(gap) < CLOSE:
            break
        if (gap > 0.0) == (ahead > 0.0):
            high, ahead, behind = place, gap, 0.5 * behind
        else:
            low, behind, ahead = place, gap, 0.5 * ahead
    for i in range(q.shape[0]):
        held[0, i], held[1, i] = limits[0, i], limits[1, i]
    out[0] = held[0, 0] = held[1, 0] = value
    descend_lm(joints, tool, held, goal, options, 1e-8, out, frames, work)
    return True


@compiled
def closes(curve, period, length, start, q, out):
    """Whether the piece of length along the unit vector along from q (n,) comes by start (n,).

    Whole turns left out. A little before and behind the piece too. out (n,) is scratch.
    """
    n, along = q.shape[0], curve[ALONG]
    place = 0.0
    copy(q, out)
    for trials in range(MOST_TRIALS):
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
        place += ahead
        far = square > (1.5 * length) ** 2 if trials == 0 else abs(ahead) < CLOSE
        if far or not -0.2 * length < place < 1.2 * length:
            return False
        bent, _ = step_along(curve, place, q, out)
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
    along, trial, free, held = scratch[0], scratch[1], scratch[2], scratch[3:5]
    curve = joints, tool, limits, goal, options, free, along, frames, work, held
    least = 0.0
    for i in range(n):
        free[i] = 0.0 if limits[0, i] == limits[1, i] else 1.0
        along[i] = 1.0 / (1.0 + i)
        least += (q[i] - seed[i]) ** 2
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
            total += (trial[i] - seed[i]) ** 2
        if bent <= BENT and total < least - GAIN * length * length:
            least = total
            copy(trial, q)
        else:
            length *= 0.5
