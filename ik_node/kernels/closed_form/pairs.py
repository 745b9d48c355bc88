# SPDX-License-Identifier: Apache-2.0
"""Pairs of joint angles 1 and 5 and planar two-link arms: what both families share."""

from math import atan2, isnan, sqrt

from ..arrays.copies import copy
from ..arrays.rotation import ROOT_SLACK, rotate_axis_angle, wrap_into_limits
from ..runtime.compiled import compiled


@compiled
def add_pair(limits, seed, c1, s1, q5, c5, s5, pairs, count):
    """Insert values of joints 1 and 5 into pairs (k, 7), unless a limit is in the way; returns the new count.

    A row is (larger move from seed, q1, its cosine and sine, q5, its cosine and sine); the least move
    comes first.
    """
    q1 = wrap_into_limits(atan2(s1, c1), seed[0], limits[0, 0], limits[1, 0])
    q5 = wrap_into_limits(q5, seed[4], limits[0, 4], limits[1, 4])
    if isnan(q1) or isnan(q5):
        return count
    move = max(abs(q1 - seed[0]), abs(q5 - seed[4]))
    k = count
    while k > 0 and pairs[k - 1, 0] > move:
        copy(pairs[k - 1], pairs[k])
        k -= 1
    row = pairs[k]
    row[0], row[1], row[2], row[3], row[4], row[5], row[6] = move, q1, c1, s1, q5, c5, s5
    return count + 1


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
    most = sqrt(first * second)
    ratio = 0.5 * (mx * mx + my * my + mz * mz - first - second) / most
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
    c3, s3 = (a * ratio - b * bend) / most, (b * ratio + a * bend) / most
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
    pick, most = 0, -1.0
    for k in range(4):
        left = 1.0 - v1[k] * v1[k] - v2[k] * v2[k]  # squared length of row k of the dual
        if left > most:
            pick, most = k, left
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
