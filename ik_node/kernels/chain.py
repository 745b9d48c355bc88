# SPDX-License-Identifier: Apache-2.0
"""One chain of joints: forward kinematics, Jacobians, ball joints, random configurations and lists."""

from __future__ import annotations

from math import asin, atan2, ceil, cos, floor, inf, isfinite, isinf, isnan, log, pi, sin, sqrt, tan

import numpy as np

from .arrays import (
    AXIS_X,
    AXIS_Y,
    AXIS_Z,
    CHORD_TOLERANCE,
    DIRECTION,
    DISTINCT,
    LATERAL,
    OFFSET_X,
    OFFSET_Y,
    OFFSET_Z,
    POSITION_TOLERANCE,
    PRISMATIC,
    RATIO,
    ROOT_SLACK,
    SHIFT,
    VARIABLE,
    append,
    copy,
    harmonics,
    largest_difference,
    largest_move,
    squared,
    wrap_into_limits,
)
from .language import F0, F1, F2, I0, R1, R2, compiled

# Ball joints: the cone of their swing and the limits of their twist.
#
# The rows of limits after the first two describe them, BALL_ROWS for each: see arrays.py and model/ball.py.

BALL_ROWS = 3
FIRST_JOINT, FIRST_VARIABLE, ORDER = range(3)  # of the first row
HAND, SWING = range(2)  # of the second: sign of the third angle, largest swing [rad]
TWIST_LAST, TWIST_FIRST, PROPER = 0.0, 1.0, 2.0  # ORDER
INSIDE = 1.0 - 1e-10  # share of the largest swing at which what is outside the cone is put
EDGE = 1e-8  # rad from the edge of a cone or twist from which it is in the way
STIFF = 1e6  # times the curvature: how much a step out of the cone costs
NEAR_POLE = 0.1  # sine of the angle to where the joints lock, below which the ball turns as one


@compiled
def swing_angle(a, b):
    """Angle s [rad] with cos s = cos a cos b, exact near zero."""
    half = sin(0.5 * a) * sin(0.5 * a) + cos(a) * sin(0.5 * b) * sin(0.5 * b)
    return 2.0 * asin(sqrt(min(max(half, 0.0), 1.0)))


@compiled
def swing_columns(limits, row):
    """Return the two variables that swing the ball of this row, which is not of order PROPER."""
    first = int(limits[row, FIRST_VARIABLE])
    return (first, first + 1) if limits[row, ORDER] == TWIST_LAST else (first + 1, first + 2)


@compiled
def excess_of_balls(q, limits):
    """Return by how much [rad] q (n,) is outside the cone and the twist of any ball, 0 where it is inside."""
    excess = 0.0
    for row in range(2, limits.shape[0], BALL_ROWS):
        if limits[row, ORDER] == PROPER:
            first = int(limits[row, FIRST_VARIABLE])
            twist = q[first] + limits[row + 1, HAND] * q[first + 2]
            excess = max(excess, max(twist - limits[row + 2, 1], limits[row + 2, 0] - twist))
        else:
            p, r = swing_columns(limits, row)
            excess = max(excess, swing_angle(q[p], q[r]) - limits[row + 1, SWING])
    return excess


@compiled
def keep_in_balls(q, limits):
    """Bring q (n,), within the limits of its joints, inside the cones and twists of all balls, in place.

    Out of a cone straight towards its rest axis in joint space, or towards the place nearest to it that the
    joints have: what is on the way is inside, as the allowed positions are convex.
    """
    for row in range(2, limits.shape[0], BALL_ROWS):
        if limits[row, ORDER] == PROPER:
            keep_twist(q, limits, row)
            continue
        p, r = swing_columns(limits, row)
        max_swing = limits[row + 1, SWING]
        if not swing_angle(q[p], q[r]) > max_swing:
            continue
        a = min(max(0.0, limits[0, p]), limits[1, p])
        b = min(max(0.0, limits[0, r]), limits[1, r])
        way_a, way_b = q[p] - a, q[r] - b
        aim = log(cos(INSIDE * max_swing))
        # Newton's steps from outside on a concave function come down to its zero from above.
        share = 1.0
        for _ in range(30):
            x, y = a + share * way_a, b + share * way_b
            slope = tan(x) * way_a + tan(y) * way_b
            if not slope > 0.0:
                break
            step = (aim - log(cos(x)) - log(cos(y))) / slope
            share -= step
            if not step > 1e-13:
                break
        share, less = min(max(share, 0.0), 1.0), 1e-12
        while swing_angle(a + share * way_a, b + share * way_b) > max_swing and less < 1.0:
            share, less = share * (1.0 - less), 10.0 * less
        q[p], q[r] = a + share * way_a, b + share * way_b


