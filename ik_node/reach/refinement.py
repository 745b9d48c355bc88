# SPDX-License-Identifier: Apache-2.0
"""Refinement: which positions of a lattice to survey after coarser ones, and values of the others."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array

Rows = NDArray[np.int64]

COARSEST = 4  # positions from one to the next along each axis at first


def coarse_rows(shape: tuple[int, ...], stride: int) -> Rows:
    """Return the rows of a lattice at every stride-th index of each axis, and at the last."""
    axes = [np.union1d(np.arange(0, size, stride), size - 1) for size in shape]
    rows: Rows = np.ravel_multi_index(np.meshgrid(*axes, indexing='ij'), shape).reshape(-1)
    return rows


def refined(values: Array, shape: tuple[int, ...], stride: int, allowed: Array) -> tuple[Rows, Array, Rows]:
    """Return the rows (m,) that halving the stride adds, their values (v, m) and those that need a survey.

    values (v, N): of the lattice, at the coarser positions so far. Each new position lies between up to eight
    of them. Where these are all out of reach (all NaN), it is taken to be, too. Where each of the values
    changes among them by no more than allowed (v,), it is interpolated linearly; elsewhere it needs a survey.
    """
    rows = np.setdiff1d(coarse_rows(shape, stride // 2), coarse_rows(shape, stride))
    below, above, weights = [], [], []
    for index, size in zip(np.unravel_index(rows, shape), shape, strict=True):
        low = np.where(index == size - 1, index, index - index % stride)
        high = np.where(index == low, low, np.minimum(low + stride, size - 1))
        below.append(low)
        above.append(high)
        weights.append((index - low) / np.maximum(high - low, 1))
    least = np.full((len(values), len(rows)), np.inf)
    most = -least
    found = np.zeros_like(least)
    missing = np.zeros(least.shape, np.int64)
    for corner in itertools.product((False, True), repeat=len(shape)):
        ends = [high if up else low for up, low, high in zip(corner, below, above, strict=True)]
        parts = [weight if up else 1.0 - weight for up, weight in zip(corner, weights, strict=True)]
        there = values[:, np.ravel_multi_index(ends, shape)]
        missing += np.isnan(there)
        least, most = np.fmin(least, there), np.fmax(most, there)
        share = np.prod(parts, axis=0)
        counts = share > 0.0  # the others may be infinite
        found[:, counts] += share[counts] * there[:, counts]
    some = (missing > 0) & (missing < 2 ** len(shape))
    with np.errstate(invalid='ignore'):
        changes = some | (most - least > allowed[:, None])
    return rows, found, rows[changes.any(axis=0)]
