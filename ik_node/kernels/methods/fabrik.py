# SPDX-License-Identifier: Apache-2.0
"""Forward and backward reaching (FABRIK) with hinges, limits and a direction step."""

from math import atan2, isnan, sqrt

from ..arrays import (
    DIRECTION,
    PRISMATIC,
    RATIO,
    VARIABLE,
    WEIGHT,
    align_about_axis,
    best_turn,
    clamp_turn,
    rotate_quaternion,
    shortest_turn,
)
from ..chain import forward
from ..language import compiled, specialised
from .driver import anneal, drive


@compiled
def step(sweep, joints, tool, limits, goal, options, q, frames, work):
    """One backward and one forward pass (Aristidou and Lasenby 2011).

    Backward: the tool point is put on the goal with the last link turned so that the tool axis has its
    direction, and each joint point is pulled towards the one behind it, at its distance. Forward, from the
    base: each revolute joint turns, within its limits, so that the joint points and the tool after it come
    closest to where the backward pass has put them; each prismatic joint moves as far along its axis.
    """
    m = joints.shape[0]
    if not reach_back(joints, goal, frames, work):
        return False
    square = 0.0 if isnan(goal[DIRECTION]) else options[WEIGHT] * options[WEIGHT]
    for i in range(m):
        j, ratio = int(joints[i, VARIABLE]), joints[i, RATIO]
        if ratio == 0.0:
            continue
        ax, ay, az = frames[i, 0], frames[i, 1], frames[i, 2]
        bx, by, bz = frames[m + i, 0], frames[m + i, 1], frames[m + i, 2]
        sine, cosine, slide = 0.0, 0.0, 0.0
        for k in range(i + 1, m + 1):
            x, y, z = frames[m + k, 0], frames[m + k, 1], frames[m + k, 2]
            u, v, w = goal[0], goal[1], goal[2]
            if k < m:
                u, v, w = (
                    work[k // 2, 3 * (k % 2)],
                    work[k // 2, 3 * (k % 2) + 1],
                    work[k // 2, 3 * (k % 2) + 2],
                )
            more, less = align_about_axis(ax, ay, az, x - bx, y - by, z - bz, u - bx, v - by, w - bz)
            sine, cosine = sine + more, cosine + less
            slide += (ax * (u - x) + ay * (v - y) + az * (w - z)) / (m - i)
        if joints[i, PRISMATIC] != 0.0:
            q[j] = min(max(q[j] + slide / ratio, limits[0, j]), limits[1, j])
        else:
            if square > 0.0:
                more, less = align_about_axis(
                    ax, ay, az, frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2],
                    goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2],
                )  # fmt: skip
                sine, cosine = sine + square * more, cosine + square * less
            w, s = best_turn(sine, cosine, 1e-13 * options[WEIGHT] * options[WEIGHT])
            q[j] = clamp_turn(q[j] + 2.0 * atan2(s, w) / ratio, limits[0, j], limits[1, j])
        forward(joints, tool, q, frames)
    return True


@compiled
def reach_back(joints, goal, frames, work):
    """Write the wanted joint points, two to a row of work; False if they do not fit."""
    m = joints.shape[0]
    if m > 2 * (work.shape[0] - 2):
        return False
    x, y, z = goal[0], goal[1], goal[2]
    for i in range(m - 1, -1, -1):
        # The link from joint i to what is behind it, the tool point at last.
        lx = frames[m + i, 0] - frames[m + i + 1, 0]
        ly = frames[m + i, 1] - frames[m + i + 1, 1]
        lz = frames[m + i, 2] - frames[m + i + 1, 2]
        if i == m - 1 and not isnan(goal[DIRECTION]):
            w, u, v, s = shortest_turn(
                frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2],
                goal[DIRECTION], goal[DIRECTION + 1], goal[DIRECTION + 2],
            )  # fmt: skip
            lx, ly, lz = rotate_quaternion(w, 1.0, u, v, s, lx, ly, lz)
            x, y, z = x + lx, y + ly, z + lz
        else:
            u, v, w = frames[m + i, 0] - x, frames[m + i, 1] - y, frames[m + i, 2] - z
            distance = sqrt(u * u + v * v + w * w)
            share = sqrt(lx * lx + ly * ly + lz * lz) / distance if distance > 0.0 else 0.0
            x, y, z = x + share * u, y + share * v, z + share * w
        column = 3 * (i % 2)
        work[i // 2, column], work[i // 2, column + 1], work[i // 2, column + 2] = x, y, z
    return True


local_fabrik = specialised(drive, 'local_fabrik', step=step)
search_fabrik = specialised(anneal, 'search_fabrik', descend=local_fabrik)