@compiled
def keep_twist(q, limits, row):
    """Bring the twist q1 + hand q3 of a ball of order PROPER inside its limits, by as little as possible."""
    first, hand = int(limits[row, FIRST_VARIABLE]), limits[row + 1, HAND]
    last = first + 2
    twist = q[first] + hand * q[last]
    target = min(max(twist, limits[row + 2, 0]), limits[row + 2, 1])
    if target == twist:
        return
    target += 1e-12 if target > twist else -1e-12  # rounding stays inside
    for half in (0.5, 1.0, 1.0):  # what one joint cannot do for its limits is left to the other
        less = q[first] + hand * q[last] - target
        q[first] = min(max(q[first] - half * less, limits[0, first]), limits[1, first])
        less = q[first] + hand * q[last] - target
        q[last] = min(max(q[last] - hand * less, limits[0, last]), limits[1, last])


@compiled
def fold_into_balls(q, limits):
    """Bring random q (n,), within the limits of its joints, inside the balls, in place.

    What is beyond a cone is folded back at its edge, as perturb folds it back at limits, so that its
    places are not all on the edge.
    """
    for row in range(2, limits.shape[0], BALL_ROWS):
        if limits[row, ORDER] != PROPER:
            p, r = swing_columns(limits, row)
            swing = swing_angle(q[p], q[r])
            if swing > limits[row + 1, SWING]:
                share = max(2.0 * limits[row + 1, SWING] / swing - 1.0, 0.0)
                q[p] = min(max(share * q[p], limits[0, p]), limits[1, p])
                q[r] = min(max(share * q[r], limits[0, r]), limits[1, r])
    keep_in_balls(q, limits)


@compiled
def nearest_edge(q, limits, row):
    """Return (variables p and r, unit normal (x, y) out of the ball's limits in their plane, distance there).

    The distance [rad] is to first order; without a limit, or at rest in a cone, it is infinite.
    """
    if limits[row, ORDER] == PROPER:
        p, hand = int(limits[row, FIRST_VARIABLE]), limits[row + 1, HAND]
        twist = q[p] + hand * q[p + 2]
        below, above = twist - limits[row + 2, 0], limits[row + 2, 1] - twist
        x = sqrt(0.5) if above < below else -sqrt(0.5)
        return p, p + 2, x, hand * x, sqrt(0.5) * min(above, below)
    p, r = swing_columns(limits, row)
    x, y = sin(q[p]) * cos(q[r]), cos(q[p]) * sin(q[r])
    size = sqrt(x * x + y * y)
    if not size > 1e-9:
        return p, r, 1.0, 0.0, inf
    swing = swing_angle(q[p], q[r])
    return p, r, x / size, y / size, (limits[row + 1, SWING] - swing) * sin(swing) / size


@compiled
def hold_in_balls(q, limits, gradient, hessian, opened):
    """Let the next step slide along the edge of cones and twists that gradient (n,) would leave at q (n,).

    For balls what frozen joints are for limits: takes what leads out from gradient and stiffens hessian
    (n, n), its lower half, that way. opened: leave out balls that open_balls has opened.
    """
    for row in range(2, limits.shape[0], BALL_ROWS):
        if opened and near_pole(q, limits, row):
            continue
        p, r, x, y, distance = nearest_edge(q, limits, row)
        outward = x * gradient[p] + y * gradient[r]
        if distance <= EDGE and outward > 0.0:
            gradient[p] -= outward * x
            gradient[r] -= outward * y
            stiffen(hessian, p, r, x, y)
            if limits[row, ORDER] != PROPER:  # the edge is curved: Hessian of the multiplier's term
                a, b = cos(q[p]), cos(q[r])
                outward /= sqrt((1.0 / (a * a) - 1.0) + (1.0 / (b * b) - 1.0))
                hessian[p, p] += outward / (a * a)
                hessian[r, r] += outward / (b * b)


