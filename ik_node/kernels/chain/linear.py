# SPDX-License-Identifier: Apache-2.0
"""Normal equations of a goal and damped steps within limits."""

from math import isnan

from ..arrays.layout import DIRECTION
from ..runtime.compiled import compiled
from .forward import jacobian

LEAST_DAMPING = 1e-9  # share of the largest diagonal entry, so that no matrix is singular


@compiled
def normal_equations(joints, frames, goal, weight, jac, hessian, gradient):
    """Gauss-Newton normal equations of |position error|^2 + weight^2 |direction chord|^2.

    Writes hessian (n, n), lower half, and gradient (n,), the right-hand side.
    weight [m]: metres of position error that count as much as one radian.
    """
    m = joints.shape[0]
    n = gradient.shape[0]
    jacobian(joints, frames, jac)
    ex, ey, ez = (
        goal[0] - frames[2 * m, 0],
        goal[1] - frames[2 * m, 1],
        goal[2] - frames[2 * m, 2],
    )
    if isnan(goal[DIRECTION]):
        w, fx, fy, fz = 0.0, 0.0, 0.0, 0.0
    else:
        w = weight
        fx = w * (goal[DIRECTION] - frames[2 * m + 1, 0])
        fy = w * (goal[DIRECTION + 1] - frames[2 * m + 1, 1])
        fz = w * (goal[DIRECTION + 2] - frames[2 * m + 1, 2])
    for i in range(n):
        a, b, c = jac[i, 0], jac[i, 1], jac[i, 2]
        d, e, f = w * jac[i, 3], w * jac[i, 4], w * jac[i, 5]
        jac[i, 3], jac[i, 4], jac[i, 5] = d, e, f
        gradient[i] = a * ex + b * ey + c * ez + d * fx + e * fy + f * fz
        for j in range(i + 1):
            hessian[i, j] = (
                a * jac[j, 0] + b * jac[j, 1] + c * jac[j, 2] + d * jac[j, 3] + e * jac[j, 4] + f * jac[j, 5]
            )


@compiled
def damped_step(hessian, gradient, free, damping, factor, step):
    """Solve (H + damping I) step = gradient by L D L^T, frozen joints left out.

    factor (n, n) holds L D below the diagonal, L^T above it and the inverse of D on it, where a 0 takes
    a frozen joint's row and column out of everything.
    """
    n = gradient.shape[0]
    for i in range(n):
        total, pivot = gradient[i], hessian[i, i] + damping
        for j in range(i):
            s = hessian[i, j]
            for k in range(j):
                s -= factor[i, k] * factor[k, j]
            factor[i, j] = s
            factor[j, i] = s * factor[j, j]
            total -= factor[j, i] * step[j]
            pivot -= s * factor[j, i]
        factor[i, i] = free[i] / pivot if pivot > 1e-300 else 1e300 * free[i]
        step[i] = total
    for i in range(n - 1, -1, -1):
        s = step[i] * factor[i, i]
        for k in range(i + 1, n):
            s -= factor[i, k] * step[k]
        step[i] = free[i] * s
