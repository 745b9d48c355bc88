# SPDX-License-Identifier: Apache-2.0
"""Axes 2, 3, 4 parallel: a quartic in the angles of joints 1 and 5."""

from math import atan2, cos, sin, sqrt

from ..arrays.layout import (
    C1,
    C2,
    C5,
    D0,
    DIRECTION,
    END,
    FREE_ROLL,
    KIND,
    LINK1,
    LINK2,
    P0,
    SIGNS,
    SIZE,
    W1,
    W5,
    U,
)
from ..arrays.quartic import quartic_roots
from ..arrays.rotation import ROOT_SLACK, harmonics, rotate_axis_angle
from ..runtime.compiled import compiled
from .pairs import add_pair, perpendicular_plane, two_links

SQRT_HALF = sqrt(0.5)
FREE = 1e-6  # sine of the angle between tool axis and axis 2 below which joints 2, 3, 4 hardly turn the tool


@compiled
def planar_candidates(form, goal, pair, spare, out):
    """Write into out the at most two configurations with joints 1 and 5 given by pair (7,).

    Joint 1 turned back, joints 2, 3, 4 work in one plane: theta = q2 + q3 + q4 turns the tool axis
    onto the goal's, or as near as it can; what is left is the triangle of the two planar links.
    spare (5,): an angle that is free is taken from here. Returns (how many, whether theta is determined).
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
    count = 0
    for side in range(2):
        reached, q2, q3 = two_links(u, form[LINK1], form[LINK2], mx, my, mz, side)
        if reached:
            row = out[count]
            row[0], row[1], row[2], row[3], row[4] = q1, q2, sign[1] * q3, sign[2] * (theta - q2 - q3), q5
            count += 1
    return count, length > FREE


@compiled
def parallel_pairs(form, limits, goal, seed, work, pairs):
    """Joints 1 and 5 of all configurations of an arm with axes 2, 3, 4 parallel that may meet goal.

    Rotations about u change neither the u component of a direction nor that of a point, so joints
    1 and 5 alone meet two equations M x = r in x = (cos q1, sin q1, cos q5, sin q5). Their solutions
    x0 + N z that lie on both unit circles are the zeros of a trigonometric polynomial of degree 2.
    Where q5 is free (the tool axis is axis 5) it is seed's, and the position alone gives q1.
    work (7, 7) is scratch. Returns the number of rows of pairs as in add_pair, -1 where the goal is
    singular.
    """
    w1, r1, u, w5 = form[W1], form[C1], form[U], form[W5]
    r5, p0, d0 = form[C5], form[P0], form[D0]
    scale = 1.0 / form[KIND, SIZE]
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

    if form[KIND, FREE_ROLL] != 0.0:
        length = sqrt(bp * bp + cp * cp)
        if length < 1e-9:  # the goal lies on axis 1: only the direction asks for q1
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
        count = 0
        for side in range(1 if other == 0.0 else 2):
            t = other if side == 0 else -other
            c1, s1 = (bp * ratio - cp * t) / length, (cp * ratio + bp * t) / length
            count = add_pair(limits, seed, c1, s1, q5, c5, s5, pairs, count)
        return count

    # Orthonormal rows v1, v2 of M, the larger first; x0 in their span; then N perpendicular to both.
    v1, v2, n1, n2 = work[0], work[1], work[2], work[3]
    first, second = right_d, right_p
    v1[0], v1[1], v1[2], v1[3] = bd, cd, -b5, -e5
    v2[0], v2[1], v2[2], v2[3] = bp, cp, -h5, -k5
    if bp * bp + cp * cp + h5 * h5 + k5 * k5 > bd * bd + cd * cd + b5 * b5 + e5 * e5:
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
        if value > largest * (1.0 + 1e-9):
            largest, cf, sf = value, -c, -s
        c, s = SQRT_HALF * (c - s), SQRT_HALF * (c + s)
    if largest < 1e-12:
        return -1
    a1, b1 = a1 * cf + b1 * sf, b1 * cf - a1 * sf
    c2, s2 = cf * cf - sf * sf, 2.0 * cf * sf
    a2, b2 = a2 * c2 + b2 * s2, b2 * c2 - a2 * s2
    quartic, roots, stops = work[4], work[5], work[6]
    quartic[0] = k0 + a1 + a2
    quartic[1] = 2.0 * b1 + 4.0 * b2
    quartic[2] = 2.0 * k0 - 6.0 * a2
    quartic[3] = 2.0 * b1 - 4.0 * b2
    quartic[4] = k0 - a1 + a2
    count = 0
    for k in range(quartic_roots(quartic, stops, roots)):
        t = roots[k]
        c, s = (1.0 - t * t) / (1.0 + t * t), 2.0 * t / (1.0 + t * t)
        c, s = radius * (c * cf - s * sf), radius * (s * cf + c * sf)
        c1, s1 = x0 + n1[0] * c + n2[0] * s, x1 + n1[1] * c + n2[1] * s
        c5, s5 = x2 + n1[2] * c + n2[2] * s, x3 + n1[3] * c + n2[3] * s
        length1, length5 = sqrt(c1 * c1 + s1 * s1), sqrt(c5 * c5 + s5 * s5)
        if length1 < 0.1 or length5 < 0.1:
            continue
        c1, s1, c5, s5 = c1 / length1, s1 / length1, c5 / length5, s5 / length5
        count = add_pair(limits, seed, c1, s1, atan2(s5, c5), c5, s5, pairs, count)
    return count
