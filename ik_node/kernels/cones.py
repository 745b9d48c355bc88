# SPDX-License-Identifier: Apache-2.0
"""Goals whose direction may lie anywhere in a cone: descents to them, and the configuration nearest to a seed."""

from __future__ import annotations

from math import inf, sin, sqrt

import numpy as np

from .arrays import DIRECTION, LATERAL, copy, largest_difference
from .chain import angle_between, error_vectors, jacobian, met, squared_errors
from .language import F1, F2, R1, R2, compiled, specialised
from .methods.driver import anneal, cost_at
from .methods.lm import FIRST_DAMPING, descend_lm, local_lm

# A goal with a cone has ten entries: those of arrays.py, and the half-angle of the cone [rad].
CONE = 9
RESOLUTION = 1e-5  # rad or m: the largest move is the least to this
BETTER = 1e-4  # rad or m: by how much nearer than the best a descent from another start has to end


@compiled
def cone_vectors(joints, frames, goal):
    """As chain.error_vectors; the second leads from the tool axis to the nearest direction in the cone.

    It is zero within the cone. With t the unit tangent at the axis a towards the goal's direction, and e the angle
    by which a is outside, the nearest direction is cos(e) a + sin(e) t.
    """
    m = joints.shape[0]
    x, y, z, u, v, w = error_vectors(joints, frames, goal)
    a, b, c = frames[2 * m + 1, 0], frames[2 * m + 1, 1], frames[2 * m + 1, 2]
    outside = angle_between(frames[2 * m + 1], goal[DIRECTION:LATERAL]) - goal[CONE]
    if outside <= 0.0:
        return x, y, z, 0.0, 0.0, 0.0
    along = u * a + v * b + w * c
    u, v, w = u - along * a, v - along * b, w - along * c
    length = sqrt(u * u + v * v + w * w)
    across = sin(outside) / length if length > 1e-12 else 0.0  # opposite to the direction all tangents are equal
    back = -2.0 * sin(0.5 * outside) * sin(0.5 * outside)  # cos(e) - 1
    return x, y, z, across * u + back * a, across * v + back * b, across * w + back * c


@compiled
def cone_equations(joints, frames, goal, weight, jac, hessian, gradient):
    """As chain.normal_equations: of the axis only the part of its motion counts that leads to the cone."""
    n = gradient.shape[0]
    jacobian(joints, frames, jac)
    ex, ey, ez, u, v, w = cone_vectors(joints, frames, goal)
    outside = sqrt(u * u + v * v + w * w)
    scale = weight / outside if outside > 0.0 else 0.0
    for i in range(n):
        a, b, c = jac[i, 0], jac[i, 1], jac[i, 2]
        d = scale * (u * jac[i, 3] + v * jac[i, 4] + w * jac[i, 5])
        jac[i, 3] = d
        gradient[i] = a * ex + b * ey + c * ez + d * weight * outside
        for j in range(i + 1):
            hessian[i, j] = a * jac[j, 0] + b * jac[j, 1] + c * jac[j, 2] + d * jac[j, 3]


squared_cone_errors = specialised(squared_errors, 'squared_cone_errors', error_vectors=cone_vectors)
descend_in_cone = specialised(
    descend_lm, 'descend_in_cone', squared_errors=squared_cone_errors, normal_equations=cone_equations
)
local_cone = specialised(local_lm, 'local_cone', descend_lm=descend_in_cone)
search_cone = specialised(
    anneal,
    'search_cone',
    descend=local_cone,
    squared_errors=squared_cone_errors,
    cost_at=specialised(cost_at, 'cone_cost_at', squared_errors=squared_cone_errors),
)


@compiled
def draw_around(limits, seed, move, narrow):
    """Write limits, those of each joint drawn in to at most move [rad or m] from seed (n,), into narrow."""
    for i in range(seed.shape[0]):
        narrow[0, i], narrow[1, i] = max(limits[0, i], seed[i] - move), min(limits[1, i], seed[i] + move)


@compiled
def nearest_in_cone(joints: R2, tool: R1, limits: R2, goal: F1, options: F1, seed: F1, starts: F2, q: F1):
    """Write into q (n,) the configuration nearest to seed (n,) that meets goal (10,), by the largest single move.

    Of those that descents from starts (k, n) find, within limits that are drawn in around the seed until none is
    left: by bisection, each from where the last one ended. Returns its move [rad or m], inf if there is none.
    """
    n = q.shape[0]
    frames, work = np.empty((2 * joints.shape[0] + 3, 3)), np.empty((3 * n + 4, max(n, 6)))
    narrow, trial = limits.copy(), np.empty(n)
    least, best = 0.0, inf
    for i in range(n):  # a seed beyond the limits
        least = max(least, max(limits[0, i] - seed[i], seed[i] - limits[1, i]))
    for k in range(starts.shape[0]):
        low, high, found = least, best - BETTER, False
        middle = high
        copy(starts[k], trial)
        while middle >= least:
            draw_around(limits, seed, middle, narrow)
            descend_in_cone(joints, tool, narrow, goal, options, FIRST_DAMPING, trial, frames, work)
            position, direction = squared_cone_errors(joints, frames, goal)
            move = largest_difference(trial, seed)
            if met(position, direction, options) and move < best:
                copy(trial, q)
                best, high, found = move, min(move, middle), True
            elif found:
                low = middle
            if not found or high - low < RESOLUTION:
                break
            middle = 0.5 * (low + high)
            copy(q, trial)
    return best
