# SPDX-License-Identifier: Apache-2.0
"""Solutions by formula, for wrists and for three parallel axes."""

from __future__ import annotations

from math import atan2, cos, inf, isnan, nan, sin, sqrt

import numpy as np

from .arrays import (
    C1,
    C2,
    C5,
    CHORD_TOLERANCE,
    D0,
    DEVIATION,
    DIRECTION,
    END,
    FAMILY,
    FREE_ROLL,
    ITERATIONS,
    KIND,
    LATERAL,
    LINK1,
    LINK2,
    P0,
    POSITION_TOLERANCE,
    ROOT_SLACK,
    SIGNS,
    SIZE,
    W1,
    W4,
    W5,
    WEIGHT,
    U,
    copy,
    harmonics,
    largest_difference,
    read_finite,
    rotate_axis_angle,
    squared,
    wrap_into_limits,
)
from .chain import add_solution, clip, forward, goal_errors, jacobian, met, squared_errors
from .language import F1, F2, R1, R2, V1, compiled
from .methods.lm import LAST_DAMPING, descend_lm, polish_candidate
from .polynomials import quartic_roots


@compiled
def set_pair(limits, seed, c1, s1, q5, c5, s5, row):
    """Write values of joints 1 and 5 into row (7,) of pairs.

    It is (larger move from seed, q1, its cosine and sine, q5, its cosine and sine); the move is infinite if a
    limit is in the way.
    """
    q1 = wrap_into_limits(atan2(s1, c1), seed[0], limits[0, 0], limits[1, 0])
    q5 = wrap_into_limits(q5, seed[4], limits[0, 4], limits[1, 4])
    row[0] = inf
    if not isnan(q1 + q5):
        row[0] = max(abs(q1 - seed[0]), abs(q5 - seed[4]))
    row[1], row[2], row[3], row[4], row[5], row[6] = q1, c1, s1, q5, c5, s5


@compiled
def nearest_pair(pairs, count):
    """Return the row of pairs with the least move, the first of those that are EQUAL."""
    pick, least = 0, inf
    for k in range(MOST_PAIRS):
        if k < count and pairs[k, 0] < least - EQUAL:
            pick, least = k, pairs[k, 0]
    return pick


@compiled
def two_links(u, l1, l2, mx, my, mz, side):
    """Planar 2R: (reached, q2, q3) with Rot(u, q2) (l1 + Rot(u, q3) l2) = m up to its part along u.

    side 0 or 1: elbow. Where both elbows are the same, side 1 is not reached.
    """
    along = u[0] * mx + u[1] * my + u[2] * mz
    mx, my, mz = mx - along * u[0], my - along * u[1], mz - along * u[2]
    a = l1[0] * l2[0] + l1[1] * l2[1] + l1[2] * l2[2]
    b = (
        l1[0] * (u[1] * l2[2] - u[2] * l2[1])
        + l1[1] * (u[2] * l2[0] - u[0] * l2[2])
        + l1[2] * (u[0] * l2[1] - u[1] * l2[0])
    )
    first = l1[0] * l1[0] + l1[1] * l1[1] + l1[2] * l1[2]
    second = l2[0] * l2[0] + l2[1] * l2[1] + l2[2] * l2[2]
    largest = sqrt(first * second)
    ratio = 0.5 * (mx * mx + my * my + mz * mz - first - second) / largest
    if abs(ratio) > 1.0 + ROOT_SLACK:
        return False, 0.0, 0.0
    if abs(ratio) >= 1.0:
        if side == 1:
            return False, 0.0, 0.0
        ratio = 1.0 if ratio > 0.0 else -1.0
    bend = sqrt(1.0 - ratio * ratio)
    if side == 1:
        bend = -bend
    # a cos q3 + b sin q3 = most * ratio
    c3, s3 = (a * ratio - b * bend) / largest, (b * ratio + a * bend) / largest
    x, y, z = rotate_axis_angle(u, c3, s3, l2[0], l2[1], l2[2])
    x, y, z = x + l1[0], y + l1[1], z + l1[2]
    sine = u[0] * (y * mz - z * my) + u[1] * (z * mx - x * mz) + u[2] * (x * my - y * mx)
    return True, atan2(sine, x * mx + y * my + z * mz), atan2(s3, c3)


