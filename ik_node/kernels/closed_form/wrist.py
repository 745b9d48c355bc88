# SPDX-License-Identifier: Apache-2.0
"""Axes 2, 3 parallel; axes 4, 5 and the tool axis meet in one point."""

from math import atan2, cos, nan, sin, sqrt

from ..arrays.layout import C1, C2, D0, DIRECTION, END, KIND, LINK1, LINK2, P0, SIGNS, SIZE, W1, W4, W5, U
from ..arrays.rotation import ROOT_SLACK, harmonics, rotate_axis_angle
from ..runtime.compiled import compiled
from .pairs import add_pair, two_links


@compiled
def wrist_pairs(form, limits, goal, seed, pairs):
    """Joint 1 of all configurations of an arm with a wrist point W that may meet goal, with seed's joint 5.

    Axes 4, 5 and the tool axis meet in W, so the goal says where W must be: one harmonic equation
    for q1. Returns the number of rows of pairs as in add_pair, -1 where the goal is singular.
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
    count = 0
    for side in range(1 if other == 0.0 else 2):
        t = other if side == 0 else -other
        c1, s1 = (b * ratio - c * t) / length, -(c * ratio + b * t) / length
        count = add_pair(limits, seed, c1, s1, q5, 1.0, 0.0, pairs, count)
    return count


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
    """Write into out the at most four configurations with joint 1 given by pair (7,); return how many.

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
    count = 0
    for elbow in range(2):
        reached, q2, q3 = two_links(u, form[LINK1], form[LINK2], px, py, pz, elbow)
        if not reached:
            continue
        fx, fy, fz = rotate_axis_angle(u, cos(q2 + q3), -sin(q2 + q3), dx, dy, dz)
        wf = w4[0] * fx + w4[1] * fy + w4[2] * fz
        wanted = (wf - ax) / swing
        if abs(wanted) > 1.0 + ROOT_SLACK:
            continue
        wanted = min(max(wanted, -1.0), 1.0)
        tilt = sqrt(1.0 - wanted * wanted)
        for flip in range(1 if tilt == 0.0 else 2):
            t = tilt if flip == 0 else -tilt
            c5, s5 = (bx * wanted - cx * t) / swing, (cx * wanted + bx * t) / swing
            ex, ey, ez = rotate_axis_angle(w5, c5, s5, d0[0], d0[1], d0[2])
            we = w4[0] * ex + w4[1] * ey + w4[2] * ez
            sine = w4[0] * (ey * fz - ez * fy) + w4[1] * (ez * fx - ex * fz) + w4[2] * (ex * fy - ey * fx)
            cosine = ex * fx + ey * fy + ez * fz - we * wf
            on_axis = sine * sine + cosine * cosine < 1e-24
            row = out[count]
            row[0], row[1], row[2] = q1, q2, sign[1] * q3
            row[3], row[4] = nan if on_axis else atan2(sine, cosine), atan2(s5, c5)
            count += 1
    return count
