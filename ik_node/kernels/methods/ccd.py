"""Cyclic coordinate descent with hinges, limits and a direction step."""

from math import atan2, cos, inf, isnan, sin

from ..chain import clip, forward, jacobian, squared_errors
from ..compiled import compiled
from ..layout import (
    CHORD_TOLERANCE,
    DIRECTION,
    ITERATIONS,
    POSITION_TOLERANCE,
    PRISMATIC,
    RATIO,
    STALL,
    VARIABLE,
    WEIGHT,
)
from ..rotation import align_about_axis, best_turn, clamp_turn, rotate_quaternion
from .stall import AIM, keeps_improving

SPLIT_SWEEPS = 30  # of coordinate descent, in which each joint serves either the point or the axis


@compiled
def descend_ccd(joints, tool, limits, goal, options, q, frames, work):
    """Quaternion cyclic coordinate descent from q (n,), in place; frames are left at the returned q.

    From tip to base, each hinge takes the quaternion that turns the tool onto the goal, projected onto
    its axis and held within its limits; each slide takes the projection of the way. At first the last
    n - 3 joints turn the tool axis onto the direction and the others bring the tool point to the
    position; after SPLIT_SWEEPS every joint serves both, which never makes things worse (Wang and
    Chen 1991). A joint that drives several (mimics) takes a Newton step. The best configuration on
    the way is returned. Returns the number of sweeps.
    """
    n, m = q.shape[0], joints.shape[0]
    jac, best, drives = work[:n, :6], work[n, :n], work[n + 1, :n]
    position_goal = min(options[POSITION_TOLERANCE], AIM) ** 2
    direction_goal = min(options[CHORD_TOLERANCE], AIM) ** 2
    weight = options[WEIGHT]
    square = 0.0 if isnan(goal[DIRECTION]) else weight * weight
    for i in range(n):
        drives[i] = 0.0
    for i in range(m):
        drives[int(joints[i, VARIABLE])] += 1.0
    clip(q, limits)
    for i in range(n):
        best[i] = q[i]
    least, mark = inf, inf
    sweep = 0
    while True:
        forward(joints, tool, q, frames)
        position, direction = squared_errors(joints, frames, goal)
        cost = position + weight * weight * direction
        if cost < least:
            least = cost
            for i in range(n):
                best[i] = q[i]
        met = position <= position_goal and direction <= direction_goal
        go_on, mark = keeps_improving(least, sweep, options[STALL], mark)
        if met or (not go_on and sweep > SPLIT_SWEEPS) or sweep >= options[ITERATIONS]:
            break
        sweep += 1
        if sweep == SPLIT_SWEEPS:
            mark = inf
            for i in range(n):
                q[i] = best[i]
            forward(joints, tool, q, frames)
        px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
        dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
        for i in range(m - 1, -1, -1):
            j = int(joints[i, VARIABLE])
            ax, ay, az = frames[i, 0], frames[i, 1], frames[i, 2]
            bx, by, bz = frames[m + i, 0], frames[m + i, 1], frames[m + i, 2]
            gx, gy, gz = goal[0] - px, goal[1] - py, goal[2] - pz
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
                    q[j] = min(max(q[j] + slope / curve, limits[0, j]), limits[1, j])
                forward(joints, tool, q, frames)
                px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
                dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
                continue
            ratio = joints[i, RATIO]
            if ratio == 0.0:
                continue
            if joints[i, PRISMATIC] != 0.0:
                way = (ax * gx + ay * gy + az * gz) / ratio
                value = min(max(q[j] + way, limits[0, j]), limits[1, j])
                way = ratio * (value - q[j])
                q[j] = value
                px, py, pz = px + way * ax, py + way * ay, pz + way * az
                continue
            sine, cosine = 0.0, 0.0
            splits = sweep < SPLIT_SWEEPS and square > 0.0
            if not splits or i < m - (n - 3):
                sine, cosine = align_about_axis(
                    ax,
                    ay,
                    az,
                    px - bx,
                    py - by,
                    pz - bz,
                    goal[0] - bx,
                    goal[1] - by,
                    goal[2] - bz,
                )
            if square > 0.0 and (not splits or i >= m - (n - 3)):
                more, less = align_about_axis(
                    ax, ay, az, dx, dy, dz, goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2]
                )
                sine, cosine = sine + square * more, cosine + square * less
            w, s = best_turn(sine, cosine, 1e-13 * weight * weight)
            angle = 2.0 * atan2(s, w)
            value = clamp_turn(q[j] + angle / ratio, limits[0, j], limits[1, j])
            if value != q[j] + angle / ratio:
                angle = ratio * (value - q[j])
                w, s = cos(0.5 * angle), sin(0.5 * angle)
            q[j] = value
            x, y, z = rotate_quaternion(w, s, ax, ay, az, px - bx, py - by, pz - bz)
            px, py, pz = bx + x, by + y, bz + z
            dx, dy, dz = rotate_quaternion(w, s, ax, ay, az, dx, dy, dz)
    if not cost <= least:
        for i in range(n):
            q[i] = best[i]
        forward(joints, tool, q, frames)
    return sweep
