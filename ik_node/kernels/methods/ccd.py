# SPDX-License-Identifier: Apache-2.0
"""Cyclic coordinate descent with hinges, limits and a direction step."""

from __future__ import annotations

from math import atan2, cos, inf, isnan, pi, sin, sqrt

from ..arrays import (
    DIRECTION,
    PRISMATIC,
    RATIO,
    SWITCHES,
    VARIABLE,
    WEIGHT,
    align_about_axis,
    best_turn,
    clamp_turn,
    rotate_quaternion,
    shortest_turn,
    wrap_into_limits,
)
from ..chain import (
    BALL_ROWS,
    FIRST_JOINT,
    FIRST_VARIABLE,
    HAND,
    NEAR_POLE,
    ORDER,
    PROPER,
    clip,
    forward,
    jacobian,
    near_pole,
)
from ..language import compiled, specialised
from .driver import BEST, anneal, drive

# Ball joints turned as one: three joints in one point, and where they lock the rotation vector of the
# ball.
#
# In the right-handed basis of the first axis x, the second y and z, at zero, a ball is Rx(q1) Ry(q2)
# Rz(q3) or Rx(q1) Ry(q2) Rx(q3). With u = (q1 + q3) / 2, e = (q1 - q3) / 2 and t = q2 / 2 of the latter,
# its quaternion is (cos t cos u, cos t sin u, sin t cos e, sin t sin e): at t = 0 the joints lock and e is
# free. That of the former has the same form after a turn of half a right angle, with t = pi / 4 - q2 / 2.

LOCKED = 1e-7  # rad: a turn across the locked axes that is not worth turning these


@compiled
def open_balls(q, limits, frames):
    """Replace the joint axes of balls near their pole by three perpendicular ones, x, y, z at zero.

    So a Jacobian from these frames is that of the ball's rotation vector, which has no pole. Returns
    whether there is any.
    """
    opened = False
    for row in range(2, limits.shape[0], BALL_ROWS):
        if near_pole(q, limits, row):
            i = int(limits[row, FIRST_JOINT])
            x, y, z = second_axis_at_zero(q, limits, row, frames)
            frames[i + 1, 0], frames[i + 1, 1], frames[i + 1, 2] = x, y, z
            ax, ay, az = frames[i, 0], frames[i, 1], frames[i, 2]
            frames[i + 2, 0], frames[i + 2, 1], frames[i + 2, 2] = (
                ay * z - az * y,
                az * x - ax * z,
                ax * y - ay * x,
            )
            opened = True
    return opened


@compiled
def free_opened(q, limits, free):
    """Set free (n,) to 1 for the joints of balls that open_balls opens: their steps are not joint moves."""
    for row in range(2, limits.shape[0], BALL_ROWS):
        if near_pole(q, limits, row):
            j = int(limits[row, FIRST_VARIABLE])
            free[j], free[j + 1], free[j + 2] = 1.0, 1.0, 1.0


@compiled
def second_axis_at_zero(q, limits, row, frames):
    """Return the second axis of a ball (3,) in the base frame where its first joint is at zero."""
    i = int(limits[row, FIRST_JOINT])
    c, s = cos(q[int(limits[row, FIRST_VARIABLE])]), sin(q[int(limits[row, FIRST_VARIABLE])])
    ax, ay, az = frames[i, 0], frames[i, 1], frames[i, 2]
    x, y, z = frames[i + 1, 0], frames[i + 1, 1], frames[i + 1, 2]
    k = (1.0 - c) * (ax * x + ay * y + az * z)
    return (
        c * x - s * (ay * z - az * y) + k * ax,
        c * y - s * (az * x - ax * z) + k * ay,
        c * z - s * (ax * y - ay * x) + k * az,
    )


@compiled
def close_balls(q, limits, step, trial):
    """Write into trial (n,) the joints of the balls that open_balls opens at q (n,), turned by step (n,).

    step: of these balls the rotation vectors [rad] about their axes at zero.
    """
    for row in range(2, limits.shape[0], BALL_ROWS):
        if near_pole(q, limits, row):
            j = int(limits[row, FIRST_VARIABLE])
            x, y, z = step[j], step[j + 1], step[j + 2]
            angle = sqrt(x * x + y * y + z * z)
            s = sin(0.5 * angle) / angle if angle > 1e-12 else 0.5
            turn_ball(q, limits, row, cos(0.5 * angle), s * x, s * y, s * z, True, trial)