@compiled
def perpendicular_plane(v1, v2, n1, n2):
    """Write an orthonormal basis n1, n2 (4,) of what is perpendicular to v1 and v2 (4,), orthonormal in R^4.

    The dual of the bivector of v1 and v2 turns that plane by a right angle and takes the rest to zero.
    """
    a0, a1, a2, a3 = v1[0], v1[1], v1[2], v1[3]
    b0, b1, b2, b3 = v2[0], v2[1], v2[2], v2[3]
    p01, p02, p03 = a0 * b1 - a1 * b0, a0 * b2 - a2 * b0, a0 * b3 - a3 * b0
    p12, p13, p23 = a1 * b2 - a2 * b1, a1 * b3 - a3 * b1, a2 * b3 - a3 * b2
    pick, largest = 0, -1.0
    for k in range(4):
        left = 1.0 - v1[k] * v1[k] - v2[k] * v2[k]  # squared length of row k of the dual
        if left > largest + CLEAR:
            pick, largest = k, left
    if pick == 0:
        x0, x1, x2, x3 = 0.0, p23, -p13, p12
    elif pick == 1:
        x0, x1, x2, x3 = -p23, 0.0, p03, -p02
    elif pick == 2:
        x0, x1, x2, x3 = p13, -p03, 0.0, p01
    else:
        x0, x1, x2, x3 = -p12, p02, -p01, 0.0
    size = 1.0 / sqrt(x0 * x0 + x1 * x1 + x2 * x2 + x3 * x3)
    x0, x1, x2, x3 = x0 * size, x1 * size, x2 * size, x3 * size
    n1[0], n1[1], n1[2], n1[3] = x0, x1, x2, x3
    n2[0] = p23 * x1 - p13 * x2 + p12 * x3
    n2[1] = p03 * x2 - p23 * x0 - p02 * x3
    n2[2] = p13 * x0 - p03 * x1 + p01 * x3
    n2[3] = p02 * x1 - p12 * x0 - p01 * x2


SQRT_HALF = sqrt(0.5)
# sine of the angle between tool axis and axis 2 below which joints 2, 3, 4 hardly turn the tool
HARDLY_TURNING = 1e-6
CLEAR = 1e-9  # by how much what is chosen has to be more: rounding chooses nothing, nor the order of roots


