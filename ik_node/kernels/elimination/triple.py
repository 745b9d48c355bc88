# SPDX-License-Identifier: Apache-2.0
"""The eliminated joints, once the others are known: they bring v (6,), point and direction, onto g (6,).

v: the tool as the joints behind them hold it; g: the goal with the joints before them taken back. A rotation
R about a unit axis w is R x = cos (x - (w . x) w) + sin (w cross x) + (w . x) w.
"""

from __future__ import annotations

from math import atan2, cos, nan, sin, sqrt

from ..arrays import copy, harmonics, rotate_axis_angle, squared
from ..closed_form import two_links
from ..language import compiled
from .layout import (
    AFFINE,
    COMMON,
    FIRST_INNER,
    INNER,
    JOINTS,
    NORMALS,
    ONE_JOINT,
    PLANAR,
    POINT,
    SENSE,
    SLACK,
    SLIDES,
    SLIDING,
    SPHERICAL,
    harmonic_root,
    linear_in,
    move,
    value_between,
    write_vector,
)
from .unknowns import add_slides, add_turns, quadratic_roots

LEAST = 1e-9  # shares of the size below which directions count as parallel


@compiled
def inner_values(form, v, g, work, out):
    """Write into out (2, 3) the values of the inner joints that may bring v (6,) onto g (6,).

    Returns (how many, whether these are all: not where an angle is free).
    """
    inner = form[0, INNER]
    joints = form[JOINTS + int(form[0, FIRST_INNER]) :]
    if inner == ONE_JOINT:
        out[0, 0] = value_between(joints[0], v, g)
        return 1, True
    if inner == PLANAR:
        return planar_values(joints, form[COMMON], form[0, SLACK], v, g, work, out)
    if inner == SPHERICAL:
        return spherical_values(joints, form[COMMON], form[0, SLACK], v, g, work, out)
    if inner == SLIDES:
        return slide_values(joints, v, g, out), True
    return two_values(form, joints, v, g, work, out), True


@compiled
def slide_values(joints, v, g, out):
    """Three slides: the way as a combination of their axes, by Cramer's rule."""
    x, y, z = g[0] - v[0], g[1] - v[1], g[2] - v[2]
    for k in range(3):
        i, j = joints[(k + 1) % 3], joints[(k + 2) % 3]
        # its cross product with the other two axes vanishes for both: only slide k is left
        a, b, c = i[1] * j[2] - i[2] * j[1], i[2] * j[0] - i[0] * j[2], i[0] * j[1] - i[1] * j[0]
        whole = a * joints[k, 0] + b * joints[k, 1] + c * joints[k, 2]
        out[0, k] = (a * x + b * y + c * z) / whole
    return 1


@compiled
def two_values(form, joints, v, g, work, out):
    """Two joints: what the first leaves alone is affine in cosine and sine of the second.

    n . M_2 m(v) = n . m(g) for each covector n that joint 1 does not change: up to six equations in joint 2
    alone, of which the one that varies most with it is solved.
    """
    m = work[6]
    write_vector(g, m)
    best, a, b, c = -1.0, 0.0, 0.0, 0.0
    for k in range(6):
        total = linear_in(form, NORMALS + k, m)
        row, column = AFFINE + k // 5, 3 * (k % 5)  # where n . M_2 m(v) stands, by 1, cos, sin or 1, t, t^2
        swing = squared(form[row, column + 1]) + squared(form[row, column + 2])
        if swing > best:
            best = swing
            a, b, c = form[row, column] - total, form[row, column + 1], form[row, column + 2]
    if joints[1, SLIDING] != 0.0:
        count = add_slides(a, b, c, form[0, SLACK], 0.0, work, out, 0)
    else:
        count = add_turns(a, b, c, form[0, SLACK], 0.0, out, 0)
    # with joint 2 known, joint 1 follows from both points and directions at once
    turned = work[5, :6]
    for k in range(count):
        copy(v, turned)
        move(joints[1], out[k, 1], turned)
        out[k, 0] = value_between(joints[0], turned, g)
    return count