@compiled
def stop_at_edges(q, limits, step, gradient, hessian):
    """Change the equations of step (n,) so that it ends at the edges of cones and twists that it crosses.

    gradient (n,), hessian (n, n), its lower half: of the equations at q (n,). Returns whether it crosses any.
    """
    crosses = False
    for row in range(2, limits.shape[0], BALL_ROWS):
        p, r, x, y, distance = nearest_edge(q, limits, row)
        if x * step[p] + y * step[r] > distance:
            stiff = stiffen(hessian, p, r, x, y)
            gradient[p] += stiff * distance * x
            gradient[r] += stiff * distance * y
            crosses = True
    return crosses


@compiled
def stiffen(hessian, p, r, x, y):
    """Make hessian (n, n), its lower half, stiff for variables p and r along (x, y); return how much."""
    stiff = STIFF * max(hessian[p, p], hessian[r, r])
    hessian[p, p] += stiff * x * x
    hessian[r, r] += stiff * y * y
    hessian[r, p] += stiff * x * y
    return stiff


@compiled
def near_pole(q, limits, row):
    """Whether the joints of a ball nearly lock at q (n,)."""
    middle = q[int(limits[row, FIRST_VARIABLE]) + 1]
    return abs(sin(middle) if limits[row, ORDER] == PROPER else cos(middle)) < NEAR_POLE


@compiled
def forward(joints: R2, tool: R1, q: F1, frames: F2):
    """Forward kinematics: write frames at q (n,). Product of exponentials, base to tip."""
    m = joints.shape[0]
    r00, r01, r02 = 1.0, 0.0, 0.0
    r10, r11, r12 = 0.0, 1.0, 0.0
    r20, r21, r22 = 0.0, 0.0, 1.0
    px, py, pz = 0.0, 0.0, 0.0
    for i in range(m):
        x, y, z = joints[i, OFFSET_X], joints[i, OFFSET_Y], joints[i, OFFSET_Z]
        px += r00 * x + r01 * y + r02 * z
        py += r10 * x + r11 * y + r12 * z
        pz += r20 * x + r21 * y + r22 * z
        x, y, z = joints[i, AXIS_X], joints[i, AXIS_Y], joints[i, AXIS_Z]
        ax = r00 * x + r01 * y + r02 * z
        ay = r10 * x + r11 * y + r12 * z
        az = r20 * x + r21 * y + r22 * z
        value = joints[i, RATIO] * q[int(joints[i, VARIABLE])] + joints[i, SHIFT]
        if joints[i, PRISMATIC] != 0.0:
            px += ax * value
            py += ay * value
            pz += az * value
        else:
            # R <- Rot(a, value) R column by column would cost more: turn on the right instead.
            s = sin(value)
            c = cos(value)
            v = 1.0 - c
            xs, ys, zs = x * s, y * s, z * s
            xv, yv, zv = x * v, y * v, z * v
            m00, m01, m02 = c + x * xv, x * yv - zs, x * zv + ys
            m10, m11, m12 = x * yv + zs, c + y * yv, y * zv - xs
            m20, m21, m22 = x * zv - ys, y * zv + xs, c + z * zv
            t0 = r00 * m00 + r01 * m10 + r02 * m20
            t1 = r00 * m01 + r01 * m11 + r02 * m21
            r02 = r00 * m02 + r01 * m12 + r02 * m22
            r00, r01 = t0, t1
            t0 = r10 * m00 + r11 * m10 + r12 * m20
            t1 = r10 * m01 + r11 * m11 + r12 * m21
            r12 = r10 * m02 + r11 * m12 + r12 * m22
            r10, r11 = t0, t1
            t0 = r20 * m00 + r21 * m10 + r22 * m20
            t1 = r20 * m01 + r21 * m11 + r22 * m21
            r22 = r20 * m02 + r21 * m12 + r22 * m22
            r20, r21 = t0, t1
        frames[i, 0], frames[i, 1], frames[i, 2] = ax, ay, az
        frames[m + i, 0], frames[m + i, 1], frames[m + i, 2] = px, py, pz
    frames[2 * m, 0] = px + r00 * tool[0] + r01 * tool[1] + r02 * tool[2]
    frames[2 * m, 1] = py + r10 * tool[0] + r11 * tool[1] + r12 * tool[2]
    frames[2 * m, 2] = pz + r20 * tool[0] + r21 * tool[1] + r22 * tool[2]
    for k in range(2):
        x, y, z = tool[3 * k + 3], tool[3 * k + 4], tool[3 * k + 5]
        frames[2 * m + 1 + k, 0] = r00 * x + r01 * y + r02 * z
        frames[2 * m + 1 + k, 1] = r10 * x + r11 * y + r12 * z
        frames[2 * m + 1 + k, 2] = r20 * x + r21 * y + r22 * z