@compiled
def planar_candidates(form, goal, pair, spare, out):
    """Write into out a configuration with joints 1 and 5 given by pair (7,) for each elbow; NaN first: none.

    Joint 1 turned back, joints 2, 3, 4 work in one plane: theta = q2 + q3 + q4 turns the tool axis
    onto the goal's, or as near as it can; what is left is the triangle of the two planar links.
    spare (5,): an angle that is free is taken from here. Returns (whether theta is determined, by how much the tool
    axis leaves the goal's direction along u, which no theta changes).
    """
    _, q1, c1, s1, q5, c5, s5 = pair
    w1, r1, u, r2 = form[W1], form[C1], form[U], form[C2]
    r4, w5, r5, p0 = form[END], form[W5], form[C5], form[P0]
    d0, sign = form[D0], form[SIGNS]
    dx, dy, dz = rotate_axis_angle(w1, c1, -s1, goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2])
    px, py, pz = rotate_axis_angle(w1, c1, -s1, goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    vx, vy, vz = rotate_axis_angle(w5, c5, s5, d0[0], d0[1], d0[2])
    ex, ey, ez = rotate_axis_angle(w5, c5, s5, p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    uv = u[0] * vx + u[1] * vy + u[2] * vz
    ud = u[0] * dx + u[1] * dy + u[2] * dz
    sine = u[0] * (vy * dz - vz * dy) + u[1] * (vz * dx - vx * dz) + u[2] * (vx * dy - vy * dx)
    cosine = vx * dx + vy * dy + vz * dz - uv * ud
    length = sqrt(sine * sine + cosine * cosine)
    if length > 1e-12:
        theta = atan2(sine, cosine)
        ct, st = cosine / length, sine / length
    else:  # the tool axis is parallel to u: theta is free
        theta = spare[1] + sign[1] * spare[2] + sign[2] * spare[3]
        ct, st = cos(theta), sin(theta)
    ex, ey, ez = rotate_axis_angle(u, ct, st, ex + r5[0] - r4[0], ey + r5[1] - r4[1], ez + r5[2] - r4[2])
    mx, my, mz = (
        px + r1[0] - ex - r2[0],
        py + r1[1] - ey - r2[1],
        pz + r1[2] - ez - r2[2],
    )
    for side in range(2):
        reached, q2, q3 = two_links(u, form[LINK1], form[LINK2], mx, my, mz, side)
        row = out[side]
        row[1], row[2], row[3], row[4] = q2, sign[1] * q3, sign[2] * (theta - q2 - q3), q5
        row[0] = q1 if reached else nan
    return length > HARDLY_TURNING, abs(uv - ud)


@compiled
def parallel_pairs(form, limits, goal, seed, work, pairs):
    """Joints 1 and 5 of all configurations of an arm with axes 2, 3, 4 parallel that may meet goal.

    Rotations about u change neither the u component of a direction nor that of a point, so joints
    1 and 5 alone meet two equations M x = r in x = (cos q1, sin q1, cos q5, sin q5). Their solutions
    x0 + N z that lie on both unit circles are the zeros of a trigonometric polynomial of degree 2.
    Where q5 is free (the tool axis is axis 5) it is seed's, and the position alone gives q1.
    work (7, 7) is scratch. Returns the number of rows of pairs as in set_pair, -1 where the goal is
    singular.
    """
    w1, r1, u, w5 = form[W1], form[C1], form[U], form[W5]
    r5, p0, d0 = form[C5], form[P0], form[D0]
    scale = 1.0 / form[KIND, SIZE]
    # u components of the goal, joint 1 taken back, and of the tool as joint 5 holds it, of direction and of
    # point as a share of SIZE: ad + bd c1 + cd s1 = a5 + b5 c5 + e5 s5, and likewise ap .. and g5 ..
    x, y, z = goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2]
    ad, bd, cd = harmonics(w1, u[0], u[1], u[2], goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2])
    ap, bp, cp = harmonics(w1, u[0], u[1], u[2], x, y, z)
    a5, b5, e5 = harmonics(w5, d0[0], d0[1], d0[2], u[0], u[1], u[2])
    g5, h5, k5 = harmonics(w5, p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2], u[0], u[1], u[2])
    right_d = a5 - ad
    right_p = u[0] * (r5[0] - r1[0]) + u[1] * (r5[1] - r1[1]) + u[2] * (r5[2] - r1[2]) + g5 - ap
    right_p, bp, cp, h5, k5 = (
        right_p * scale,
        bp * scale,
        cp * scale,
        h5 * scale,
        k5 * scale,
    )

    if form[KIND, FREE_ROLL] != 0.0:  # joint 5 is on neither side of the point's: bp c1 + cp s1 = right_p
        length = sqrt(bp * bp + cp * cp)
        if length < 1e-9:  # the goal lies on axis 1: only the direction determines q1
            bp, cp, right_p = bd, cd, right_d
            length = sqrt(bp * bp + cp * cp)
            if length < 1e-9:
                return -1
        ratio = right_p / length
        if abs(ratio) > 1.0 + ROOT_SLACK:
            return 0
        ratio = min(max(ratio, -1.0), 1.0)
        other = sqrt(1.0 - ratio * ratio)
        q5 = min(max(seed[4], limits[0, 4]), limits[1, 4])
        c5, s5 = cos(q5), sin(q5)
        for side in range(2):
            t = other if side == 0 else -other
            c1, s1 = (bp * ratio - cp * t) / length, (cp * ratio + bp * t) / length
            set_pair(limits, seed, c1, s1, q5, c5, s5, pairs[side])
        return 1 if other == 0.0 else 2

    # Orthonormal rows v1, v2 of M, the larger first; x0 in their span; then N perpendicular to both.
    v1, v2, n1, n2 = work[0], work[1], work[2], work[3]
    first, second = right_d, right_p
    v1[0], v1[1], v1[2], v1[3] = bd, cd, -b5, -e5
    v2[0], v2[1], v2[2], v2[3] = bp, cp, -h5, -k5
    if bp * bp + cp * cp + h5 * h5 + k5 * k5 > (bd * bd + cd * cd + b5 * b5 + e5 * e5) * (1.0 + CLEAR):
        first, second = right_p, right_d
        v2[0], v2[1], v2[2], v2[3] = bd, cd, -b5, -e5
        v1[0], v1[1], v1[2], v1[3] = bp, cp, -h5, -k5
    size = v1[0] * v1[0] + v1[1] * v1[1] + v1[2] * v1[2] + v1[3] * v1[3]
    if size < 1e-18:
        return -1
    size = 1.0 / sqrt(size)
    first *= size
    for k in range(4):
        v1[k] *= size
    for _ in range(2):
        dot = v1[0] * v2[0] + v1[1] * v2[1] + v1[2] * v2[2] + v1[3] * v2[3]
        second -= dot * first
        for k in range(4):
            v2[k] -= dot * v1[k]
    size = v2[0] * v2[0] + v2[1] * v2[1] + v2[2] * v2[2] + v2[3] * v2[3]
    if size < 1e-18:
        return -1
    size = 1.0 / sqrt(size)
    second *= size
    for k in range(4):
        v2[k] *= size
    perpendicular_plane(v1, v2, n1, n2)
    # |x0 + N z|^2 = 2, one from either circle, leaves |z|^2 = 2 - |x0|^2
    x0, x1 = first * v1[0] + second * v2[0], first * v1[1] + second * v2[1]
    x2, x3 = first * v1[2] + second * v2[2], first * v1[3] + second * v2[3]
    square = 2.0 - first * first - second * second
    if square < -ROOT_SLACK:
        return 0
    square = max(square, 0.0)
    radius = sqrt(square)
    # |(cos q1, sin q1)| = 1 on z = radius (cos t, sin t):
    # k0 + a1 cos t + b1 sin t + a2 cos 2t + b2 sin 2t = 0
    g00 = square * (n1[0] * n1[0] + n1[1] * n1[1])
    g11 = square * (n2[0] * n2[0] + n2[1] * n2[1])
    a1 = 2.0 * radius * (n1[0] * x0 + n1[1] * x1)
    b1 = 2.0 * radius * (n2[0] * x0 + n2[1] * x1)
    a2, b2 = 0.5 * (g00 - g11), square * (n1[0] * n2[0] + n1[1] * n2[1])
    k0 = x0 * x0 + x1 * x1 - 1.0 + 0.5 * (g00 + g11)
    # The half-angle substitution puts t = pi at infinity: turn the polynomial's largest value there.
    largest, cf, sf = -1.0, 1.0, 0.0
    c, s = 1.0, 0.0
    for _ in range(8):
        value = abs(k0 + a1 * c + b1 * s + a2 * (c * c - s * s) + 2.0 * b2 * c * s)
        if value > largest * (1.0 + CLEAR):
            largest, cf, sf = value, -c, -s
        c, s = SQRT_HALF * (c - s), SQRT_HALF * (c + s)
    if largest < 1e-12:
        return -1
    a1, b1 = a1 * cf + b1 * sf, b1 * cf - a1 * sf
    c2, s2 = cf * cf - sf * sf, 2.0 * cf * sf
    a2, b2 = a2 * c2 + b2 * s2, b2 * c2 - a2 * s2
    # times (1 + t^2)^2 with t the tangent of half the angle: a quartic
    quartic, roots, stops = work[4], work[5], work[6]
    quartic[0] = k0 + a1 + a2
    quartic[1] = 2.0 * b1 + 4.0 * b2
    quartic[2] = 2.0 * k0 - 6.0 * a2
    quartic[3] = 2.0 * b1 - 4.0 * b2
    quartic[4] = k0 - a1 + a2
    count = quartic_roots(quartic, stops, roots)
    for k in range(count):
        t = roots[k]
        c, s = (1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t)
        c, s = radius * (c * cf - s * sf), radius * (s * cf + c * sf)
        c1, s1 = x0 + n1[0] * c + n2[0] * s, x1 + n1[1] * c + n2[1] * s
        c5, s5 = x2 + n1[2] * c + n2[2] * s, x3 + n1[3] * c + n2[3] * s
        length1, length5 = sqrt(c1 * c1 + s1 * s1), sqrt(c5 * c5 + s5 * s5)
        pairs[k, 0] = inf
        if length1 < 0.1 or length5 < 0.1:
            continue
        c1, s1, c5, s5 = c1 / length1, s1 / length1, c5 / length5, s5 / length5
        set_pair(limits, seed, c1, s1, atan2(s5, c5), c5, s5, pairs[k])
    return count


