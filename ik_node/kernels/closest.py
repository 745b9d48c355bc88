# SPDX-License-Identifier: Apache-2.0
"""Closest configurations for goals that cannot be met."""

from __future__ import annotations

from math import acos, atan2, ceil, cos, floor, inf, isnan, pi, sin, sqrt

import numpy as np

from .arrays import (
    C1,
    C2,
    C5,
    D0,
    DEVIATION,
    DIRECTION,
    END,
    FREE_ROLL,
    FULL_TURN,
    KIND,
    LATERAL,
    LINK1,
    LINK2,
    P0,
    POSITION_TOLERANCE,
    PRISMATIC,
    RATIO,
    SIGN3,
    SIGN4,
    SIGNS,
    SIZE,
    VARIABLE,
    W1,
    W5,
    WEIGHT,
    U,
    copy,
    copy_column,
    harmonics,
    largest_difference,
    rotate_axis_angle,
    squared,
    stops_within_a_turn,
    wrap_into_limits,
)
from .chain import angle_between, clip, excess_of_balls, forward, goal_errors, hold_in_balls, keep_in_balls
from .closed_form import EXACT
from .language import F0, F1, F2, I0, I1, R1, R2, compiled
from .methods.lm import FIRST_DAMPING, descend_lm

SURE = 1e-4  # below this damping the gain of a step is about twice that of the minimum of its quadratic model
OPTIMISM = 2.0  # a descent is given up if this many times that gain is not enough


@compiled
def curved_equations(joints, frames, goal, weight, rows, hessian, gradient, scale):
    """Exact Newton equations of (|position error|^2 + weight^2 angle^2) / 2 at frames.

    Writes hessian (n, n), lower half, gradient (n,) downhill and scale (n,), what Gauss and Newton
    would have on the diagonal. rows (m, 13) is scratch: of each joint the motion of the tool point (3)
    and axis (3), the cross products of the position error (3) and of the goal's direction (3, with its
    factor) with the axis, and the change of the cosine between the directions.

    With e the position error, c the cosine, f(c) = weight^2 angle^2 / 2, and a_i and c_i the changes of tool
    point and cosine by joint i:
        gradient_i = a_i . e - f' c_i,
        hessian_ij = a_i . a_j - e . (da_i / dq_j) + f'' c_i c_j + f' (dc_i / dq_j).
    A joint j nearer the base turns what joint i moves: da_i / dq_j = w_j cross a_i. Likewise for the axis.
    """
    m = joints.shape[0]
    px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
    dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
    ex, ey, ez = goal[0] - px, goal[1] - py, goal[2] - pz
    gx, gy, gz = goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2]
    square = weight * weight
    # f' and f'': of angle^2 / 2 by the cosine they are -angle / sin and (1 - angle cos / sin) / sin^2
    first, second = 0.0, 0.0
    if isnan(gx):
        gx, gy, gz, square = 0.0, 0.0, 0.0, 0.0
    else:
        angle = angle_between(frames[2 * m + 1], goal[DIRECTION:LATERAL])
        if angle < 1e-3:  # the first terms of their series, exact to rounding
            first, second = -1.0 - angle * angle / 6.0, 1.0 / 3.0
        else:
            sine = max(sin(angle), 1e-6)
            first = -angle / sine
            second = (1.0 - angle * cos(angle) / sine) / (sine * sine)
    first *= square
    second *= square
    hessian[:, :] = 0.0
    gradient[:] = 0.0
    scale[:] = 0.0
    for k in range(m):
        ratio = joints[k, RATIO]
        ax, ay, az = ratio * frames[k, 0], ratio * frames[k, 1], ratio * frames[k, 2]
        a = rows[k]
        if joints[k, PRISMATIC] != 0.0:
            a[0], a[1], a[2] = ax, ay, az
            a[3:13] = 0.0
        else:
            x, y, z = px - frames[m + k, 0], py - frames[m + k, 1], pz - frames[m + k, 2]
            a[0], a[1], a[2] = ay * z - az * y, az * x - ax * z, ax * y - ay * x
            a[3], a[4], a[5] = ay * dz - az * dy, az * dx - ax * dz, ax * dy - ay * dx
            a[6], a[7], a[8] = ey * az - ez * ay, ez * ax - ex * az, ex * ay - ey * ax
            a[9], a[10], a[11] = (
                first * (gy * az - gz * ay),
                first * (gz * ax - gx * az),
                first * (gx * ay - gy * ax),
            )
            a[12] = gx * a[3] + gy * a[4] + gz * a[5]
        i = int(joints[k, VARIABLE])
        gradient[i] += a[0] * ex + a[1] * ey + a[2] * ez - first * a[12]
        scale[i] += a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
        scale[i] += square * (a[3] * a[3] + a[4] * a[4] + a[5] * a[5])
        for base in range(k + 1):
            b = rows[base]
            value = second * a[12] * b[12]
            for c in range(3):
                value += (b[c] - b[c + 6]) * a[c] + b[c + 9] * a[c + 3]
            j = int(joints[base, VARIABLE])
            if i == j and base != k:  # two joints of one variable: entries (base, k) and (k, base)
                value *= 2.0
            hessian[max(i, j), min(i, j)] += value


@compiled
def definite_step(hessian, gradient, free, damping, scale, factor, step):
    """Solve (H + damping diag scale) step = gradient by Cholesky, frozen joints left out.

    Returns whether the damped Hessian is positive definite; only then is step a descent.
    """
    n = gradient.shape[0]
    for i in range(n):
        if free[i] == 0.0:
            step[i] = 0.0
            continue
        total = gradient[i]
        pivot = hessian[i, i] + damping * scale[i]
        least = 1e-15 * abs(pivot)
        for j in range(i):
            if free[j] == 0.0:
                continue
            s = hessian[i, j]
            for k in range(j):
                if free[k] != 0.0:
                    s -= factor[i, k] * factor[j, k]
            s *= factor[j, j]
            factor[i, j] = s
            total -= s * step[j]
            pivot -= s * s
        if not pivot > least:
            return False
        factor[i, i] = 1.0 / sqrt(pivot)  # the inverse, as in damped_step
        step[i] = total * factor[i, i]
    for i in range(n - 1, -1, -1):
        if free[i] == 0.0:
            continue
        s = step[i]
        for k in range(i + 1, n):
            if free[k] != 0.0:
                s -= factor[k, i] * step[k]
        step[i] = s * factor[i, i]
    return True