@compiled
def turn_ball(q, limits, row, w, x, y, z, limited, out):
    """Write into out (n,) the joints of a ball at q (n,) after the turn (w, x, y, z) about its axes at zero.

    Of the two solutions the one with the smaller largest joint move; at the pole the first joint stays where
    it is. Within the limits of the joints if limited, else without.
    """
    j, hand = int(limits[row, FIRST_VARIABLE]), limits[row + 1, HAND]
    proper = limits[row, ORDER] == PROPER
    u, e = 0.5 * (q[j] + hand * q[j + 2]), 0.5 * (q[j] - hand * q[j + 2])
    t = 0.5 * q[j + 1] if proper else 0.25 * pi - 0.5 * q[j + 1]
    a, b, c, d = cos(t) * cos(u), cos(t) * sin(u), sin(t) * cos(e), sin(t) * sin(e)
    if not proper:
        a, b, c, d = sqrt(0.5) * (a + c), sqrt(0.5) * (b + d), sqrt(0.5) * (a - c), sqrt(0.5) * (b - d)
    a, b, c, d = (
        w * a - x * b - y * c - z * d,
        w * b + x * a + y * d - z * c,
        w * c - x * d + y * a + z * b,
        w * d + x * c - y * b + z * a,
    )
    if not proper:
        a, b, c, d = sqrt(0.5) * (a + c), sqrt(0.5) * (b + d), sqrt(0.5) * (a - c), sqrt(0.5) * (b - d)
    # Where the joints lock, half of the quaternion is zero up to rounding: its angle stays what it was.
    first, second = sqrt(a * a + b * b), sqrt(c * c + d * d)
    if abs(b * cos(u) - a * sin(u)) < LOCKED and first < NEAR_POLE:
        first = a * cos(u) + b * sin(u)
    else:
        u = atan2(b, a)
    if abs(d * cos(e) - c * sin(e)) < LOCKED and second < NEAR_POLE:
        second = c * cos(e) + d * sin(e)
    else:
        e = atan2(d, c)
    t = atan2(second, first)
    least = inf
    for other in range(2):
        if other == 1:
            t, e = -t, e + pi
        low0, high0, low1, high1, low2, high2 = -inf, inf, -inf, inf, -inf, inf
        if limited:
            low0, high0 = limits[0, j], limits[1, j]
            low1, high1 = limits[0, j + 1], limits[1, j + 1]
            low2, high2 = limits[0, j + 2], limits[1, j + 2]
        middle = 2.0 * t if proper else 0.5 * pi - 2.0 * t
        q1 = wrap_into_limits(u + e, q[j], low0, high0)
        q2 = wrap_into_limits(middle, q[j + 1], low1, high1)
        q3 = wrap_into_limits(hand * (u - e), q[j + 2], low2, high2)
        penalty = 0.0
        if isnan(q1 + q2 + q3):  # only if the other one is not within the limits either
            penalty = 100.0
            q1 = clamp_turn(u + e, low0, high0)
            q2 = clamp_turn(middle, low1, high1)
            q3 = clamp_turn(hand * (u - e), low2, high2)
        move = penalty + max(abs(q1 - q[j]), max(abs(q2 - q[j + 1]), abs(q3 - q[j + 2])))
        if move < least:
            least = move
            out[j], out[j + 1], out[j + 2] = q1, q2, q3