@compiled
def wrist_pairs(form, limits, goal, seed, pairs):
    """Joint 1 of all configurations of an arm with a wrist point W that may meet goal, with seed's joint 5.

    Axes 4, 5 and the tool axis meet in W, so the goal says where W must be: one harmonic equation
    for q1. Returns the number of rows of pairs as in set_pair, -1 where the goal is singular.
    """
    w1, r1, u, w = form[W1], form[C1], form[U], form[END]
    x, y, z = wrist_point(form, goal)
    # u . Rot(w1, -q1) (W* - c1) = u . (W - c1), harmonic in -q1
    a, b, c = harmonics(w1, x, y, z, u[0], u[1], u[2])
    right = u[0] * (w[0] - r1[0]) + u[1] * (w[1] - r1[1]) + u[2] * (w[2] - r1[2]) - a
    length = sqrt(b * b + c * c)
    if length < 1e-9 * form[KIND, SIZE]:
        return -1
    ratio = right / length
    if abs(ratio) > 1.0 + ROOT_SLACK:
        return 0
    ratio = min(max(ratio, -1.0), 1.0)
    other = sqrt(1.0 - ratio * ratio)
    q5 = min(max(seed[4], limits[0, 4]), limits[1, 4])
    for side in range(2):
        t = other if side == 0 else -other
        c1, s1 = (b * ratio - c * t) / length, -(c * ratio + b * t) / length
        set_pair(limits, seed, c1, s1, q5, 1.0, 0.0, pairs[side])
    return 1 if other == 0.0 else 2