@compiled
def jacobian(joints: R2, frames: F2, out: F2):
    """Write d(tool point, tool axis)/dq into out (n, 6), a row per variable, from frames at q."""
    m = joints.shape[0]
    out[:, :] = 0.0
    px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
    dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
    for i in range(m):
        j = int(joints[i, VARIABLE])
        ratio = joints[i, RATIO]
        ax, ay, az = ratio * frames[i, 0], ratio * frames[i, 1], ratio * frames[i, 2]
        if joints[i, PRISMATIC] != 0.0:
            out[j, 0] += ax
            out[j, 1] += ay
            out[j, 2] += az
        else:
            x, y, z = (
                px - frames[m + i, 0],
                py - frames[m + i, 1],
                pz - frames[m + i, 2],
            )
            out[j, 0] += ay * z - az * y
            out[j, 1] += az * x - ax * z
            out[j, 2] += ax * y - ay * x
            out[j, 3] += ay * dz - az * dy
            out[j, 4] += az * dx - ax * dz
            out[j, 5] += ax * dy - ay * dx


@compiled
def angle_between(a, b):
    """Angle [rad] between two unit vectors (3,), exact near 0 and near pi (Kahan)."""
    sx, sy, sz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    tx, ty, tz = a[0] + b[0], a[1] + b[1], a[2] + b[2]
    return 2.0 * atan2(sqrt(sx * sx + sy * sy + sz * sz), sqrt(tx * tx + ty * ty + tz * tz))


@compiled
def goal_errors(joints: R2, frames: F2, goal: F1):
    """Return (position error [m], direction error [rad]; 0 if no direction is asked for)."""
    m = joints.shape[0]
    x, y, z = (
        frames[2 * m, 0] - goal[0],
        frames[2 * m, 1] - goal[1],
        frames[2 * m, 2] - goal[2],
    )
    position_error = sqrt(x * x + y * y + z * z)
    if isnan(goal[DIRECTION]):
        return position_error, 0.0
    return position_error, angle_between(frames[2 * m + 1], goal[DIRECTION:LATERAL])


@compiled
def error_vectors(joints, frames, goal):
    """Return the vectors from tool point to goal and from tool axis to goal.direction, as six numbers.

    The latter is zero if no direction is given.
    """
    m = joints.shape[0]
    x, y, z = goal[0] - frames[2 * m, 0], goal[1] - frames[2 * m, 1], goal[2] - frames[2 * m, 2]
    if isnan(goal[DIRECTION]):
        return x, y, z, 0.0, 0.0, 0.0
    u, v = goal[DIRECTION] - frames[2 * m + 1, 0], goal[DIRECTION + 1] - frames[2 * m + 1, 1]
    return x, y, z, u, v, goal[DIRECTION + 2] - frames[2 * m + 1, 2]


@compiled
def squared_errors(joints, frames, goal):
    """Return (squared position error [m^2], squared chord between the directions)."""
    x, y, z, u, v, w = error_vectors(joints, frames, goal)
    return x * x + y * y + z * z, u * u + v * v + w * w


@compiled
def met(position, direction, options):
    """Whether squared errors, as squared_errors returns them, are within both tolerances."""
    return (
        position <= options[POSITION_TOLERANCE] * options[POSITION_TOLERANCE]
        and direction <= options[CHORD_TOLERANCE] * options[CHORD_TOLERANCE]
    )


