# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics, Jacobian and the errors of a goal."""

from math import atan2, cos, isnan, sin, sqrt

from ..arrays.layout import (
    AXIS_X,
    AXIS_Y,
    AXIS_Z,
    CHORD_TOLERANCE,
    DIRECTION,
    LATERAL,
    OFFSET_X,
    OFFSET_Y,
    OFFSET_Z,
    POSITION_TOLERANCE,
    PRISMATIC,
    RATIO,
    SHIFT,
    VARIABLE,
)
from ..runtime.compiled import compiled
from .balls import keep_in_balls


@compiled
def forward(joints, tool, q, frames):
    """Forward kinematics: write frames at q (n,). Product of exponentials, base to tip."""
    m = joints.shape[0]
    r00, r01, r02 = 1.0, 0.0, 0.0
    r10, r11, r12 = 0.0, 1.0, 0.0
    r20, r21, r22 = 0.0, 0.0, 1.0
    px, py, pz = 0.0, 0.0, 0.0
    for i in range(m):
        x, y, z = joints[i, OFFSET_X], joints[i, OFFSET_Y], joints[i, OFFSET_Z]
        px += r00 * x + r01 * y + r02 * z
        py += r10 * x + r11 * y + r12 * z
        pz += r20 * x + r21 * y + r22 * z
        x, y, z = joints[i, AXIS_X], joints[i, AXIS_Y], joints[i, AXIS_Z]
        ax = r00 * x + r01 * y + r02 * z
        ay = r10 * x + r11 * y + r12 * z
        az = r20 * x + r21 * y + r22 * z
        value = joints[i, RATIO] * q[int(joints[i, VARIABLE])] + joints[i, SHIFT]
        if joints[i, PRISMATIC] != 0.0:
            px += ax * value
            py += ay * value
            pz += az * value
        else:
            # R <- Rot(a, value) R column by column would cost more: turn on the right instead.
            s = sin(value)
            c = cos(value)
            v = 1.0 - c
            xs, ys, zs = x * s, y * s, z * s
            xv, yv, zv = x * v, y * v, z * v
            m00, m01, m02 = c + x * xv, x * yv - zs, x * zv + ys
            m10, m11, m12 = x * yv + zs, c + y * yv, y * zv - xs
            m20, m21, m22 = x * zv - ys, y * zv + xs, c + z * zv
            t0 = r00 * m00 + r01 * m10 + r02 * m20
            t1 = r00 * m01 + r01 * m11 + r02 * m21
            r02 = r00 * m02 + r01 * m12 + r02 * m22
            r00, r01 = t0, t1
            t0 = r10 * m00 + r11 * m10 + r12 * m20
            t1 = r10 * m01 + r11 * m11 + r12 * m21
            r12 = r10 * m02 + r11 * m12 + r12 * m22
            r10, r11 = t0, t1
            t0 = r20 * m00 + r21 * m10 + r22 * m20
            t1 = r20 * m01 + r21 * m11 + r22 * m21
            r22 = r20 * m02 + r21 * m12 + r22 * m22
            r20, r21 = t0, t1
        frames[i, 0], frames[i, 1], frames[i, 2] = ax, ay, az
        frames[m + i, 0], frames[m + i, 1], frames[m + i, 2] = px, py, pz
    frames[2 * m, 0] = px + r00 * tool[0] + r01 * tool[1] + r02 * tool[2]
    frames[2 * m, 1] = py + r10 * tool[0] + r11 * tool[1] + r12 * tool[2]
    frames[2 * m, 2] = pz + r20 * tool[0] + r21 * tool[1] + r22 * tool[2]
    for k in range(2):
        x, y, z = tool[3 * k + 3], tool[3 * k + 4], tool[3 * k + 5]
        frames[2 * m + 1 + k, 0] = r00 * x + r01 * y + r02 * z
        frames[2 * m + 1 + k, 1] = r10 * x + r11 * y + r12 * z
        frames[2 * m + 1 + k, 2] = r20 * x + r21 * y + r22 * z


@compiled
def jacobian(joints, frames, out):
    """Write d(tool point, tool axis)/dq into out (n, 6), a row per variable, from frames at q."""
    m = joints.shape[0]
    out[:, :] = 0.0
    px, py, pz = frames[2 * m, 0], frames[2 * m, 1], frames[2 * m, 2]
    dx, dy, dz = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
    for i in range(m):
        j = int(joints[i, VARIABLE])
        ratio = joints[i, RATIO]
        ax, ay, az = ratio * frames[i, 0], ratio * frames[i, 1], ratio * frames[i, 2]
        if joints[i, PRISMATIC] != 0.0:
            out[j, 0] += ax
            out[j, 1] += ay
            out[j, 2] += az
        else:
            x, y, z = (
                px - frames[m + i, 0],
                py - frames[m + i, 1],
                pz - frames[m + i, 2],
            )
            out[j, 0] += ay * z - az * y
            out[j, 1] += az * x - ax * z
            out[j, 2] += ax * y - ay * x
            out[j, 3] += ay * dz - az * dy
            out[j, 4] += az * dx - ax * dz
            out[j, 5] += ax * dy - ay * dx


@compiled
def angle_between(a, b):
    """Angle [rad] between two unit vectors (3,), exact near 0 and near pi (Kahan)."""
    sx, sy, sz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
    tx, ty, tz = a[0] + b[0], a[1] + b[1], a[2] + b[2]
    return 2.0 * atan2(sqrt(sx * sx + sy * sy + sz * sz), sqrt(tx * tx + ty * ty + tz * tz))


@compiled
def goal_errors(joints, frames, goal):
    """Return (position error [m], direction error [rad]; 0 if no direction is asked for)."""
    m = joints.shape[0]
    x, y, z = (
        frames[2 * m, 0] - goal[0],
        frames[2 * m, 1] - goal[1],
        frames[2 * m, 2] - goal[2],
    )
    position_error = sqrt(x * x + y * y + z * z)
    if isnan(goal[DIRECTION]):
        return position_error, 0.0
    return position_error, angle_between(frames[2 * m + 1], goal[DIRECTION:LATERAL])


@compiled
def squared_errors(joints, frames, goal):
    """Return (squared position error [m^2], squared chord between the directions)."""
    m = joints.shape[0]
    x, y, z = (
        goal[0] - frames[2 * m, 0],
        goal[1] - frames[2 * m, 1],
        goal[2] - frames[2 * m, 2],
    )
    position = x * x + y * y + z * z
    if isnan(goal[DIRECTION]):
        return position, 0.0
    x, y, z = (
        goal[DIRECTION] - frames[2 * m + 1, 0],
        goal[DIRECTION + 1] - frames[2 * m + 1, 1],
        goal[DIRECTION + 2] - frames[2 * m + 1, 2],
    )
    return position, x * x + y * y + z * z


@compiled
def met(position, direction, options):
    """Whether squared errors, as squared_errors returns them, are within both tolerances."""
    return (
        position <= options[POSITION_TOLERANCE] * options[POSITION_TOLERANCE]
        and direction <= options[CHORD_TOLERANCE] * options[CHORD_TOLERANCE]
    )


@compiled
def clip(q, limits):
    """Bring q (n,) inside the limits, those of balls too, in place."""
    for i in range(q.shape[0]):
        if q[i] < limits[0, i]:
            q[i] = limits[0, i]
        elif q[i] > limits[1, i]:
            q[i] = limits[1, i]
    if limits.shape[0] > 2:
        keep_in_balls(q, limits)
