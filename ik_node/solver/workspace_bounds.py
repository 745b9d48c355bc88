# SPDX-License-Identifier: Apache-2.0
"""Lower and upper bounds of the distance of the tool point, valid for all joint positions of any arm."""

from __future__ import annotations

import itertools
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.kernels.arrays import AXIS, OFFSET, PRISMATIC, RATIO, SHIFT, VARIABLE
from ik_node.model.arm import Arm, frozen

SLIDING_ROUNDS = 40  # of the minimisation that finds good points on the axes
SAFETY = 1e-9  # share of the outer radius that bounds are wider by, for rounding

_known: WeakKeyDictionary[Arm, Array] = WeakKeyDictionary()  # a solver needs them at three places


def radial_bounds(arm: Arm) -> Array:
    """Bound the distance of the tool point from points on the first revolute axis, within prismatic limits.

    Returns rows (k, 5) [m]: centre (3), and the least and the largest distance of the tool point from it for
    any joint positions. No rows if a prismatic joint has no limits.

    Points fixed on neighbouring axes keep their distance for all joint positions, so the sum of these
    distances is an upper bound, and the largest minus all others a lower one, for any choice of the
    points: the joint origins, and points chosen so that the sum is small.
    """
    if arm not in _known:
        _known[arm] = _bounds(arm)
    return _known[arm]


def _bounds(arm: Arm) -> Array:
    hinges = np.flatnonzero(arm.joints[:, PRISMATIC] == 0)
    axes, points = arm.joints[:, AXIS], np.cumsum(arm.joints[:, OFFSET], axis=0)
    travels = arm.limits[:2, arm.joints[arm.joints[:, PRISMATIC] != 0, VARIABLE].astype(int)]
    if not np.isfinite(travels).all():
        return frozen(np.empty((0, 5)))
    stops = np.vstack([points[hinges], points[-1] + arm.tool[:3]])
    middles, corners = _slides(arm, hinges)
    slid = _slide_points(axes[hinges], stops, middles)
    return frozen(np.array([_shell(choice, middles, corners) for choice in (stops, slid)]))


def _shell(stops: Array, middles: Array, corners: list[Array]) -> list[float]:
    """Return the row of stops (k, 3) on the axes; middles, corners: as from _slides."""
    pieces = np.diff(stops, axis=0) + middles[1:]
    travel = [float(np.linalg.norm(ends, axis=1).max()) for ends in corners]
    least = np.maximum(np.linalg.norm(pieces, axis=1) - travel[1:], 0.0)
    most = np.array(
        [np.linalg.norm(piece + ends, axis=1).max() for piece, ends in zip(pieces, corners[1:], strict=True)]
    )
    inner = float((least - (most.sum() - most)).max(initial=0.0)) - travel[0]
    outer = float(most.sum()) + travel[0]
    return [*(stops[0] + middles[0]), inner - SAFETY * outer, outer + SAFETY * outer]


def _slides(arm: Arm, hinges: NDArray[np.intp]) -> tuple[Array, list[Array]]:
    """Return middle (k, 3) and corners (2^s, 3) of the prismatic joints' travel before each stop."""
    middles, corners = np.zeros((len(hinges) + 1, 3)), []
    for stop, (first, last) in enumerate(itertools.pairwise([-1, *hinges, len(arm.joints)])):
        halves = []
        for row in arm.joints[first + 1 : last]:
            ends = row[RATIO] * arm.limits[:2, int(row[VARIABLE])] + row[SHIFT]
            middles[stop] += row[AXIS] * ends.sum() / 2
            halves.append(row[AXIS] * abs(ends[1] - ends[0]) / 2)
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(halves))))
        corners.append(signs @ np.array(halves) if halves else np.zeros((1, 3)))
    return middles, corners


def _slide_points(axes: Array, stops: Array, middles: Array) -> Array:
    """Move all stops (k + 1, 3) but the last along their axes (k, 3) so that the path through them is short.

    Least squares, reweighted by the inverse lengths.
    """
    count = len(axes)
    # Piece i is from stop i to stop i + 1: its change by the displacement t_j of stop j.
    change = np.zeros((count, 3, count))
    for i in range(count):
        change[i, :, i] = -axes[i]
        if i + 1 < count:
            change[i, :, i + 1] = axes[i + 1]
    pieces = np.diff(stops, axis=0) + middles[1:]
    slides = np.zeros(count)
    for _ in range(SLIDING_ROUNDS if count else 0):
        lengths = np.linalg.norm(pieces + change @ slides, axis=1)
        weights = np.sqrt(1.0 / np.maximum(lengths, 1e-6))[:, None]
        matrix = (change * weights[:, :, None]).reshape(-1, count)
        slides = np.linalg.lstsq(matrix, -(pieces * weights).ravel(), rcond=None)[0]
    moved = stops.copy()
    moved[:-1] += slides[:, None] * axes
    return moved