@compiled
def wrist_point(form, goal):
    """The goal's wrist point W from a point of axis 1."""
    r1, w, p0, d0 = form[C1], form[END], form[P0], form[D0]
    along = (p0[0] - w[0]) * d0[0] + (p0[1] - w[1]) * d0[1] + (p0[2] - w[2]) * d0[2]
    return (
        goal[0] - along * goal[DIRECTION] - r1[0],
        goal[1] - along * goal[DIRECTION + 1] - r1[1],
        goal[2] - along * goal[DIRECTION + 2] - r1[2],
    )


@compiled
def wrist_candidates(form, goal, pair, out):
    """Write into out the four configurations with joint 1 given by pair (7,); NaN first: there is none.

    The wrist point gives a planar triangle for q2 and q3. Then w4 . Rot(w5, q5) d0 = w4 . d' gives q5 and
    the turn about w4 gives q4. q4 is NaN where it is free.
    """
    w1, r1, u, r2 = form[W1], form[C1], form[U], form[C2]
    w4, w5, d0, sign = form[W4], form[W5], form[D0], form[SIGNS]
    _, q1, c1, s1, _, _, _ = pair
    ax, bx, cx = harmonics(w5, d0[0], d0[1], d0[2], w4[0], w4[1], w4[2])
    swing = sqrt(bx * bx + cx * cx)
    x, y, z = wrist_point(form, goal)
    px, py, pz = rotate_axis_angle(w1, c1, -s1, x, y, z)
    dx, dy, dz = rotate_axis_angle(w1, c1, -s1, goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2])
    px, py, pz = px + r1[0] - r2[0], py + r1[1] - r2[1], pz + r1[2] - r2[2]
    for k in range(4):
        out[k, 0] = nan
    for elbow in range(2):
        reached, q2, q3 = two_links(u, form[LINK1], form[LINK2], px, py, pz, elbow)
        if not reached:
            continue
        fx, fy, fz = rotate_axis_angle(u, cos(q2 + q3), -sin(q2 + q3), dx, dy, dz)
        wf = w4[0] * fx + w4[1] * fy + w4[2] * fz
        needed = (wf - ax) / swing
        if abs(needed) > 1.0 + ROOT_SLACK:
            continue
        needed = min(max(needed, -1.0), 1.0)
        tilt = sqrt(1.0 - needed * needed)
        for flip in range(1 if tilt == 0.0 else 2):
            t = tilt if flip == 0 else -tilt
            c5, s5 = (bx * needed - cx * t) / swing, (cx * needed + bx * t) / swing
            ex, ey, ez = rotate_axis_angle(w5, c5, s5, d0[0], d0[1], d0[2])
            we = w4[0] * ex + w4[1] * ey + w4[2] * ez
            sine = w4[0] * (ey * fz - ez * fy) + w4[1] * (ez * fx - ex * fz) + w4[2] * (ex * fy - ey * fx)
            cosine = ex * fx + ey * fy + ez * fz - we * wf
            on_axis = sine * sine + cosine * cosine < 1e-24
            row = out[2 * elbow + flip]
            row[0], row[1], row[2] = q1, q2, sign[1] * q3
            row[3], row[4] = nan if on_axis else atan2(sine, cosine), atan2(s5, c5)


