# SPDX-License-Identifier: Apache-2.0
"""Newton descents with the exact Hessian, within limits."""

from math import cos, inf, isnan, sin, sqrt

from ..arrays.copies import copy
from ..arrays.layout import DIRECTION, LATERAL, PRISMATIC, RATIO, VARIABLE
from ..chain.balls import hold_in_balls, keep_in_balls
from ..chain.forward import angle_between, clip, forward, goal_errors
from ..runtime.compiled import compiled

SURE = 1e-4  # below this damping the gain of a step is about twice that of the minimum of its quadratic model
OPTIMISM = 2.0  # a descent is given up if this many times that gain is not enough


@compiled
def curved_equations(joints, frames, goal, weight, rows, hessian, gradient, scale):
    """Exact Newton equations of (|position error|^2 + weight^2 angle^2) / 2 at frames.

    Writes hessian (n, n), lower half, gradient (n,) downhill and scale (n,), what Gauss and Newton
    would have on the diagonal. rows (m, 13) is scratch: of each joint the motion of the tool point (3)
    and axis (3), the cross products of the position error (3) and of the goal's direction (3, with its
    factor) with the axis, and the change of the cosine between the directions.
    """
    m = joints.shape[0]
    px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
    dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
    ex, ey, ez = goal[0] - px, goal[1] - py, goal[2] - pz
    gx, gy, gz = goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2]
    square = weight * weight
    first, second = 0.0, 0.0  # derivatives of angle^2 / 2 by the cosine
    if isnan(gx):
        gx, gy, gz, square = 0.0, 0.0, 0.0, 0.0
    else:
        angle = angle_between(frames[2 * m + 1], goal[DIRECTION:LATERAL])
        if angle < 1e-3:
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
        for base in range(k + 1):  # nearer the base: it turns what joint k moves
            b = rows[base]
            value = second * a[12] * b[12]
            for c in range(3):
                value += (b[c] - b[c + 6]) * a[c] + b[c + 9] * a[c + 3]
            j = int(joints[base, VARIABLE])
            if i == j and base != k:
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
        cost = 0.5 * (position * position + weight * weight * direction * direction)
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
                new = 0.5 * (position * position + weight * weight * direction * direction)
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