@compiled
def spherical_values(joints, centre, slack, v, g, work, out):
    """Three axes that meet: the rotation from both pairs, then the angle of the middle joint.

    w_1 . R_2 w_3 = w_1 . R w_3 has two roots; the others turn R_2 w_3 onto R w_3 and v onto the rest of g.
    """
    # The rotation R takes the frame of v to that of g: direction, normal of direction and point from the
    # centre, and the product of these two.
    base, goal = work[4], work[5]
    for k in range(2):
        x, d = (v, base) if k == 0 else (g, goal)
        a, b, c = x[0] - centre[3], x[1] - centre[4], x[2] - centre[5]
        nx, ny, nz = x[4] * c - x[5] * b, x[5] * a - x[3] * c, x[3] * b - x[4] * a
        length = sqrt(nx * nx + ny * ny + nz * nz)
        if length < LEAST:  # the line passes through the centre: the turn about it is free
            return 0, False
        nx, ny, nz = nx / length, ny / length, nz / length
        d[0], d[1], d[2], d[3], d[4], d[5] = x[3], x[4], x[5], nx, ny, nz
        d[6], d[7], d[8] = ny * x[5] - nz * x[4], nz * x[3] - nx * x[5], nx * x[4] - ny * x[3]
    w1, w2, w3 = joints[0], joints[1], joints[2]
    # (x, y, z) = R w_3, which R_3 leaves out: R w_3 = R_1 R_2 w_3
    x, y, z = 0.0, 0.0, 0.0
    for k in range(3):
        share = base[3 * k] * w3[0] + base[3 * k + 1] * w3[1] + base[3 * k + 2] * w3[2]
        x, y, z = x + share * goal[3 * k], y + share * goal[3 * k + 1], z + share * goal[3 * k + 2]
    # w_1 . R w_3 = w_1 . R_2 w_3 leaves R_1 out: a + b cos + c sin of the middle angle = far
    a, b, c = harmonics(w2, w3[0], w3[1], w3[2], w1[0], w1[1], w1[2])
    far = w1[0] * x + w1[1] * y + w1[2] * z
    from_, to = work[6], work[7]
    count, regular = 0, True
    for side in range(2):
        exists, middle = harmonic_root(a - far, b, c, side, slack)
        if not exists:
            continue
        # joint 1 turns (p, q, r) = R_2 w_3 about w_1 onto R w_3
        p, q, r = rotate_axis_angle(w2, cos(middle), sin(middle), w3[0], w3[1], w3[2])
        sine = w1[0] * (q * z - r * y) + w1[1] * (r * x - p * z) + w1[2] * (p * y - q * x)
        cosine = p * x + q * y + r * z - (w1[0] * p + w1[1] * q + w1[2] * r) * far
        if sine * sine + cosine * cosine < LEAST * LEAST:  # axes 1 and 3 coincide: only their sum counts
            regular = False
        first = atan2(sine, cosine)
        # joint 3 is what is left between v and g, from which joints 1 and 2 are taken back
        for k in range(6):
            from_[k], to[k] = v[k], g[k]
        move(w1, -first, to)
        move(w2, -middle, to)
        out[count, 0], out[count, 1], out[count, 2] = first, middle, value_between(w3, from_, to)
        count += 1
    return count, regular


