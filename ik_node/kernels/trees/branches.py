# SPDX-License-Identifier: Apache-2.0
"""Normal equations of branching robots: tools whose joints are on different branches do not couple them.

parents (n,): by joint the one before it on the way to the base, -1 for the first. leaves (K,): by tool its
last joint; those that move it are that and its ancestors. Parents come before their children.
"""

from math import isnan

from ..arrays.layout import DIRECTION
from ..chain.forward import jacobian
from ..runtime.compiled import compiled


@compiled
def add_normal_equations(joints, frames, goal, weight, share, parents, leaf, jac, hessian, gradient):
    """Add share times what linear.normal_equations writes to hessian (n, n), lower half, and gradient (n,).

    Only for the joints that move the tool. jac (n, 6): scratch.
    """
    m = joints.shape[0]
    jacobian(joints, frames, jac)
    ex, ey, ez = (
        goal[0] - frames[2 * m, 0],
        goal[1] - frames[2 * m, 1],
        goal[2] - frames[2 * m, 2],
    )
    if isnan(goal[DIRECTION]):
        w, fx, fy, fz = 0.0, 0.0, 0.0, 0.0
    else:
        w = weight * weight
        fx = w * (goal[DIRECTION] - frames[2 * m + 1, 0])
        fy = w * (goal[DIRECTION + 1] - frames[2 * m + 1, 1])
        fz = w * (goal[DIRECTION + 2] - frames[2 * m + 1, 2])
    i = leaf
    while i >= 0:
        a, b, c = share * jac[i, 0], share * jac[i, 1], share * jac[i, 2]
        d, e, f = share * jac[i, 3], share * jac[i, 4], share * jac[i, 5]
        gradient[i] += a * ex + b * ey + c * ez + d * fx + e * fy + f * fz
        j = i
        while j >= 0:
            hessian[i, j] += (
                a * jac[j, 0]
                + b * jac[j, 1]
                + c * jac[j, 2]
                + w * (d * jac[j, 3] + e * jac[j, 4] + f * jac[j, 5])
            )
            j = parents[j]
        i = parents[i]


@compiled
def branch_step(hessian, gradient, free, damping, parents, factor, step):
    """Solve (H + damping I) step = gradient by L^T D L from the tips to the base, frozen joints left out.

    That order keeps the zeros between branches (Featherstone, Rigid Body Dynamics Algorithms, section 6.5).
    factor (n, n) holds D on its diagonal and L below it.
    """
    n = gradient.shape[0]
    for i in range(n):
        step[i] = free[i] * gradient[i]
        j = parents[i]
        while j >= 0:
            factor[i, j] = free[i] * free[j] * hessian[i, j]
            j = parents[j]
        factor[i, i] = hessian[i, i] + damping if free[i] != 0.0 else 1.0
    for k in range(n - 1, -1, -1):
        inverse = 1.0 / factor[k, k] if factor[k, k] > 1e-300 else 1e300
        i = parents[k]
        while i >= 0:
            share = factor[k, i] * inverse
            j = i
            while j >= 0:
                factor[i, j] -= share * factor[k, j]
                j = parents[j]
            step[i] -= share * step[k]
            i = parents[i]
        step[k] *= inverse
        i = parents[k]
        while i >= 0:
            factor[k, i] *= inverse
            i = parents[i]
    for k in range(n):
        i = parents[k]
        while i >= 0:
            step[k] -= factor[k, i] * step[i]
            i = parents[i]
