# SPDX-License-Identifier: Apache-2.0
"""Distances between configurations."""

from math import floor

from ..runtime.compiled import compiled
from .copies import copy

DISTINCT = 1e-3  # rad or m: solutions that differ by less in every joint are one


@compiled
def add_distinct(period, found, count, q):
    """Append q (n,) to found (k, n) unless it is there already, whole periods apart or not.

    Returns the new count; a full table keeps what it has.
    """
    for k in range(count):
        if largest_move(period, found[k], q) <= DISTINCT:
            return count
    return append(found, count, q)


@compiled
def append(found, count, q):
    """Append q (n,) to the first count rows of found (k, n) unless it is full; return the new count."""
    if count < found.shape[0]:
        copy(q, found[count])
        count += 1
    return count


@compiled
def largest_move(period, a, b):
    """Largest single joint move between configurations a and b (n,), whole periods left out."""
    most = 0.0
    for i in range(a.shape[0]):
        gap = b[i] - a[i]
        if period[i] > 0.0:
            gap -= period[i] * floor(gap / period[i] + 0.5)
        most = max(most, abs(gap))
    return most


@compiled
def largest_difference(a, b):
    """Largest difference between two configurations (n,)."""
    gap = 0.0
    for i in range(a.shape[0]):
        gap = max(gap, abs(a[i] - b[i]))
    return gap
