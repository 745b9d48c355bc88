# SPDX-License-Identifier: Apache-2.0
"""Limbs on a trunk: for fixed joints of the trunk every limb is an arm of its own, with a formula.

K limbs. trunk (M, 10): the joints that carry them, those of limb k from rows[k] to rows[k + 1], their
VARIABLE a column of the q (n,) of all joints; mounts (K, 9): as tool in layout.py, the frame in which the
limb is described. joints (K, 5, 10), tools (K, 9), limits (K, 2, 5), forms (K, 14, 3): the limb as an arm
in that frame; columns (K, 5): of its joints. goals (K, 9): in the base frame. errors (K, 2): position [m] and
direction [rad] of every limb, written where all are solved.
"""

from math import ceil, inf, isfinite, pi

import numpy as np

from ..arrays.copies import copy
from ..arrays.layout import DIRECTION, LATERAL
from ..chain.forward import forward
from ..closed_form.candidates import nearest_solution
from ..runtime.compiled import compiled
from ..tracking.tracking import advance


@compiled
def goal_on_limb(trunk, mounts, rows, k, goals, q, local):
    """Write local (9,): the goal of limb k in its own frame, with the joints of the trunk as in q (n,)."""
    own = trunk[rows[k] : rows[k + 1]]
    frames = np.empty((2 * own.shape[0] + 3, 3))
    forward(own, mounts[k], q, frames)
    last = frames.shape[0] - 1  # the x axis of the limb's frame; z and the origin stand before it
    x, z = frames[last], frames[last - 1]
    y0, y1, y2 = z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]
    for first in (0, DIRECTION):
        a, b, c = goals[k, first], goals[k, first + 1], goals[k, first + 2]
        if first == 0:
            a, b, c = a - frames[last - 2, 0], b - frames[last - 2, 1], c - frames[last - 2, 2]
        local[first] = x[0] * a + x[1] * b + x[2] * c
        local[first + 1] = y0 * a + y1 * b + y2 * c
        local[first + 2] = z[0] * a + z[1] * b + z[2] * c
    for i in range(LATERAL, 9):
        local[i] = goals[k, i]


@compiled
def solve_limbs(
    trunk, mounts, rows, joints, tools, limits, forms, columns, goals, options, seed, q, errors
):  # fmt: skip
    """Solve all limbs by formula, near seed (n,), with the joints of the trunk as in q (n,); writes into q.

    Returns whether every limb is solved; q is left incomplete if not.
    """
    local, own, answer = np.empty(9), np.empty(5), np.empty(5)
    for k in range(tools.shape[0]):
        goal_on_limb(trunk, mounts, rows, k, goals, q, local)
        for i in range(5):
            own[i] = seed[columns[k, i]]
        solved, errors[k, 0], errors[k, 1], _ = nearest_solution(
            joints[k], tools[k], limits[k], forms[k], local, options, own, answer
        )
        if not solved:
            return False
        for i in range(5):
            q[columns[k, i]] = answer[i]
    return True


@compiled
def solve_outwards(
    trunk, mounts, rows, joints, tools, limits, forms, columns, goals, options, joint, span, seed, q, errors
):  # fmt: skip
    """Solve all limbs with one joint of the trunk as near seed (n,) as they allow; writes q (n,).

    joint: its column, -1 for a trunk that is not moved. span (4,): its limits, the step between two places
    that are tried, and that to which the nearest one is refined. Returns whether every limb is solved.
    """
    copy(seed, q)
    if joint < 0:
        return solve_limbs(
            trunk, mounts, rows, joints, tools, limits, forms, columns, goals, options, seed, q, errors
        )
    low, high, step, finest = span[0], span[1], span[2], span[3]
    start = min(max(seed[joint], low), high)
    if not isfinite(high - low):
        low, high = start - pi, start + pi
    found, fails = inf, start
    for number in range(ceil(max(start - low, high - start) / step) + 1):
        for sign in (1.0, -1.0):
            before = start + sign * (number - 1) * step
            if (number == 0 and sign < 0.0) or (number > 0 and not low < before < high and before != start):
                continue
            q[joint] = min(max(start + sign * number * step, low), high)
            if solve_limbs(
                trunk, mounts, rows, joints, tools, limits, forms, columns, goals, options, seed, q, errors
            ):
                found, fails = q[joint], before
                break
        if found < inf:
            break
    if not found < inf:
        return False
    if found == start:
        return True
    trial, spare = q.copy(), errors.copy()
    while abs(found - fails) > finest:
        trial[joint] = 0.5 * (found + fails)
        if solve_limbs(
            trunk, mounts, rows, joints, tools, limits, forms, columns, goals, options, seed, trial, spare
        ):
            found = trial[joint]
            copy(trial, q)
            for k in range(errors.shape[0]):
                copy(spare[k], errors[k])
        else:
            fails = trial[joint]
    return True


@compiled
def advance_limbs(
    trunk, mounts, rows, joints, tools, limits, forms, columns, goals, options, before, q, errors
):  # fmt: skip
    """Move all limbs on to their goals along their branches, as tracking.advance, the trunk as in q (n,).

    before (n,): the configuration before q. Writes into q and returns True if every limb follows; else q is
    as it was.
    """
    local, work, moved = np.empty(9), np.empty((23, 9)), q.copy()
    own, last = np.empty(5), np.empty(5)
    for k in range(tools.shape[0]):
        goal_on_limb(trunk, mounts, rows, k, goals, q, local)
        for i in range(5):
            own[i], last[i] = q[columns[k, i]], before[columns[k, i]]
        solved, errors[k, 0], errors[k, 1] = advance(
            joints[k], tools[k], limits[k], forms[k], local, options, own, last, work
        )
        if not solved:
            return False
        for i in range(5):
            moved[columns[k, i]] = own[i]
    copy(moved, q)
    return True