PARALLEL = 1.0  # axes 2, 3, 4 parallel
WRIST = 2.0  # axes 2, 3 parallel; axes 4, 5 and the tool axis meet in one point W
MOST_CANDIDATES = 16
MOST_PAIRS = 4  # of joints 1 and 5: a quartic has so many roots
EXACT = 1e-9  # m and rad: what the formula misses by more is polished on the true model
FREE = 1e-7  # share of the length, and rad: a joint that moves the tool by less per rad is free
HOPELESS = 1e-2  # rad and share of the reach: what it misses by more is not a solution
OUTSIDE = 16.0  # times the deviation [rad]: what it puts outside the limits by less may belong inside
EQUAL = 1e-9  # rad: moves that differ by less are the same, and the first solution counts
STAYED = 1e-3  # rad: a solution that moves no joint by more is on the branch of the seed
NEAR = 0.1  # rad and share of the reach: the seed's own branch is looked for where its tool is this near
TIGHT = 1e-3  # likewise, of an exact form, whose seeds must meet the goal
STEEP = 8.0  # rad per rad and share of the reach: joints that move more than this suggest another branch


@compiled
def candidates(form, limits, goal, seed, beyond, work, out):
    """Closed-form configurations for goal within the limits, each turned nearest to seed (5,).

    beyond [rad]: those whose largest single joint move from seed may be within this of the least; inf: all.
    Returns (the number of rows of out (16, 5), whether the goal is regular for the formula: others leave joints
    free, whose values are those of seed).
    """
    parallel = form[KIND, FAMILY] == PARALLEL
    pairs = work[7:]
    if parallel:
        count = parallel_pairs(form, limits, goal, seed, work, pairs)
    else:
        count = wrist_pairs(form, limits, goal, seed, pairs)
    if count < 0:
        return 0, False
    kept, least, regular = 0, inf, True
    for _ in range(count):
        k = nearest_pair(pairs, count)
        if not pairs[k, 0] < least + beyond:
            break
        rows = out[kept:]
        if parallel:
            determined, _ = planar_candidates(form, goal, pairs[k], seed, rows)
            regular = regular and determined
        else:
            wrist_candidates(form, goal, pairs[k], rows)
        pairs[k, 0] = inf
        for r in range(2 if parallel else 4):
            if isnan(rows[r, 0]):
                continue
            move = 0.0
            for i in range(5):
                value = rows[r, i]
                if isnan(value):  # free
                    value = min(max(seed[i], limits[0, i]), limits[1, i])
                value = wrap_into_limits(value, seed[i], limits[0, i], limits[1, i])
                out[kept, i] = value
                move = max(move, abs(value - seed[i]))
            if not isnan(out[kept, 0] + out[kept, 1] + out[kept, 2] + out[kept, 3] + out[kept, 4]):
                least = min(least, move)
                kept += 1
    return kept, regular