@compiled
def clip(q, limits):
    """Bring q (n,) inside the limits, those of balls too, in place."""
    for i in range(q.shape[0]):
        if q[i] < limits[0, i]:
            q[i] = limits[0, i]
        elif q[i] > limits[1, i]:
            q[i] = limits[1, i]
    if limits.shape[0] > 2:
        keep_in_balls(q, limits)


MIN_DAMPING = 1e-9  # share of the largest diagonal entry, so that no matrix is singular


@compiled
def normal_equations(joints, frames, goal, weight, jac, hessian, gradient):
    """Gauss-Newton normal equations of |position error|^2 + weight^2 |direction chord|^2.

    Writes hessian (n, n), lower half, and gradient (n,), the right-hand side.
    weight [m]: metres of position error that count as much as one radian.
    """
    n, w = gradient.shape[0], 0.0 if isnan(goal[DIRECTION]) else weight
    jacobian(joints, frames, jac)
    ex, ey, ez, fx, fy, fz = error_vectors(joints, frames, goal)
    fx, fy, fz = w * fx, w * fy, w * fz
    for i in range(n):
        a, b, c = jac[i, 0], jac[i, 1], jac[i, 2]
        d, e, f = w * jac[i, 3], w * jac[i, 4], w * jac[i, 5]
        jac[i, 3], jac[i, 4], jac[i, 5] = d, e, f
        gradient[i] = a * ex + b * ey + c * ez + d * fx + e * fy + f * fz
        for j in range(i + 1):
            hessian[i, j] = (
                a * jac[j, 0] + b * jac[j, 1] + c * jac[j, 2] + d * jac[j, 3] + e * jac[j, 4] + f * jac[j, 5]
            )


@compiled
def damped_step(hessian, gradient, free, damping, factor, step):
    """Solve (H + damping I) step = gradient by L D L^T, frozen joints left out.

    factor (n, n) holds L D below the diagonal, L^T above it and the inverse of D on it, where a 0 takes
    a frozen joint's row and column out of everything.
    """
    n = gradient.shape[0]
    for i in range(n):
        total, pivot = gradient[i], hessian[i, i] + damping
        for j in range(i):
            s = hessian[i, j]
            for k in range(j):
                s -= factor[i, k] * factor[k, j]
            factor[i, j] = s
            factor[j, i] = s * factor[j, j]
            total -= factor[j, i] * step[j]
            pivot -= s * factor[j, i]
        factor[i, i] = free[i] / pivot if pivot > 1e-300 else 1e300 * free[i]
        step[i] = total
    for i in range(n - 1, -1, -1):
        s = step[i] * factor[i, i]
        for k in range(i + 1, n):
            s -= factor[i, k] * step[k]
        step[i] = free[i] * s