@compiled
def planar_values(joints, common, slack, v, g, work, out):
    """Three joints in a plane: the direction says their whole turn, the rest is a triangle or linear."""
    # theta, the sum of all turns about the normal u, takes the part of v's direction in the plane to that of
    # g's: d' . e' and u . (d' cross e') with d' = d - (u . d) u
    u = common
    ux, uy, uz = u[0], u[1], u[2]
    ud, ue = ux * v[3] + uy * v[4] + uz * v[5], ux * g[3] + uy * g[4] + uz * g[5]
    sine = ux * (v[4] * g[5] - v[5] * g[4]) + uy * (v[5] * g[3] - v[3] * g[5]) + uz * (v[3] * g[4] - v[4] * g[3])
    cosine = v[3] * g[3] + v[4] * g[4] + v[5] * g[5] - ud * ue
    length = sqrt(sine * sine + cosine * cosine)
    regular = length > LEAST * LEAST
    theta, c, s = 0.0, 1.0, 0.0  # one of many where the tool axis is normal to the plane
    if regular:
        theta, c, s = atan2(sine, cosine), cosine / length, sine / length
    turning, turns, slides = work[4], 0, 0
    for k in range(3):
        if joints[k, SLIDING] == 0.0:
            turning[turns] = k
            turns += 1
        else:
            slides += 1
    first, last = joints[int(turning[0])], joints[int(turning[turns - 1])]
    # With the whole turn known, the point of the last turning axis has a place: that axis carries v rigidly,
    # so it is at g - R (v - last). (x, y, z) leads from the first turning axis to there, slides left out.
    x, y, z = rotate_axis_angle(u, c, s, v[0] - last[POINT], v[1] - last[POINT + 1], v[2] - last[POINT + 2])
    x, y, z = g[0] - x - first[POINT], g[1] - y - first[POINT + 1], g[2] - z - first[POINT + 2]
    if slides == 0:
        return planar_turns(joints, u, theta, x, y, z, work, out), regular
    if slides == 2:
        found = planar_slides(joints, u, theta, c, s, int(turning[0]), x, y, z, out)
        return found, regular and found > 0
    link = work[5]
    for k in range(3):
        link[k] = last[POINT + k] - first[POINT + k]
    return planar_slide(joints, u, slack, theta, c, s, x, y, z, work, out), regular


@compiled
def planar_turns(joints, u, theta, x, y, z, work, out):
    """Three turns: (x, y, z) leads from axis 1 to where axis 3 must be."""
    # the two links between the three axes, without their parts along u, which no turn changes
    one, two = work[5], work[6]
    for k in range(3):
        one[k] = joints[1, POINT + k] - joints[0, POINT + k]
        two[k] = joints[2, POINT + k] - joints[1, POINT + k]
    for link in (one, two):
        along = u[0] * link[0] + u[1] * link[1] + u[2] * link[2]
        for k in range(3):
            link[k] -= along * u[k]
    count = 0
    for side in range(2):  # elbow on either side
        reached, first, second = two_links(u, one, two, x, y, z, side)
        if reached:
            out[count, 0] = joints[0, SENSE] * first
            out[count, 1] = joints[1, SENSE] * second
            out[count, 2] = joints[2, SENSE] * (theta - first - second)
            count += 1
    return count


@compiled
def planar_slides(joints, u, theta, c, s, turn, x, y, z, out):
    """One turn and two slides: (x, y, z) is what the slides have to add, those behind the turn turned."""
    # t_a a + t_b b = (x, y, z) in the plane, by Cramer's rule with the product p, q -> u . (p cross q)
    i, j = (turn + 1) % 3, (turn + 2) % 3
    a, b = joints[i], joints[j]
    ax, ay, az = a[0], a[1], a[2]
    bx, by, bz = b[0], b[1], b[2]
    if i > turn:
        ax, ay, az = rotate_axis_angle(u, c, s, ax, ay, az)
    if j > turn:
        bx, by, bz = rotate_axis_angle(u, c, s, bx, by, bz)
    whole = u[0] * (ay * bz - az * by) + u[1] * (az * bx - ax * bz) + u[2] * (ax * by - ay * bx)
    if abs(whole) < LEAST:  # the slides have become parallel
        return 0
    out[0, turn] = joints[turn, SENSE] * theta
    out[0, i] = (u[0] * (y * bz - z * by) + u[1] * (z * bx - x * bz) + u[2] * (x * by - y * bx)) / whole
    out[0, j] = (u[0] * (ay * z - az * y) + u[1] * (az * x - ax * z) + u[2] * (ax * y - ay * x)) / whole
    return 1