@compiled
def aim_ball(q, limits, row, frames, goal, direction, point_weight, axis_weight, limited):
    """Turn the ball of this row of q (n,), in place, so that tool point and axis come nearest to the goal.

    One rotation about its centre: the one that minimises the weighted squared errors of both, which turns
    the plane of both vectors onto that of the goals and then turns in it (Wahba's problem of two vectors).
    frames: at q. direction: where those of goal begin. A weight may be 0. It may then be outside the cone.
    """
    m = (frames.shape[0] - 3) // 2
    i = int(limits[row, FIRST_JOINT])
    bx, by, bz = frames[m + i, 0], frames[m + i, 1], frames[m + i, 2]
    px, py, pz = frames[2 * m, 0] - bx, frames[2 * m, 1] - by, frames[2 * m, 2] - bz
    dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
    gx, gy, gz = goal[0] - bx, goal[1] - by, goal[2] - bz
    if axis_weight > 0.0:
        fx, fy, fz = goal[direction], goal[direction + 1], goal[direction + 2]
    else:
        fx, fy, fz = 0.0, 0.0, 0.0
    w, x, y, z = 1.0, 0.0, 0.0, 0.0
    if not axis_weight > 0.0:
        w, x, y, z = shortest_turn(px, py, pz, gx, gy, gz)
    elif not point_weight > 0.0:
        w, x, y, z = shortest_turn(dx, dy, dz, fx, fy, fz)
    else:
        ux, uy, uz = py * dz - pz * dy, pz * dx - px * dz, px * dy - py * dx
        vx, vy, vz = gy * fz - gz * fy, gz * fx - gx * fz, gx * fy - gy * fx
        size = sqrt(vx * vx + vy * vy + vz * vz)
        if not (size > 1e-12 and ux * ux + uy * uy + uz * uz > 1e-24):
            w, x, y, z = shortest_turn(px, py, pz, gx, gy, gz)
        else:
            vx, vy, vz = vx / size, vy / size, vz / size
            w, x, y, z = shortest_turn(ux, uy, uz, vx, vy, vz)
            kx, ky, kz = turned(w, x, y, z, px, py, pz)
            sine, cosine = align_about_axis(vx, vy, vz, kx, ky, kz, gx, gy, gz)
            kx, ky, kz = turned(w, x, y, z, dx, dy, dz)
            more, less = align_about_axis(vx, vy, vz, kx, ky, kz, fx, fy, fz)
            c, s = best_turn(
                point_weight * sine + axis_weight * more, point_weight * cosine + axis_weight * less, 1e-300
            )
            ux, uy, uz = s * vx, s * vy, s * vz
            w, x, y, z = (
                c * w - ux * x - uy * y - uz * z,
                c * x + ux * w + uy * z - uz * y,
                c * y - ux * z + uy * w + uz * x,
                c * z + ux * y - uy * x + uz * w,
            )
    ax, ay, az = frames[i, 0], frames[i, 1], frames[i, 2]
    ux, uy, uz = second_axis_at_zero(q, limits, row, frames)
    vx, vy, vz = ay * uz - az * uy, az * ux - ax * uz, ax * uy - ay * ux
    turn_ball(
        q, limits, row, w, ax * x + ay * y + az * z, ux * x + uy * y + uz * z, vx * x + vy * y + vz * z,
        limited, q,
    )  # fmt: skip


@compiled
def turned(w, i, j, k, x, y, z):
    """Return the vector (x, y, z) turned by the unit quaternion (w, i, j, k)."""
    tx, ty, tz = j * z - k * y, k * x - i * z, i * y - j * x
    return (
        x + 2.0 * (w * tx + j * tz - k * ty),
        y + 2.0 * (w * ty + k * tx - i * tz),
        z + 2.0 * (w * tz + i * ty - j * tx),
    )


@compiled
def ball_ending_at(limits, i):
    """Return the row of limits for the ball whose last joint is row i of joints, 0 if there is none."""
    for row in range(2, limits.shape[0], BALL_ROWS):
        if int(limits[row, FIRST_JOINT]) + 2 == i:
            return row
    return 0


SPLIT_SWEEPS = 30  # in which each joint serves either the point or the axis
HINGES, LIMITS, AXIS_STEP = range(SWITCHES, SWITCHES + 3)  # switches, all on by default