@compiled
def polish_and_check(joints, tool, limits, goal, options, q, frames):
    """Check q (n,) by FK and polish it there if it misses EXACT; returns (solved, both errors)."""
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    far = max(5.0 * HOPELESS * options[WEIGHT], options[POSITION_TOLERANCE])
    if position > far * far or direction > squared(max(HOPELESS, options[CHORD_TOLERANCE])):
        return False, inf, inf
    if position > EXACT * EXACT or direction > EXACT * EXACT:
        work = np.empty((3 * q.shape[0] + 4, max(q.shape[0], 6)))
        polish = np.empty(options.shape[0])
        copy(options, polish)
        polish[POSITION_TOLERANCE], polish[CHORD_TOLERANCE], polish[ITERATIONS] = (
            min(options[POSITION_TOLERANCE], EXACT),
            min(options[CHORD_TOLERANCE], EXACT),
            8.0,
        )
        position, direction = polish_candidate(joints, tool, limits, goal, options, polish, q, frames, work)
    position_error, direction_error = goal_errors(joints, frames, goal)
    solved = met(position, direction, options)
    return solved, position_error, direction_error


@compiled
def may_be_near(form, goal, q, distance):
    """Whether the tool at q (5,) can be within distance [m] of goal (9,), by joints 1 and 5 alone.

    The part along u of tool point or wrist point does not depend on the others: most seeds end here.
    """
    w1, r1, u, w5, r5, p0 = form[W1], form[C1], form[U], form[W5], form[C5], form[P0]
    if form[KIND, FAMILY] == PARALLEL:
        x, y, z = goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2]
        ex, ey, ez = p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2]
        if form[KIND, FREE_ROLL] == 0.0:
            ex, ey, ez = rotate_axis_angle(w5, cos(q[4]), sin(q[4]), ex, ey, ez)
        ex, ey, ez = ex + r5[0], ey + r5[1], ez + r5[2]
    else:
        x, y, z = wrist_point(form, goal)
        ex, ey, ez = form[END, 0], form[END, 1], form[END, 2]
        distance += distance  # of the direction's part, as much again
    x, y, z = rotate_axis_angle(w1, cos(q[0]), -sin(q[0]), x, y, z)
    gap = u[0] * (x + r1[0] - ex) + u[1] * (y + r1[1] - ey) + u[2] * (z + r1[2] - ez)
    return abs(gap) <= distance


@compiled
def stay_on_branch(joints, tool, limits, form, goal, options, seed, move, q, frames):
    """Replace q (5,), which moves a joint by move from seed (5,), by a nearer solution on the seed's branch.

    Formulas lose it next to a limit or a double root if the geometry is only nearly theirs, and an exact one
    where the goal is met within the tolerances only. Returns (whether it is replaced, both errors).
    """
    copy(seed, q)
    clip(q, limits)
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    if form[SIGNS, DEVIATION] == 0.0:
        if not met(position, direction, options):
            return False, inf, inf
    else:
        gap = max(sqrt(position) / (5.0 * options[WEIGHT]), sqrt(direction))
        if gap > NEAR or move < STEEP * gap:
            return False, inf, inf
    descend_lm(joints, tool, limits, goal, options, LAST_DAMPING, q, frames, np.empty((19, 6)))
    position, direction = squared_errors(joints, frames, goal)
    if not met(position, direction, options) or largest_difference(q, seed) > move:
        return False, inf, inf
    position_error, direction_error = goal_errors(joints, frames, goal)
    return True, position_error, direction_error