@compiled
def bounded_step(limits, hessian, gradient, free, damping, scale, factor, right, step, q, trial):
    """Write trial (n,): q after the damped Newton step inside the limits; returns whether there is one.

    A joint that the step takes across a limit stops there, and the step of the others is found anew
    with that move given, so that they make up for it.
    """
    n = q.shape[0]
    for i in range(n):
        outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0)
        free[i] = 0.0 if outward or scale[i] < 1e-20 else 1.0
        trial[i] = q[i]
        right[i] = gradient[i]
    stopped = True
    while stopped:
        stopped = False
        if not definite_step(hessian, right, free, damping, scale, factor, step):
            return False
        for i in range(n):
            if free[i] == 0.0:
                continue
            stop = min(max(q[i] + step[i], limits[0, i]), limits[1, i])
            if stop != q[i] + step[i]:
                stopped = True
                free[i] = 0.0
                trial[i] = stop
                for j in range(n):
                    right[j] -= (stop - q[i]) * hessian[max(i, j), min(i, j)]
    for i in range(n):
        if free[i] != 0.0:
            trial[i] = q[i] + step[i]
    if limits.shape[0] > 2:
        keep_in_balls(trial, limits)
    return True


@compiled
def move_and_gain(q, trial, gradient):
    """Return the largest joint move from q to trial (n,), and the gain that gradient (n,) promises for it."""
    largest, gain = 0.0, 0.0
    for i in range(q.shape[0]):
        largest = max(largest, abs(trial[i] - q[i]))
        gain += (trial[i] - q[i]) * gradient[i]
    return largest, gain


@compiled
def is_stopped(free, q, trial):
    """Whether the step from q to trial (n,) takes a joint to a limit; free (n,) as bounded_step leaves it."""
    stopped = False
    for i in range(q.shape[0]):
        stopped = stopped or (free[i] == 0.0 and trial[i] != q[i])
    return stopped


@compiled
def shorten(q, trial, largest):
    """Bring trial (n,) nearer to q (n,), in place, if its largest joint move is above 1 rad or m."""
    if largest > 1.0:
        for i in range(q.shape[0]):
            trial[i] = q[i] + (trial[i] - q[i]) / largest


@compiled
def next_damping(damping, ratio):
    """Return the damping of the next step; ratio: of the gain of the last one to its promise."""
    if ratio > 0.5:
        return 0.02 * damping if damping > 1e-13 else 0.0
    return max(3.0 * damping, 1e-13) if ratio < 0.1 else damping


@compiled
def descend_newton(joints, tool, limits, goal, weight, share, ceiling, q, frames, work):
    """Bounded, damped Newton descent of (position error^2 + weight^2 direction error^2) / 2 from q, in place.

    weight [m/rad]. share: ends where a step would gain less than this share of the direction's part.
    ceiling [m^2]: ends where even several times the gain that the step promises leave more than that.
    frames are left at the returned q. work (2 n + 6 + m, max(n, 13)) is scratch.
    """
    n, m = q.shape[0], joints.shape[0]
    hessian, factor, rows = work[:n, :n], work[n : 2 * n, :n], work[2 * n + 6 : 2 * n + 6 + m]
    gradient, step, free = work[2 * n, :n], work[2 * n + 1, :n], work[2 * n + 2, :n]
    trial, scale, right = work[2 * n + 3, :n], work[2 * n + 4, :n], work[2 * n + 5, :n]
    clip(q, limits)
    forward(joints, tool, q, frames)
    position, direction = goal_errors(joints, frames, goal)
    damping, poor = 1e-3, 0
    for _ in range(60):
        cost = penalty(position, direction, weight)
        least = share * weight * weight * direction * direction + 1e-15 * position * position
        curved_equations(joints, frames, goal, weight, rows, hessian, gradient, scale)
        if limits.shape[0] > 2:
            hold_in_balls(q, limits, gradient, hessian, False)
        gain, new = 0.0, inf
        for _ in range(40):
            if bounded_step(limits, hessian, gradient, free, damping, scale, factor, right, step, q, trial):
                largest, gain = move_and_gain(q, trial, gradient)
                if largest < 1e-12 or (gain <= least and damping < 1e-6):
                    break
                if damping < SURE and cost - OPTIMISM * gain > ceiling and not is_stopped(free, q, trial):
                    break
                shorten(q, trial, largest)
                forward(joints, tool, trial, frames)
                position, direction = goal_errors(joints, frames, goal)
                new = penalty(position, direction, weight)
                if new < cost:
                    break
            damping = max(3.0 * damping, 1e-13)
        if not new < cost:
            break
        copy(trial, q)
        ratio = (cost - new) / gain
        # What falls far short of the promise of an undamped step is rounding.
        poor += damping < 1e-6 and ratio < 1e-3
        damping = next_damping(damping, ratio)
        if poor == 2:
            break
    forward(joints, tool, q, frames)


@compiled
def descend_position(joints, tool, limits, goal, q, frames, work):
    """As descend_newton, the position alone; returns (position error [m], direction error [rad]) at q."""
    descend_newton(joints, tool, limits, goal, 0.0, 0.0, inf, q, frames, work)
    return goal_errors(joints, frames, goal)