@compiled
def step(sweep, joints, tool, limits, goal, options, q, frames, work):
    """One sweep of quaternion cyclic coordinate descent.

    From tip to base, each revolute joint takes the quaternion that turns the tool onto the goal, projected
    onto its axis and clipped to its limits; each prismatic joint takes the projected distance. At first the
    last n - 3 joints turn the tool axis onto the direction and the others move the tool point to the
    position; from SPLIT_SWEEPS on every joint serves both, which never makes things worse (Wang and
    Chen 1991). A joint that drives several (mimics) takes a Newton step. A ball is visited once: it takes one
    rotation about its centre, clipped to the limits of its joints and put back inside its cone.

    Switched off, HINGES and LIMITS hold only between sweeps: in a sweep each joint turns freely as a
    ball joint (so that it serves point or axis, never both), or without limits. Without AXIS_STEP
    no joint serves the axis.
    """
    n, m = q.shape[0], joints.shape[0]
    jac, drives = work[:n, :6], work[n + 1, :n]
    hinged, limited = options[HINGES] != 0.0, options[LIMITS] != 0.0
    weight = options[WEIGHT]
    square = 0.0 if isnan(goal[DIRECTION]) or options[AXIS_STEP] == 0.0 else weight * weight
    if sweep == 1:
        count_driven(joints, drives)
    if sweep == SPLIT_SWEEPS:
        for i in range(n):
            q[i] = work[3 * n + BEST, i]
        forward(joints, tool, q, frames)
    splits = square > 0.0 and (sweep < SPLIT_SWEEPS or not hinged)
    px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
    dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
    inside = m  # of joints a ball has been visited for, the first
    for i in range(m - 1, -1, -1):
        if i >= inside:
            continue
        j = int(joints[i, VARIABLE])
        low, high = (limits[0, j], limits[1, j]) if limited else (-inf, inf)
        ax, ay, az = frames[i, 0], frames[i, 1], frames[i, 2]
        bx, by, bz = frames[m + i, 0], frames[m + i, 1], frames[m + i, 2]
        gx, gy, gz = goal[0] - px, goal[1] - py, goal[2] - pz
        ratio = joints[i, RATIO]
        row = ball_ending_at(limits, i) if limits.shape[0] > 2 else 0
        if row > 0:
            inside = i - 2
            serves_axis = square > 0.0 and (not splits or i >= m - (n - 3))
            serves_point = not splits or i < m - (n - 3)
            forward(joints, tool, q, frames)
            aim_ball(
                q, limits, row, frames, goal, DIRECTION,
                1.0 if serves_point else 0.0, square if serves_axis else 0.0, limited,
            )  # fmt: skip
            if limited:
                clip(q, limits)
            forward(joints, tool, q, frames)
            px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
            dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
            continue
        if drives[j] > 1.0:
            forward(joints, tool, q, frames)
            jacobian(joints, frames, jac)
            slope, curve = jac[j, 0] * gx + jac[j, 1] * gy + jac[j, 2] * gz, 0.0
            for k in range(3):
                curve += jac[j, k] * jac[j, k]
                if square > 0.0:
                    slope += square * jac[j, 3 + k] * (goal[DIRECTION + k] - frames[2 * m + 1, k])
                    curve += square * jac[j, 3 + k] * jac[j, 3 + k]
            if curve > 0.0:
                q[j] = min(max(q[j] + slope / curve, low), high)
            forward(joints, tool, q, frames)
            px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
            dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
            continue
        if ratio == 0.0:
            continue
        if joints[i, PRISMATIC] != 0.0:
            slide = (ax * gx + ay * gy + az * gz) / ratio
            value = min(max(q[j] + slide, low), high)
            slide = ratio * (value - q[j])
            q[j] = value
            px, py, pz = px + slide * ax, py + slide * ay, pz + slide * az
            continue
        serves_axis = square > 0.0 and (not splits or i >= m - (n - 3))
        serves_point = not splits or i < m - (n - 3)
        if not hinged:
            if serves_point:
                w, x, y, z = shortest_turn(px - bx, py - by, pz - bz, goal[0] - bx, goal[1] - by, goal[2] - bz)
            else:
                w, x, y, z = shortest_turn(dx, dy, dz, goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2])
            angle = 2.0 * atan2(ax * x + ay * y + az * z, w)
            q[j] = clamp_turn(q[j] + angle / ratio, low, high)
            s, ax, ay, az = 1.0, x, y, z
        else:
            sine, cosine = 0.0, 0.0
            if serves_point:
                sine, cosine = align_about_axis(
                    ax, ay, az, px - bx, py - by, pz - bz, goal[0] - bx, goal[1] - by, goal[2] - bz
                )
            if serves_axis:
                more, less = align_about_axis(
                    ax, ay, az, dx, dy, dz, goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2]
                )
                sine, cosine = sine + square * more, cosine + square * less
            w, s = best_turn(sine, cosine, 1e-13 * weight * weight)
            angle = 2.0 * atan2(s, w)
            value = clamp_turn(q[j] + angle / ratio, low, high)
            if value != q[j] + angle / ratio:
                angle = ratio * (value - q[j])
                w, s = cos(0.5 * angle), sin(0.5 * angle)
            q[j] = value
        x, y, z = rotate_quaternion(w, s, ax, ay, az, px - bx, py - by, pz - bz)
        px, py, pz = bx + x, by + y, bz + z
        dx, dy, dz = rotate_quaternion(w, s, ax, ay, az, dx, dy, dz)
    if not limited:
        for i in range(m):
            j = int(joints[i, VARIABLE])
            if joints[i, PRISMATIC] == 0.0 and drives[j] == 1.0:
                q[j] = clamp_turn(q[j], limits[0, j], limits[1, j])
        clip(q, limits)
    return True


@compiled
def count_driven(joints, drives):
    """Write how many joints each variable drives (n,)."""
    drives[:] = 0.0
    for i in range(joints.shape[0]):
        drives[int(joints[i, VARIABLE])] += 1.0


local_ccd = specialised(drive, 'local_ccd', step=step, WARM_UP=SPLIT_SWEEPS)
search_ccd = specialised(anneal, 'search_ccd', descend=local_ccd)