@compiled
def nearest_solution(joints, tool, limits, form, goal, options, seed, q):
    """Closed-form solution nearest to seed (5,) by the largest single joint move, written into q.

    A candidate is checked by FK on the true model and polished there where the formula's geometry is
    only nearly the arm's. Returns (solved, position error [m], direction error [rad], whether the goal
    is regular for the formula).
    """
    work = np.empty((12, 7))
    found = np.empty((MOST_CANDIDATES, 5))
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    regular, solved, position_error, direction_error = True, False, inf, inf
    within = limits
    if form[SIGNS, DEVIATION] > 0.0:
        within = limits.copy()
        for i in range(5):
            within[0, i] -= OUTSIDE * form[SIGNS, DEVIATION]
            within[1, i] += OUTSIDE * form[SIGNS, DEVIATION]
    for beyond in (0.0, inf):  # the nearest one will do, unless FK rejects it
        count, regular = candidates(form, within, goal, seed, beyond, work, found)
        if count == 0:
            break
        while count > 0 and not solved:
            best, least = 0, inf
            for k in range(count):
                move = 0.0
                for i in range(5):
                    move = max(move, abs(found[k, i] - seed[i]))
                if move < least - EQUAL:
                    best, least = k, move
            copy(found[best], q)
            clip(q, limits)
            solved, position_error, direction_error = polish_and_check(joints, tool, limits, goal, options, q, frames)
            count -= 1
            for k in range(best, count):  # the others stay in order: of equal ones the first counts
                copy(found[k + 1], found[k])
            if beyond == 0.0:  # what was left out may be nearer than the others
                break
        if solved:
            break
    move = largest_difference(q, seed) if solved else inf
    exact = form[SIGNS, DEVIATION] == 0.0
    near = TIGHT if exact else NEAR
    if move > STAYED and may_be_near(form, goal, seed, near * form[KIND, SIZE]):
        stays, position, direction = stay_on_branch(
            joints, tool, limits, form, goal, options, seed, move, found[0], frames
        )
        if stays:
            copy(found[0], q)
            solved, position_error, direction_error = True, position, direction
    return solved, position_error, direction_error, regular or solved


@compiled
def nearest_by_formula(seed: V1, model: F1, goal: F1, q: F1):
    """nearest_solution near seed (5,), written into q (5,), for an arm in one array; unsolved for another seed.

    model: joints, tool, limits, form and options in a row; a call from Python costs less with fewer arrays.
    Returns (solved, both errors, whether that decides goal: it is solved and has no lateral, or is regular).
    """
    if isnan(goal[DIRECTION]) or not read_finite(seed, q):
        return False, inf, inf, False
    solved, position_error, direction_error, regular = nearest_solution(
        model[:50].reshape(5, 10),
        model[50:59],
        model[59:69].reshape(2, 5),
        model[69:111].reshape(14, 3),
        goal,
        model[111:],
        seed,
        q,
    )
    decided = regular and not (solved and not isnan(goal[LATERAL]))
    return solved, position_error, direction_error, decided


@compiled
def has_free_joint(joints, form, frames, work):
    """Whether a joint, but a roll about the tool, moves neither tool point nor tool axis at frames."""
    jac = work[:5, :6]
    jacobian(joints, frames, jac)
    for i in range(4 if form[KIND, FREE_ROLL] != 0.0 else 5):
        point = jac[i, 0] * jac[i, 0] + jac[i, 1] * jac[i, 1] + jac[i, 2] * jac[i, 2]
        axis = jac[i, 3] * jac[i, 3] + jac[i, 4] * jac[i, 4] + jac[i, 5] * jac[i, 5]
        if sqrt(point) < FREE * form[KIND, SIZE] and sqrt(axis) < FREE:
            return True
    return False


@compiled
def formula_solutions(
    joints: R2, tool: R1, limits: R2, period: R1, form: R2, goal: F1, options: F1, seed: F1, found: F2
):
    """Every closed-form solution within the limits, turned nearest to seed (5,); limits may be infinite.

    Each is polished and checked by FK on the true model. Returns (the number of rows of found (16, 5),
    whether the goal is regular for the formula, and no joint free at a solution).
    """
    work, scratch = np.empty((12, 7)), np.empty((5, 6))
    raw = np.empty((MOST_CANDIDATES, 5))
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    candidate_count, regular = candidates(form, limits, goal, seed, inf, work, raw)
    count = 0
    for k in range(candidate_count):
        if polish_and_check(joints, tool, limits, goal, options, raw[k], frames)[0]:
            count = add_solution(limits, period, found, count, raw[k])
            regular = regular and not has_free_joint(joints, form, frames, scratch)
    return count, regular
