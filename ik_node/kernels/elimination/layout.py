# SPDX-License-Identifier: Apache-2.0
"""Layout of the constants (K, 15) of eliminations; general.py has rows and columns of its own.

Only the joints that move tool point or axis are listed, from the base on. Three of them in a row, or one, or
two, are eliminated: the inner joints. The angles of the outer ones, two at most, are found first.
Lengths are shares of SIZE, points are relative to the point ORIGIN.
"""

from __future__ import annotations

from math import atan2, cos, nan, sin, sqrt

from ..arrays import rotate_axis_angle
from ..language import compiled

PAIR, GENERAL = 1.0, 2.0  # FAMILY

# row 0
FAMILY, STAGE, INNER, FIRST_INNER, ACTIVE = range(5)  # ACTIVE: number of joints that count
OUTER_A, OUTER_B, WRIST, ALONG, SIZE = range(5, 10)  # ALONG: distance of the tool point from the wrist point
ORIGIN, EQUATIONS, SLACK = 10, 13, 14  # ORIGIN: three numbers; EQUATIONS: in one unknown
MIN_SLACK = 1e-5  # goals of few joints are met to the tolerances only
OUTER_C = EQUATIONS  # of three unknowns

# STAGE: what is solved for the outer joints
NO_UNKNOWN, ONE_UNKNOWN, TURN_LAST, SLIDE_LAST, ANY_TWO, ANY_THREE = range(6)

# INNER: which joints are eliminated
ONE_JOINT, TWO_JOINTS, PLANAR, SPHERICAL, SLIDES = range(5)

JOINTS = 1  # five rows, as follows
AXIS, POINT, SLIDING, VARIABLE, SENSE = 0, 3, 6, 7, 8  # SENSE: axis against that of the plane

TOOL = 6  # tool point, or wrist point, and tool axis
COMMON = 7  # normal of the plane, and the point in which axes meet
TURNED = 6  # of row COMMON: cosine and sine by which the half tangent of joint C is turned
NORMALS = 8  # six rows: covectors that joint 1 of two inner joints leaves alone
AFFINE = 14  # their values (6, 3) in 1, cos, sin of joint 2, two rows
COEFFICIENTS = 16  # rows F with E = F m(goal): nine for each equation in two joints, three in one
ROWS = 34

# of three unknowns: three equations of 27 coefficients each, then a matrix of polynomials of degree 2
POWERS = 16
MATRIX = COEFFICIENTS + 81
ROWS_OF_THREE = MATRIX + 3 * POWERS * POWERS


@compiled
def write_vector(v, out):
    """Write m = (1, x, y, x.x, x.y, x cross y, (x.x) y - 2 (x.y) x) of v (6,): x and y."""
    a, b, c, d, e, f = v[0], v[1], v[2], v[3], v[4], v[5]
    square, along = a * a + b * b + c * c, a * d + b * e + c * f
    out[0] = 1.0
    out[1], out[2], out[3], out[4], out[5], out[6] = a, b, c, d, e, f
    out[7], out[8] = square, along
    out[9], out[10], out[11] = b * f - c * e, c * d - a * f, a * e - b * d
    out[12], out[13], out[14] = (
        square * d - 2.0 * along * a,
        square * e - 2.0 * along * b,
        square * f - 2.0 * along * c,
    )


@compiled
def linear_in(form, first, m):
    """The product of row first of form with m (15,)."""
    total, row = 0.0, form[first]
    for i in range(15):
        total += row[i] * m[i]
    return total


@compiled
def move(joint, value, v):
    """Move v (6,), a point and a direction, by the joint of this row, in place."""
    if joint[SLIDING] != 0.0:
        for k in range(3):
            v[k] += value * joint[AXIS + k]
        return
    c, s = cos(value), sin(value)
    v[0], v[1], v[2] = rotate_axis_angle(
        joint, c, s, v[0] - joint[POINT], v[1] - joint[POINT + 1], v[2] - joint[POINT + 2]
    )
    for k in range(3):
        v[k] += joint[POINT + k]
    v[3], v[4], v[5] = rotate_axis_angle(joint, c, s, v[3], v[4], v[5])


@compiled
def value_between(joint, v, g):
    """Value of one joint that brings v (6,) nearest to g (6,), points and directions; NaN if any does."""
    wx, wy, wz = joint[AXIS], joint[AXIS + 1], joint[AXIS + 2]
    if joint[SLIDING] != 0.0:
        return wx * (g[0] - v[0]) + wy * (g[1] - v[1]) + wz * (g[2] - v[2])
    sine, cosine = 0.0, 0.0
    for k in range(2):
        x, y, z = v[3 * k], v[3 * k + 1], v[3 * k + 2]
        a, b, c = g[3 * k], g[3 * k + 1], g[3 * k + 2]
        if k == 0:
            x, y, z = x - joint[POINT], y - joint[POINT + 1], z - joint[POINT + 2]
            a, b, c = a - joint[POINT], b - joint[POINT + 1], c - joint[POINT + 2]
        sine += wx * (y * c - z * b) + wy * (z * a - x * c) + wz * (x * b - y * a)
        cosine += x * a + y * b + z * c - (wx * x + wy * y + wz * z) * (wx * a + wy * b + wz * c)
    return atan2(sine, cosine) if sqrt(sine * sine + cosine * cosine) > 1e-12 else nan


@compiled
def spread(square, scale, slack):
    """The square of half the distance between two roots, not negative; scale: what slack is a share of.

    Of arms whose geometry is only nearly special (more slack than rounding needs) it is never smaller than
    that: the true roots are on either side, and a descent from the middle would find one of them.
    """
    return max(square, (slack - MIN_SLACK) * scale)


@compiled
def harmonic_root(a, b, c, side, slack):
    """(exists, q) with a + b cos q + c sin q = 0, of two roots that of side 0 or 1.

    A root missed by no more than slack times the amplitude counts as double, of side 0. See spread.
    """
    square = b * b + c * c
    length = sqrt(square)
    if not abs(a) <= length * (1.0 + slack) or length == 0.0:
        return False, 0.0
    rest = sqrt(spread(square - a * a, square, slack))
    if rest == 0.0 and side == 1:
        return False, 0.0
    if side == 1:
        rest = -rest
    return True, atan2(-a * c + b * rest, -a * b - c * rest)


@compiled
def write_row(form, values, out, count):
    """Write values of the joints that count as row count of out (k, n), else NaN; return the new count."""
    if count == out.shape[0]:
        return count
    row = out[count]
    for k in range(row.shape[0]):
        row[k] = nan
    for k in range(int(form[0, ACTIVE])):
        joint = form[JOINTS + k]
        row[int(joint[VARIABLE])] = values[k] * (form[0, SIZE] if joint[SLIDING] != 0.0 else 1.0)
    return count + 1