@compiled
def next_random(state):
    """Advance state (1,) uint64 and return a float in [0, 1). SplitMix64 (Steele, Lea, Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def perturb(best, limits, temperature, state, q):
    """Write q (n,): best plus a uniform random offset of up to temperature times each joint's range.

    Offsets that leave the limits or a ball are folded back, so temperature 1 covers the whole range.
    """
    for i in range(best.shape[0]):
        low, high = limits[0, i], limits[1, i]
        offset = 2.0 * next_random(state) - 1.0
        if not isfinite(high - low):
            q[i] = best[i] + offset * temperature * pi
            continue
        value = best[i] + offset * temperature * (high - low)
        if value < low:
            value = min(2.0 * low - value, high)
        elif value > high:
            value = max(2.0 * high - value, low)
        q[i] = value
    if limits.shape[0] > 2:
        fold_into_balls(q, limits)


@compiled
def tabulate_poses(joints: R2, tool: R1, samples: F2, weight: F0, table: F2):
    """Fill table (n + 6, K) from samples (K, n): configurations, tool points, weighted tool axes."""
    n = samples.shape[1]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    m = joints.shape[0]
    for k in range(samples.shape[0]):
        forward(joints, tool, samples[k], frames)
        for i in range(n):
            table[i, k] = samples[k, i]
        for i in range(3):
            table[n + i, k] = frames[2 * m, i]
            table[n + 3 + i, k] = weight * frames[2 * m + 1, i]


@compiled
def squared_distances(table, goal, weight, distances):
    """Write the squared distances (K,) from goal to the tool poses of table."""
    n = table.shape[0] - 6
    x, y, z = goal[0], goal[1], goal[2]
    px, py, pz = table[n], table[n + 1], table[n + 2]
    dx, dy, dz = table[n + 3], table[n + 4], table[n + 5]
    if isnan(goal[DIRECTION]):
        for k in range(distances.shape[0]):
            distances[k] = squared(px[k] - x) + squared(py[k] - y) + squared(pz[k] - z)
        return
    u, v, w = weight * goal[DIRECTION], weight * goal[DIRECTION + 1], weight * goal[DIRECTION + 2]
    for k in range(distances.shape[0]):
        position = squared(px[k] - x) + squared(py[k] - y) + squared(pz[k] - z)
        distances[k] = position + squared(dx[k] - u) + squared(dy[k] - v) + squared(dz[k] - w)


@compiled
def distances_but_nearest(table, goal, weight, taken, distances):
    """Write the squared distances (K,), infinite for as many of the nearest poses as are taken."""
    squared_distances(table, goal, weight, distances)
    for _ in range(taken):
        distances[distances.argmin()] = inf


@compiled
def serve_lateral(joints: R2, tool: R1, limits: R2, goal: F1, roll: I0, seed: F1, q: F1):
    """Turn joint roll of q (n,), in place, so that the tool's lateral axis comes nearest to the goal's.

    roll: the last joint, whose axis is the tool axis, so that nothing else moves; -1 where there is none.
    Of whole turns the nearest to seed (n,) is taken; a limit in the way leaves the better end. Returns the
    angle [rad] that remains between the lateral axes.
    """
    m = joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    forward(joints, tool, q, frames)
    if roll >= 0:
        lateral = frames[2 * m + 2]
        _, b, c = harmonics(
            frames[m - 1],
            lateral[0],
            lateral[1],
            lateral[2],
            goal[LATERAL],
            goal[LATERAL + 1],
            goal[LATERAL + 2],
        )
        if b * b + c * c > 1e-18:
            low, high = limits[0, roll], limits[1, roll]
            target = q[roll] + atan2(c, b)
            turned_there = wrap_into_limits(target, seed[roll], low, high)
            if isnan(turned_there):
                turned_there = low if cos(low - target) > cos(high - target) else high
            q[roll] = turned_there
            forward(joints, tool, q, frames)
    return angle_between(frames[2 * m + 2], goal[LATERAL:])


SAME_MOVE = 1e9  # parts of a rad or m to which moves are compared
EXACT_WHOLE = 2.0**52  # doubles from here on are whole numbers


@compiled
def list_solutions(
    joints: R2,
    tool: R1,
    limits: R2,
    period: R1,
    goal: F1,
    options: F1,
    start: F1,
    seed: F1,
    found: F2,
    count: I0,
):
    """Return all whole-turn variants (k, n) of the solutions found (count, n), and their errors (k, 2).

    Errors in m and rad. Best first: least largest single joint move from seed (n,), then most distance to the
    limits. A joint with finite limits has all variants within them, any other the one nearest to start (n,);
    period (n,) is 0 also for joints that stay as they are. Variants outside the cones of balls are left out,
    and those that no longer meet the goal because a limit clips them.
    """
    n = seed.shape[0]
    first, numbers = np.empty((count, n), np.int64), np.empty((count, n), np.int64)
    variants = np.empty(count, np.int64)
    total = 0
    for k in range(count):
        variants[k] = 1
        for i in range(n):
            first[k, i], numbers[k, i] = turns_within(found[k, i], start[i], limits[0, i], limits[1, i], period[i])
            variants[k] *= numbers[k, i]
        total += variants[k]
    every, keys = np.empty((total, n)), np.empty((total, 2))
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
            other, other_number = turns_within(row[i], 0.0, low, high, period[i])
            if first + shift < other or first + shift + number > other + other_number:
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
                    take_right = keys[b, 0] < keys[a, 0] or (keys[b, 0] == keys[a, 0] and keys[b, 1] < keys[a, 1])
                if take_right:
                    spare[k] = order[right]
                    right += 1
                else:
                    spare[k] = order[left]
                    left += 1
        for k in range(count):
            order[k] = spare[k]
        width *= 2
