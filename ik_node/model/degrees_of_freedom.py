# SPDX-License-Identifier: Apache-2.0
"""Effective degrees of freedom: the rank of the Jacobian of (tool point, tool axis), and its meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array

RANK_TOLERANCE = 1e-6  # singular values below this share of the largest count as zero


def random_jacobians(
    jacobian: Callable[[Array], Array], prismatic: NDArray[np.bool_], reach: float
) -> list[Array]:
    """Return Jacobians (6, n) at random configurations, lengths as shares of the reach [m]."""
    rng = np.random.default_rng(0)
    scale = np.array([1 / reach, 1 / reach, 1 / reach, 1.0, 1.0, 1.0])[:, None]
    span = np.where(prismatic, reach, 1.0)
    configurations = rng.uniform(-np.pi, np.pi, (16, prismatic.size)) * span
    return [jacobian(q) * scale * span for q in configurations]


def generic_rank(jacobians: Sequence[Array]) -> int:
    """Return the largest rank of these Jacobians."""
    ranks = []
    for jacobian in jacobians:
        values = np.linalg.svd(jacobian, compute_uv=False)
        ranks.append(int((values > RANK_TOLERANCE * values[0]).sum()))
    return max(ranks)


def median_condition(jacobians: Sequence[Array], reach: float) -> float:
    """Return the median condition number of Jacobians (6, n) of rank 5, positions as shares of reach [m]."""
    scale = np.repeat([1.0 / reach, 1.0], 3)[:, None]
    values = [np.linalg.svd(scale * jacobian, compute_uv=False) for jacobian in jacobians]
    return float(1.0 / np.median([value[4] / value[0] for value in values]))


def describe_dof(effective: int, practical: int, condition: float) -> str:
    """Return effective DoF as text, with their meaning for goals."""
    count = f'{effective} effective DoF'
    if effective < 4:
        return f'{count}: few goals with a direction can be met; use position-only goals with this arm'
    if practical < effective:
        count = f'{count}, in practice 4 (condition number {condition:.0f})'
    if practical == 4:
        return (
            f'{count}: the position constrains the direction of the tool axis, '
            'so most directions can only be approximated'
        )
    return (
        f'{count}: position and direction of the tool axis can be varied independently, '
        'but not every direction can be reached at every position'
    )


def least_singular_values(jacobians: Array, reach: float, rank: int) -> Array:
    """Return the rank-th largest singular values (N,) of Jacobians (N, 6, n), lengths in reaches of the arm.

    reach [m]. rank: the effective degrees of freedom, so that 0 means a singular configuration.
    """
    scale = np.repeat([max(reach, 1e-3), 1.0], 3)[:, None]
    values: Array = np.linalg.svd(jacobians / scale, compute_uv=False)[:, rank - 1]
    return values
