# SPDX-License-Identifier: Apache-2.0
"""Cyclic coordinate descent with hinges, limits and a direction step."""

from math import atan2, cos, inf, isnan, sin

from ..arrays.layout import DIRECTION, PRISMATIC, RATIO, SWITCHES, VARIABLE, WEIGHT
from ..arrays.rotation import align_about_axis, best_turn, clamp_turn, rotate_quaternion, shortest_turn
from ..chain.ball_turns import aim_ball, ball_ending_at
from ..chain.forward import clip, forward, jacobian
from ..runtime.compiled import compiled
from ..runtime.specialised import specialised
from .driver import BEST, drive
from .restarts import anneal

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
                w, x, y, z = shortest_turn(
                    px - bx, py - by, pz - bz, goal[0] - bx, goal[1] - by, goal[2] - bz
                )
            else:
                w, x, y, z = shortest_turn(
                    dx, dy, dz, goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2]
                )
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


local_ccd = specialised(drive, 'local_ccd', __file__, step=step, WARM_UP=SPLIT_SWEEPS)
search_ccd = specialised(anneal, 'search_ccd', __file__, descend=local_ccd)
