# SPDX-License-Identifier: Apache-2.0
"""Copies from one array to another."""

from ..runtime.compiled import compiled


@compiled
def copy(source, target):
    """Write target (k,) from source (at least k).

    A loop, because numba compiles a slice assignment with a message for arrays that do not fit: strings and
    all, in every kernel, half a second each time.
    """
    for i in range(target.shape[0]):
        target[i] = source[i]


@compiled
def copy_column(table, k, target):
    """Write target (n,) from the first rows of column k of table (m, K)."""
    for i in range(target.shape[0]):
        target[i] = table[i, k]
