# SPDX-License-Identifier: Apache-2.0
"""The plane of joints 2, 3, 4 as complex numbers."""

from math import acos, atan2, cos, floor, inf, isnan, pi, sin, sqrt

from ..arrays.layout import C1, C2, C5, D0, DIRECTION, END, KIND, P0, SIGN3, SIGN4, SIGNS, SIZE, W1, W5, U
from ..arrays.rotation import FULL_TURN, harmonics, rotate_axis_angle, stops_within_a_turn, wrap_into_limits
from ..runtime.compiled import compiled

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
    most = abs(a) * abs(b)
    if most < 1e-12:
        return False, 0.0, 0.0
    square = target.real * target.real + target.imag * target.imag
    square -= a.real * a.real + a.imag * a.imag + b.real * b.real + b.imag * b.imag
    ratio = 0.5 * square / most
    if abs(ratio) > 1.0 + 1e-9 or (side == 1 and abs(ratio) >= 1.0):
        return False, 0.0, 0.0
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
            if (
                not reached
                or gap > best + 1e-9
                or not wrap_planar_joints(form, limits, seed, a2, a3, a4, trial)
            ):
                continue
            move = max(abs(trial[1] - seed[1]), abs(trial[2] - seed[2]), abs(trial[3] - seed[3]))
            if gap < best - 1e-9 or move < least:
                best, least = min(gap, best), move
                q[1], q[2], q[3] = trial[1], trial[2], trial[3]
        if case == 0 and best < inf:
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
    px, py, pz = rotate_axis_angle(w1, c1, -s1, goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    px, py, pz = px + r1[0], py + r1[1], pz + r1[2]
    ex, ey, ez = rotate_axis_angle(w5, c5, s5, p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    ex, ey, ez = ex + r5[0], ey + r5[1], ez + r5[2]
    target = in_plane(plane, px - r2[0], py - r2[1], pz - r2[2])
    end = in_plane(plane, ex - r4[0], ey - r4[1], ez - r4[2])
    off = u[0] * (px - ex) + u[1] * (py - ey) + u[2] * (pz - ez)
    if isnan(goal[DIRECTION]):
        return target, end, 0.0j, 0.0, off
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
    a, b, c = harmonics(w1, u[0], u[1], u[2], goal[0] - r1[0], goal[1] - r1[1], goal[2] - r1[2])
    ex, ey, ez = rotate_axis_angle(w5, cos(q5), sin(q5), p0[0] - r5[0], p0[1] - r5[1], p0[2] - r5[2])
    height = u[0] * (ex + r5[0] - r1[0]) + u[1] * (ey + r5[1] - r1[1]) + u[2] * (ez + r5[2] - r1[2])
    length = sqrt(b * b + c * c)
    if length < 1e-9 * form[KIND, SIZE]:
        return 0, False
    ratio = (height - a) / length
    if abs(ratio) >= 1.0:
        roots[0] = atan2(c, b) if ratio > 0.0 else atan2(-c, -b)
        return 1, abs(ratio) < 1.0 + 1e-9
    bend = acos(ratio)
    roots[0], roots[1] = atan2(c, b) + bend, atan2(c, b) - bend
    return 2, True