@compiled
def planar_slide(joints, u, slack, theta, c, s, x, y, z, work, out):
    """Two turns and a slide: a quadratic, as the distance between the turning axes is known.

    (x, y, z) leads from the first turning axis to where the last one would be without the slide.
    """
    link, quad, roots = work[5], work[6], work[2:4]
    slide = 0 if joints[0, SLIDING] != 0.0 else (1 if joints[1, SLIDING] != 0.0 else 2)
    wx, wy, wz = joints[slide, 0], joints[slide, 1], joints[slide, 2]
    if slide == 2:  # behind both turns, whose sum is known
        wx, wy, wz = rotate_axis_angle(u, c, s, wx, wy, wz)
    along = u[0] * x + u[1] * y + u[2] * z
    x, y, z = x - along * u[0], y - along * u[1], z - along * u[2]
    along = u[0] * link[0] + u[1] * link[1] + u[2] * link[2]
    lx, ly, lz = link[0] - along * u[0], link[1] - along * u[1], link[2] - along * u[2]
    # Turn 1 takes the link to (x, y, z) - t w, both of the same length: |link| = |(x, y, z) - t w|. With the
    # slide between the turns it is part of the link: |link + t w| = |(x, y, z)|. Squared, a quadratic in t.
    away = lx * wx + ly * wy + lz * wz if slide == 1 else -(x * wx + y * wy + z * wz)
    gap = x * x + y * y + z * z - lx * lx - ly * ly - lz * lz
    quad[0] = -gap if slide == 1 else gap
    quad[1], quad[2] = 2.0 * away, wx * wx + wy * wy + wz * wz
    count = 0
    for k in range(quadratic_roots(quad, slack, roots)):
        t = roots[k, 0] / roots[k, 1]
        ax, ay, az, bx, by, bz = lx, ly, lz, x, y, z
        if slide == 1:
            ax, ay, az = ax + t * wx, ay + t * wy, az + t * wz
        else:
            bx, by, bz = bx - t * wx, by - t * wy, bz - t * wz
        # the turn between the two, and what the other one adds up to theta with
        sine = u[0] * (ay * bz - az * by) + u[1] * (az * bx - ax * bz) + u[2] * (ax * by - ay * bx)
        first = atan2(sine, ax * bx + ay * by + az * bz)
        row = out[count]
        row[slide] = t
        i, j = (1 if slide == 0 else 0), (1 if slide == 2 else 2)
        row[i], row[j] = joints[i, SENSE] * first, joints[j, SENSE] * (theta - first)
        count += 1
    return count


@compiled
def wrist_values(fourth, fifth, slack, v, g, out):
    """Two axes that meet the tool axis in one point: their angles bring the direction of v onto that of g.

    w_4 . R_5 d_0 = w_4 . d has two roots; NaN for an angle that is free. Writes out (2, 2), returns how many.
    """
    # R_4 does not change the part along w_4, so a + b cos q_5 + c sin q_5 = w_4 . d
    along = fourth[0] * g[3] + fourth[1] * g[4] + fourth[2] * g[5]
    a, b, c = harmonics(fifth, v[3], v[4], v[5], fourth[0], fourth[1], fourth[2])
    count = 0
    for side in range(2):
        exists, angle = harmonic_root(a - along, b, c, side, slack)
        if not exists:
            continue
        # joint 4 turns R_5 d_0 = (x, y, z) about w_4 onto d; d along w_4 leaves it free
        x, y, z = rotate_axis_angle(fifth, cos(angle), sin(angle), v[3], v[4], v[5])
        sine = fourth[0] * (y * g[5] - z * g[4]) + fourth[1] * (z * g[3] - x * g[5]) + fourth[2] * (x * g[4] - y * g[3])
        cosine = x * g[3] + y * g[4] + z * g[5] - along * along
        free = sine * sine + cosine * cosine < 1e-24
        out[count, 0], out[count, 1] = nan if free else atan2(sine, cosine), angle
        count += 1
    return count