EQUAL = 1e-6  # m and rad: configurations whose errors differ by less are equally good
SAME_BASIN = 0.02  # rad or m: two first descents that end this near continue to the same minimum
WIDE = 3  # of every four starts, from 0: the one that is refined with other weights
PRUNING_MARGIN = 1e-4  # share by which a value may exceed the best while its descent is not carried to the end


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
            seen = bound > squared(least + EQUAL)
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
def best_row(errors: F2, table: F2, count: I0, seed: F1, tolerance: F0):
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
def keep_unused_joints(joints: R2, tool: R1, limits: R2, goal: F1, seed: F1, q: F1):
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
    return sqrt(squared(position / weight) + direction * direction)


@compiled
def multistart(
    joints: R2, tool: R1, limits: R2, goal: F1, options: F1, wide: F1, narrow: F1, given: F2, known: F2,
    ranked: I1, first: I0, last: I0, table: F2, errors: F2, marks: F2, count: I0, least: F0,
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
            position, direction = refine(joints, tool, limits, goal, ladder, 1, end, 0.0, angle, q, frames, work)
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
                    restore_position(joints, tool, limits, goal, least, table[count:], errors[count:], 1, frames, work)
                    count += 1
                break
        # What is best already stays as it is.
        copy(given[0], table[count])
        count += refine_seed(
            joints, tool, limits, goal, narrow, 0.0, angle, least, table[count:], errors[count:], frames, work
        )
    return count


@compiled
def wrap_rows_into_limits(limits: R2, period: R1, seed: F1, table: F2, count: I0):
    """Turn the joints of count rows of table (k, n) into the limits again, nearest to seed (n,)."""
    for k in range(count):
        for i in range(seed.shape[0]):
            if period[i] > 0.0 and not stops_within_a_turn(limits, i):
                table[k, i] = wrap_into_limits(table[k, i], seed[i], limits[0, i], limits[1, i])


# On arms whose axes 2, 3, 4 are parallel, joints 1 and 5 settle the distance along u, and joints 2, 3, 4
# work in a plane: points there are complex numbers, and the chain is
# target = e^(i a2) (l1 + e^(i a3) (l2 + e^(i a4) end)), theta = a2 + a3 + a4 turning the tool axis.


@compiled
def plane_axes(u, plane):
    """Write plane (2, 3): unit axes that are right-handed with u (3,)."""
    k = 0
    for i in range(1, 3):
        if abs(u[i]) < abs(u[k]):
            k = i
    size = 1.0 / sqrt(1.0 - u[k] * u[k])
    for i in range(3):
        plane[0, i] = size * ((1.0 if i == k else 0.0) - u[k] * u[i])
    plane[1, 0] = u[1] * plane[0, 2] - u[2] * plane[0, 1]
    plane[1, 1] = u[2] * plane[0, 0] - u[0] * plane[0, 2]
    plane[1, 2] = u[0] * plane[0, 1] - u[1] * plane[0, 0]


@compiled
def in_plane(plane, x, y, z):
    """The part of (x, y, z) in the plane, as a complex number."""
    return complex(
        plane[0, 0] * x + plane[0, 1] * y + plane[0, 2] * z,
        plane[1, 0] * x + plane[1, 1] * y + plane[1, 2] * z,
    )


@compiled
def phasor(angle):
    """e^(i angle)."""
    return complex(cos(angle), sin(angle))


@compiled
def phase(z):
    """Angle of a complex number."""
    return atan2(z.imag, z.real)


@compiled
def fold(a, b, target, side):
    """(reached, alpha, beta) with e^(i alpha) (a + e^(i beta) b) = target: a triangle of two links.

    side 0 or 1: elbow. Where both elbows are the same, side 1 is not reached.
    """
    largest = abs(a) * abs(b)
    if largest < 1e-12:
        return False, 0.0, 0.0
    # |target|^2 = |a|^2 + |b|^2 + 2 |a| |b| cos of the angle between the links
    square = target.real * target.real + target.imag * target.imag
    square -= a.real * a.real + a.imag * a.imag + b.real * b.real + b.imag * b.imag
    ratio = 0.5 * square / largest
    if abs(ratio) > 1.0 + 1e-9 or (side == 1 and abs(ratio) >= 1.0):
        return False, 0.0, 0.0
    # beta is counted from the links as they are, whose own angles differ already
    bend = acos(min(max(ratio, -1.0), 1.0))
    beta = (bend if side == 0 else -bend) + phase(a) - phase(b)
    return True, phase(target) - phase(a + b * phasor(beta)), beta


@compiled
def wrap_planar_joints(form, limits, seed, a2, a3, a4, q):
    """Write q[1:4] from the planar angles, each turned nearest to seed; returns whether all are in limits."""
    q[1] = wrap_into_limits(a2, seed[1], limits[0, 1], limits[1, 1])
    q[2] = wrap_into_limits(form[SIGNS, SIGN3] * a3, seed[2], limits[0, 2], limits[1, 2])
    q[3] = wrap_into_limits(form[SIGNS, SIGN4] * a4, seed[3], limits[0, 3], limits[1, 3])
    return not (isnan(q[1]) or isnan(q[2]) or isnan(q[3]))


@compiled
def planar_sign(form, joint):
    """1 or -1: the sense in which joint 1, 2 or 3 turns in the plane."""
    return 1.0 if joint == 1 else form[SIGNS, joint - 1]


@compiled
def solve_triangle_nearest(form, limits, l1, l2, end, target, theta0, seed, trial, q):
    """Reach target exactly with theta nearest to theta0, in limits; writes q[1:4].

    Theta moves along the self-motion of the planar chain. It is best at theta0, or at an end of a
    feasible stretch: a joint at a limit, or the elbow straight or folded. Each of these leaves a
    triangle of two links. Returns the distance of theta from theta0, inf if there is none.
    """
    # case 0: theta0; 1 to 6: joint 1, 2 or 3 at a limit; 7 and 8: the elbow straight or folded
    best, least = inf, inf
    for case in range(9):
        joint, angle = 0, 0.0
        if 1 <= case <= 6:
            joint = (case + 1) // 2
            if not stops_within_a_turn(limits, joint):
                continue
            angle = planar_sign(form, joint) * limits[case % 2, joint]
        elif case > 6:
            joint, angle = 2, phase(l1) - phase(l2) + (pi if case == 8 else 0.0)
        # the chain target = e^(i a2) (l1 + e^(i a3) (l2 + e^(i a4) end)) with one angle, or theta, given
        for side in range(2):
            if joint == 0:
                reached, a2, a3 = fold(l1, l2, target - phasor(theta0) * end, side)
                a4 = theta0 - a2 - a3
            elif joint == 1:
                a2 = angle
                reached, a3, a4 = fold(l2, end, target * phasor(-a2) - l1, side)
            elif joint == 2:
                a3 = angle
                reached, a2, a4 = fold(l1 + phasor(a3) * l2, phasor(a3) * end, target, side)
            else:
                a4 = angle
                reached, a2, a3 = fold(l1, l2 + phasor(a4) * end, target, side)
            gap = a2 + a3 + a4 - theta0
            gap = abs(gap - FULL_TURN * floor(gap / FULL_TURN + 0.5))
            if not reached or gap > best + 1e-9 or not wrap_planar_joints(form, limits, seed, a2, a3, a4, trial):
                continue
            move = max(abs(trial[1] - seed[1]), abs(trial[2] - seed[2]), abs(trial[3] - seed[3]))
            if gap < best - 1e-9 or move < least:
                best, least = min(gap, best), move
                q[1], q[2], q[3] = trial[1], trial[2], trial[3]
        if case == 0 and best < inf:  # theta0 itself
            break
    return best


@compiled
def planar_problem(form, goal, plane, q1, q5):
    """Joints 1 and 5 given: (target, end, turn, along, off) of what is left for joints 2, 3, 4.

    target and end: complex. turn: complex, its phase is the theta that serves the direction best; along +
    |turn| cos(theta - phase) is the cosine of the direction error. off [m]: what joints 1 and 5 miss
    along u. A goal without a direction has turn and along 0.
    """
    w1, r1, u, r2, r4 = form[W1], form[C1], form[U], form[C2], form[END]
    w5, r5, p0, d0 = form[W5], form[C5], form[P0], form[D0]
    c1, s1, c5, s5 = cos(q1), sin(q1), cos(q5), sin(q5)
    # p: the goal, joint 1 taken back; e: the tool point as joint 5 holds it
    px, py, pz = rotate_axis_angle(w1, c1, -s1, goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    px, py, pz = px + r1[0], py + r1[1], pz + r1[2]
    ex, ey, ez = rotate_axis_angle(w5, c5, s5, p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    ex, ey, ez = ex + r5[0], ey + r5[1], ez + r5[2]
    # joints 2, 3, 4 take e to p, but for what these differ along u
    target = in_plane(plane, px - r2[0], py - r2[1], pz - r2[2])
    end = in_plane(plane, ex - r4[0], ey - r4[1], ez - r4[2])
    off = u[0] * (px - ex) + u[1] * (py - ey) + u[2] * (pz - ez)
    if isnan(goal[DIRECTION]):
        return target, end, 0.0j, 0.0, off
    # The cosine between the directions d and v, v turned by theta about u: (v . u) (d . u) along u, and in
    # the plane Re(conj(d) e^(i theta) v) = |d v| cos(theta - phase(d conj(v))).
    dx, dy, dz = rotate_axis_angle(w1, c1, -s1, goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2])
    vx, vy, vz = rotate_axis_angle(w5, c5, s5, d0[0], d0[1], d0[2])
    turn = in_plane(plane, dx, dy, dz) * in_plane(plane, vx, vy, vz).conjugate()
    along = (u[0] * vx + u[1] * vy + u[2] * vz) * (u[0] * dx + u[1] * dy + u[2] * dz)
    return target, end, turn, along, off


@compiled
def first_joint_angles(form, goal, q5, roots):
    """Angles of joint 1 that bring the goal to the plane of joints 2, 3, 4, or nearest to it, with q5 given.

    Writes roots (2,) and returns (count, whether the plane is met); count 0 where the goal is on axis 1.
    """
    w1, r1, u, w5, r5, p0 = form[W1], form[C1], form[U], form[W5], form[C5], form[P0]
    # height along u of the goal, joint 1 taken back: a + b cos q1 + c sin q1. That of the tool point, which
    # joints 2, 3, 4 do not change, must be the same.
    a, b, c = harmonics(w1, u[0], u[1], u[2], goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    ex, ey, ez = rotate_axis_angle(w5, cos(q5), sin(q5), p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    height = u[0] * (ex + r5[0] - r1[0]) + u[1] * (ey + r5[1] - r1[1]) + u[2] * (ez + r5[2] - r1[2])
    length = sqrt(b * b + c * c)
    if length < 1e-9 * form[KIND, SIZE]:
        return 0, False
    ratio = (height - a) / length  # cos(q1 - phase of b + i c)
    if abs(ratio) >= 1.0:
        roots[0] = atan2(c, b) if ratio > 0.0 else atan2(-c, -b)
        return 1, abs(ratio) < 1.0 + 1e-9
    bend = acos(ratio)
    roots[0], roots[1] = atan2(c, b) + bend, atan2(c, b) - bend
    return 2, True


# Where the distance to a target has a minimum, each of the three joints is at a limit or free, and the rigid
# pieces between free joints point along the line through the target. The first free joint turns about a fixed
# tip, and all that follow stay at fixed angles: the tool point is on an arc about that tip.
MAX_ARCS = 64

# Columns of arcs; FIRST 3: no joint is free. From A2 on: the angles of the three joints.
TIP_X, TIP_Y, RADIUS, FIRST, TURN, A2 = range(6)
CASES = 27  # each joint free, at its lower or at its upper limit


@compiled
def tool_in_plane(form, plane, q5):
    """Joint 5 given: (tool point from axis 4 in the plane, complex, and its height along u [m])."""
    u, w5, r5, p0, r4 = form[U], form[W5], form[C5], form[P0], form[END]
    s = phasor(q5)
    x, y, z = rotate_axis_angle(w5, s.real, s.imag, p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    x, y, z = x + r5[0], y + r5[1], z + r5[2]
    return in_plane(plane, x - r4[0], y - r4[1], z - r4[2]), u[0] * x + u[1] * y + u[2] * z


@compiled
def goal_in_plane(form, goal, plane, q1):
    """Joint 1 given: (goal from axis 2 in the plane, complex, and its height along u [m])."""
    u, w1, r1, r2 = form[U], form[W1], form[C1], form[C2]
    s = phasor(-q1)
    x, y, z = rotate_axis_angle(w1, s.real, s.imag, goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    x, y, z = x + r1[0], y + r1[1], z + r1[2]
    return in_plane(plane, x - r2[0], y - r2[1], z - r2[2]), u[0] * x + u[1] * y + u[2] * z


@compiled
def bounding_arcs(form, limits, l1, l2, end, arcs):
    """Write arcs (MAX_ARCS, 8), every one of CASES with the senses of its pieces; returns how many.

    Angles of free joints but the first must be within their limits, and the radius positive: a tool point on
    the far side of the tip is nearest nowhere.
    """
    count = 0
    for case in range(CASES):
        free, usable = 0, True
        for j in range(3):
            at = case // 3**j % 3  # 0 free, 1 lower limit, 2 upper limit
            free += at == 0
            usable = usable and (at == 0 or stops_within_a_turn(limits, j + 1))
        if not usable:
            continue
        for senses in range(1 << free):
            row = arcs[count]
            tip, heading, turned, radius = 0.0j, 0.0, 0.0, 0.0
            piece, first, left, usable = 0.0j, -1, senses, True
            row[FIRST], row[TURN] = 3.0, 0.0
            # Along the chain, j = 3 its end: tip and heading of what comes before the first free joint, then
            # rigid pieces from one free joint to the next. piece: vector of the present one as it was at its
            # first joint; turned: the angles of the joints within it.
            for j in range(4):
                at = case // 3**j % 3 if j < 3 else 0
                if at == 0:
                    if first >= 0:  # the piece that began at the free joint first ends here
                        sense = 1.0 if left & 1 else -1.0  # along the line to the target, or against it
                        left >>= 1
                        radius += sense * abs(piece)
                        # what turns the piece into the line, which has the angle 0 here
                        angle = phase(complex(sense, 0.0)) - phase(piece) - heading
                        row[A2 + first] = angle
                        heading += angle + turned
                        if first == int(row[FIRST]):  # it follows the target, see nearest_arc
                            row[TURN] = angle
                        else:
                            q = planar_sign(form, first + 1) * angle
                            q = wrap_into_limits(q, 0.0, limits[0, first + 1], limits[1, first + 1])
                            usable = usable and not isnan(q)
                    elif j < 3:
                        row[FIRST] = j
                    first, piece, turned = j, 0.0j, 0.0
                if j == 3:
                    break
                angle = planar_sign(form, j + 1) * limits[at - 1, j + 1] if at > 0 else 0.0
                link = l1 if j == 0 else l2 if j == 1 else end
                if at > 0:
                    row[A2 + j] = angle
                if first < 0:
                    heading += angle
                    tip += phasor(heading) * link
                else:
                    turned += angle
                    piece += phasor(turned) * link
            if usable and radius >= 0.0:
                row[TIP_X], row[TIP_Y], row[RADIUS] = tip.real, tip.imag, radius
                count += 1
    return count


@compiled
def nearest_arc(form, limits, arcs, count, target):
    """(distance [m], row) of the arc nearest to target within the limits; arcs (k, 8): see bounding_arcs."""
    least, nearest = 1e300, 0
    for k in range(count):
        # the line from the tip to the target meets the arc at its radius, if the first free joint gets there
        x, y = target.real - arcs[k, TIP_X], target.imag - arcs[k, TIP_Y]
        distance = abs(sqrt(x * x + y * y) - arcs[k, RADIUS])
        if distance >= least:
            continue
        j = int(arcs[k, FIRST]) + 1
        if j < 4:
            q = planar_sign(form, j) * (atan2(y, x) + arcs[k, TURN])
            if isnan(wrap_into_limits(q, 0.0, limits[0, j], limits[1, j])):
                continue
        least, nearest = distance, k
    return least, nearest


@compiled
def angles_on_arc(form, limits, arc, target, seed, q):
    """Write q[1:4] of the point on arc (8,) nearest to target, turned as near to seed as limits allow."""
    toward = atan2(target.imag - arc[TIP_Y], target.real - arc[TIP_X])
    for j in range(3):
        angle = arc[A2 + j] + (toward if j == int(arc[FIRST]) else 0.0)
        low, high = limits[0, j + 1], limits[1, j + 1]
        value = wrap_into_limits(planar_sign(form, j + 1) * angle, seed[j + 1], low, high)
        q[j + 1] = min(max(seed[j + 1], low), high) if isnan(value) else value


STEP = 0.05  # rad of joint 1 where the bound does not allow for more
STEPS = (0.2, 1.6)  # rad of joint 5, least and most
SLACK = 0.02  # share of the size by which half a step of joint 5 may move the tool point
BESIDE = (0.5, 1.0)  # rad of joints 1 and 5: candidates on the same arc that differ by less are one
INSIDE = MAX_ARCS  # in place of the number of an arc: joints 2, 3, 4 reach the target


@compiled
def off_axis(w, x, y, z):
    """Distance of the point (x, y, z) from the line through the origin along the unit axis w (3,)."""
    along = w[0] * x + w[1] * y + w[2] * z
    return sqrt(max(x * x + y * y + z * z - along * along, 0.0))


@compiled
def speeds(form, goal):
    """How fast joints 1 and 5 can change the distance between tool point and goal [m/rad], and 1 the goal.

    Joint 1 turns the arm or, seen from the arm, the goal: the lesser of the two bounds holds.
    """
    w1, r1, u, r2, r4, r5, p0 = form[W1], form[C1], form[U], form[C2], form[END], form[C5], form[P0]
    reach, height = 0.0, 0.0
    for i in range(3):
        height += u[i] * (r4[i] - r2[i])
    for a, b in ((r2, r1), (r5, r4), (p0, r5)):
        reach += sqrt(squared(a[0] - b[0]) + squared(a[1] - b[1]) + squared(a[2] - b[2]))
    for link in (form[LINK1], form[LINK2]):
        reach += sqrt(squared(link[0]) + squared(link[1]) + squared(link[2]))
    turning = off_axis(w1, goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    slow = off_axis(form[W5], p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    return min(reach + abs(height), turning), slow, turning


@compiled
def add_candidate(candidates, count, value, arc, q):
    """Put q (5,) with its distance and the number of its arc into candidates (k, 7), nearest first.

    Returns the new count. Of candidates beside each other on the same arc the nearer one is kept.
    """
    for k in range(count):
        if (
            candidates[k, 1] == arc
            and abs(candidates[k, 2] - q[0]) < BESIDE[0]
            and abs(candidates[k, 6] - q[4]) < BESIDE[1]
        ):
            if candidates[k, 0] <= value:
                return count
            for i in range(k, count - 1):
                copy(candidates[i + 1], candidates[i])
            count -= 1
            break
    if count == candidates.shape[0]:
        if candidates[count - 1, 0] <= value:
            return count
        count -= 1
    k = count
    while k > 0 and candidates[k - 1, 0] > value:
        copy(candidates[k - 1], candidates[k])
        k -= 1
    candidates[k, 0], candidates[k, 1] = value, arc
    for i in range(5):
        candidates[k, 2 + i] = q[i]
    return count + 1


@compiled
def scan_candidates(form, limits, goal, plane, l1, l2, seed, best, candidates):
    """Fill candidates (k, 7) with distance [m], arc and q (5) of what may be nearest to the goal.

    For given joints 1 and 5 the distance is exact (bounding_arcs). It changes with joint 1 no faster than
    speeds says: where it exceeds the least seen, that bound excludes a stretch of joint 1, which is passed
    over; elsewhere the steps are STEP, so that what is left out is within STEP and a step of joint 5 of a
    candidate found on the same arc. best [m]: a distance that is reached. Returns (number of candidates, by
    how much the distance may fall beside one [m]).
    """
    arcs, q, trial = np.empty((MAX_ARCS, 8)), np.empty(5), np.empty(5)
    # the ranges of joints 1 and 5: one turn is enough where they have more
    fast, slow, turning = speeds(form, goal)
    low1, high1, low5, high5 = limits[0, 0], limits[1, 0], limits[0, 4], limits[1, 4]
    if not stops_within_a_turn(limits, 0):
        low1, high1 = -pi, pi
    if not stops_within_a_turn(limits, 4):
        low5, high5 = -pi, pi
    size = form[KIND, SIZE]
    rows, spacing = 1, 0.0
    if form[KIND, FREE_ROLL] != 0.0:
        low5 = min(max(seed[4], limits[0, 4]), limits[1, 4])
    else:
        spacing = min(max(2.0 * SLACK * size / max(slow, 1e-9), STEPS[0]), STEPS[1])
        rows = ceil((high5 - low5) / spacing) + 1
        spacing = (high5 - low5) / max(rows - 1, 1)
    # by how much the distance may fall between two values of joint 5, and of joint 1 too
    slack = 0.5 * spacing * slow + 1e-9
    if form[SIGNS, DEVIATION] > 0.0:
        slack += 1e-3 * size
    margin = slack + 0.5 * STEP * fast
    count, arc = 0, 0
    for row in range(rows):
        q[4] = low5 + spacing * row
        end, tool_height = tool_in_plane(form, plane, q[4])
        number = bounding_arcs(form, limits, l1, l2, end, arcs)
        reach = abs(l1) + abs(l2) + abs(end)
        q[0], safe, inside = low1, 0.0, False
        while True:
            # a quick bound first: the distance along u, and how far the target is beyond the stretched chain
            target, height = goal_in_plane(form, goal, plane, q[0])
            off = abs(height - tool_height)
            beyond = max(abs(target) - reach, 0.0)
            value = sqrt(off * off + beyond * beyond)
            if value - margin < best:
                edge, arc = nearest_arc(form, limits, arcs, number, target)
                # joint 1 has to turn by edge / turning before the target can be across an arc
                if safe <= 0.0:
                    inside = abs(target) <= reach and (
                        solve_triangle_nearest(form, limits, l1, l2, end, target, 0.0, seed, trial, q) < inf
                    )
                value = off if inside else sqrt(off * off + edge * edge)
                safe = edge
            else:
                safe, arc = 0.0, 0
            if value - margin < best:
                if inside:
                    solve_triangle_nearest(form, limits, l1, l2, end, target, 0.0, seed, trial, q)
                    arc = INSIDE
                else:
                    angles_on_arc(form, limits, arcs[arc], target, seed, q)
                count = add_candidate(candidates, count, value, arc, q)
                best = min(best, value)
            if q[0] >= high1:
                break
            # nearer than best only after so much of joint 1
            step = min(max((value - slack - best) / max(fast, 1e-12), STEP), high1 - q[0])
            if not step > 0.0:
                break
            q[0] += step
            safe -= turning * step
    return count, margin


PROVEN = 1e-9  # m: a distance that exceeds a lower bound by less is the least
FEWEST, HITS = 48, 12  # descents; that is enough if so many of them have come as near as the nearest
FEWEST_OF_MANY = 150  # likewise of more than MAX_JOINTS joints, whose places are many
MAX_JOINTS = 5
OTHERS, STRIDE = 128, 997  # descents more where it is not, from known configurations so many columns apart
NUMBER, ROWS, HIT = range(3)  # entries of progress: descents done, rows in use, descents as near as the nearest


@compiled
def least_possible(shells: R2, goal: F1):
    """Lower bound of the distance [m] of tool point and goal at any joint positions; see out_of_reach."""
    bound = 0.0
    for k in range(shells.shape[0]):
        square = 0.0
        for i in range(3):
            square += squared(goal[i] - shells[k, i])
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
def nearest_positions(
    joints: R2, tool: R1, limits: R2, goal: F1, options: F1, bound: F0, known: F2, ranked: I1, given:
    F2, descents: I0, progress: I1, table: F2, errors: F2,
):  # fmt: skip
    """So many descents more of the position alone; returns whether no others are left, or of use.

    They start at the configurations given (k, n), at columns ranked of known (n + 6, K), and at others where
    few of these lead to what is nearest; first with options as in multistart. They are given up where they
    cannot come as near as the nearest so far, and end at a distance that is bound [m]. Fills table (k, n)
    and errors (k, 2) [m, rad] with what is nearest. progress (3,) holds the state between calls.
    """
    n, m = limits.shape[1], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((2 * n + 6 + m, max(n, 13)))
    q = np.empty(n)
    first, rows, hits = int(progress[NUMBER]), int(progress[ROWS]), int(progress[HIT])
    fewest = FEWEST if n <= MAX_JOINTS else FEWEST_OF_MANY
    ranks = given.shape[0] + ranked.shape[0]
    total = ranks + OTHERS
    alone = bound == 0.0 or isnan(goal[DIRECTION])  # nothing to choose among places equally near
    for number in range(first, min(first + descents, total)):
        if number < given.shape[0]:
            copy(given[number], q)
        elif number < ranks:
            copy_column(known, ranked[number - given.shape[0]], q)
        else:
            copy_column(known, (number - ranks) * STRIDE % known.shape[1], q)
        least = errors[0, 0] if rows > 0 else inf
        for k in range(rows):
            least = min(least, errors[k, 0])
        descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
        ceiling = penalty(least + EQUAL, 0.0, 0.0)
        descend_newton(joints, tool, limits, goal, 0.0, 0.0, ceiling, q, frames, work)
        position, direction = goal_errors(joints, frames, goal)
        if rows == table.shape[0] and position <= least + EQUAL:  # the one that is turned most makes room
            most_turned = int(errors[:, 1].argmax())
            if direction < errors[most_turned, 1]:
                rows -= 1
                copy(table[rows], table[most_turned])
                copy(errors[rows], errors[most_turned])
        rows = keep_nearest(table, errors, rows, q, position, direction)
        if position < least - EQUAL:
            hits = 0
        hits += position <= least + EQUAL
        progress[NUMBER], progress[ROWS], progress[HIT] = number + 1, rows, hits
        if alone and errors[0, 0] <= bound + PROVEN:
            return True
        if number + 1 >= fewest and hits >= HITS:
            return True
    return int(progress[NUMBER]) == total


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
    restore_position(joints, tool, limits, goal, least, table[count:], errors[count:], total - count, frames, work)
    return total


@compiled
def closest_out_of_reach(
    joints: R2, tool: R1, limits: R2, goal: F1, ladder: F1, near: F1, table: F2, errors: F2, count: I0
):
    """From count rows of least position error: least direction error, for a goal that is out of reach.

    table (2 count + 1, n), errors (2 count + 1, 2) [m, rad]. Returns the new count.
    """
    n, m = limits.shape[1], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((2 * n + 6 + m, max(n, 13)))
    if not isnan(goal[DIRECTION]):
        count = turn_in_place(joints, tool, limits, goal, ladder, table, errors, count, frames, work)
    least, turn = inf, inf
    for k in range(count):
        least = min(least, errors[k, 0])
    for k in range(count):
        if errors[k, 0] <= least + EQUAL:
            turn = min(turn, errors[k, 1])
    copy(near, table[count])  # what is best already stays as it is
    return count + refine_seed(
        joints, tool, limits, goal, ladder, least + EQUAL, turn + EQUAL, least,
        table[count:], errors[count:], frames, work,
    )  # fmt: skip


SCAN = 48  # values of q5 that are tried, evenly spread
CANDIDATES = 6  # best of them that are refined
SCAN_MARGIN = 0.3  # a scanned direction error that exceeds the best by more cannot become the best
KEPT_CANDIDATES = 24  # of the search over joints 1 and 5: refined at most, and rows that may be as near
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
    return sqrt(max(2.0 - 2.0 * (along + abs(turn)), 0.0) + 4.0 * abs(turn) * half * half) if gap < inf else inf


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
    # the chord at every value, for both roots of joint 1
    for k in range(steps):
        for side in range(2):
            values[side, k] = least_direction_error(
                form, limits, goal, plane, l1, l2, low + spacing * k, side, seed, best + EDGE_MARGIN,
                scratch, table[0],
            )  # fmt: skip
            best = min(best, values[side, k])
    # local minima of the scan, the least first
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
            # next to where the position goes out of reach: bisection towards that edge
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
            least_direction_error(form, limits, goal, plane, l1, l2, q5, side, seed, inf, scratch, table[count])
            best = min(best, chord)
            count += 1
    return count


@compiled
def least_distances(joints, tool, limits, opened, form, goal, plane, l1, l2, seed, found, table, errors, frames, work):
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
    candidates = np.empty((KEPT_CANDIDATES, 7))
    kept, margin = scan_candidates(form, limits, goal, plane, l1, l2, seed, best, candidates)
    for k in range(kept):
        if candidates[k, 0] - margin > best:
            break
        copy(candidates[k, 2:], q)
        position, direction = descend_position(joints, tool, opened, goal, q, frames, work)
        count = keep_nearest(table, errors, count, q, position, direction)
        best = min(best, position)
    return count


@compiled
def closest_parallel(
    joints: R2,
    tool: R1,
    limits: R2,
    opened: R2,
    period: R1,
    form: R2,
    goal: F1,
    narrow: F1,
    seed: F1,
    found: F1,
    table: F2,
    errors: F2,
):
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
    # the position exact, the direction as near as that allows
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
        restore_position(joints, tool, opened, goal, 0.0, table[kept:], errors[kept:], count - kept, frames, work)
    for k in range(count):
        least = min(least, errors[k, 0])
    if least > EQUAL:  # out of reach: the least distance, then the direction there
        rows = least_distances(
            joints, tool, limits, opened, form, goal, plane, l1, l2, near, found,
            table[count : count + KEPT_CANDIDATES], errors[count:], frames, work,
        )  # fmt: skip
        count += turn_in_place(joints, tool, opened, goal, narrow, table[count:], errors[count:], rows, frames, work)
        for k in range(count):
            least = min(least, errors[k, 0])
    if not settled:
        copy(near, table[count])  # what is best already stays as it is: no weights that would move it
        count += refine_seed(
            joints, tool, opened, goal, narrow, inf, inf, least, table[count:], errors[count:], frames, work
        )
    wrap_rows_into_limits(limits, period, near, table, count)
    return count, in_place


WEIGHINGS = 40  # most descents that weigh one error against the other
FIRST_FACTOR = 16.0  # from one weight to the next, until both errors have been the smaller one
LAST_FACTOR = 1.0 + 1e-3
CROOKED = 5.0
CEILING_SLACK = 1e-9  # share by which rounding may miss the ceiling


@compiled
def weigh(joints, tool, limits, goal, distance, angle, usual, q, frames, work):
    """Descend from q (n,), in place, to errors within distance [m] and angle [rad]; whether that is reached.

    A minimum of position^2 + w^2 direction^2 with both errors too large excludes that there is such a
    configuration around, as there the sum would be less. With one error too large, w changes in its favour.
    usual [m/rad]: weights far above that make descents too crooked to be given up before their end, and to
    begin with.
    """
    weight, low, high = min(distance / angle, usual), 0.0, inf
    for _ in range(WEIGHINGS):
        ceiling = (1.0 + CEILING_SLACK) * penalty(distance, angle, weight)
        promised = ceiling if weight < CROOKED * usual else inf
        descend_newton(joints, tool, limits, goal, weight, 1e-8, promised, q, frames, work)
        position, direction = goal_errors(joints, frames, goal)
        if position <= distance and direction <= angle:
            return True
        if penalty(position, direction, weight) > ceiling:
            return False
        if position > distance:
            high = weight
        else:
            low = weight
        # between two weights of which each favours another error: their geometric mean
        if low > 0.0 and high < inf:
            if high < LAST_FACTOR * low:
                return False
            weight = sqrt(low * high)
        elif position > distance:
            weight /= FIRST_FACTOR
        else:
            weight *= FIRST_FACTOR
    return False


@compiled
def meet_tolerances(
    joints: R2, tool: R1, limits: R2, goal: F1, options: F1, angle: F0, given: F2, known: F2, ranked:
    I1, first: I0, last: I0, marks: F2, q: F1,
):  # fmt: skip
    """Descents number first to last - 1 to within both tolerances, from given (k, n), then columns ranked.

    Of known (n + 6, K). options: of the first steps of each; angle [rad]: the tolerance of the direction.
    A start is dropped where these lead to where another one was led (marks (k, n) holds these places).
    Returns whether q (n,) is within the tolerances.
    """
    n, m = limits.shape[1], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    work = np.empty((3 * n + 6 + m, max(n, 13)))
    for start in range(first, last):
        if start < given.shape[0]:
            copy(given[start], q)
        else:
            copy_column(known, ranked[start - given.shape[0]], q)
        descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
        copy(q, marks[start])
        seen = False
        for k in range(start):
            seen = seen or largest_difference(marks[k], q) < SAME_BASIN
        if not seen and weigh(
            joints, tool, limits, goal, options[POSITION_TOLERANCE], angle, options[WEIGHT], q, frames, work
        ):
            return True
    return False


@compiled
def rank_starts(known: F2, ends: I1, goal: F1, weight: F0, values: F1, ranked: I1):
    """Write into ranked (c,) the columns of known (n + 6, K) with tool poses near goal, nearest first.

    One of each cluster of columns; ends (c,) says where these end. weight [m/rad] of the direction; 0: the
    position alone. values (K,) is scratch.
    """
    n = known.shape[0] - 6
    x, y, z = goal[0], goal[1], goal[2]
    px, py, pz = known[n], known[n + 1], known[n + 2]
    dx, dy, dz = known[n + 3], known[n + 4], known[n + 5]
    for k in range(values.shape[0]):
        values[k] = squared(px[k] - x) + squared(py[k] - y) + squared(pz[k] - z)
    if weight > 0.0:
        square = weight * weight
        u, v, w = goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2]
        for k in range(values.shape[0]):
            values[k] += square * (squared(dx[k] - u) + squared(dy[k] - v) + squared(dz[k] - w))
    column = 0
    for cluster in range(ends.shape[0]):
        best, least = column, inf
        for k in range(column, ends[cluster]):
            if values[k] < least:
                best, least = k, values[k]
        column = ends[cluster]
        place = cluster
        while place > 0 and values[ranked[place - 1]] > least:
            ranked[place] = ranked[place - 1]
            place -= 1
        ranked[place] = best
