# SPDX-License-Identifier: Apache-2.0
"""ToolPath: straight lines of the tool from pose to pose, with stopped or blended corners."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.solver.goal import pack_goals

METRES_PER_RADIAN = 0.1  # what a turn counts beside a motion of the tool point
SHORTEST = 1e-6  # [m] a line that is shorter is left out
MOST_POINTS, MOST_BLENDED = 100, 20  # a path with more takes too long to plan
OPPOSITE = math.pi - 1e-3  # [rad] a turn by more has no definite axis


@dataclass(frozen=True, eq=False)
class Lines:
    """k straight lines, end to end: position (3,) and direction (3,) at their start, None if it is free.

    sizes (k,): how long each one counts [m]; a turn counts METRES_PER_RADIAN. moves (k, 3): of the tool
    point. angles (k,), axes (k, 3): of the turn.
    """

    position: Array
    direction: Array | None
    sizes: Array
    moves: Array
    angles: Array
    axes: Array


class Stretch:
    """A smooth part of a tool path, s from 0 to 1: one line, or several with blended corners.

    The speed along one line passes to the next one smoothly while s is within the blend of a corner, so that
    the path has three continuous derivatives and leaves the lines by no more than the blend.
    """

    def __init__(self, lines: Lines, blend: float) -> None:
        self._lines = lines
        ends = np.cumsum(lines.sizes)
        self.size = float(ends[-1])
        self._corners = ends[:-1]
        self._blends = np.minimum(blend, 0.5 * np.minimum(lines.sizes[:-1], lines.sizes[1:]))
        self.length = float(np.linalg.norm(lines.moves, axis=1).sum())
        corners, blends = self._corners, self._blends
        # Where the path changes its shape.
        self.marks = np.unique(np.concatenate([corners - blends, corners, corners + blends])) / self.size

    def _done(self, s: Array) -> tuple[Array, Array]:
        """Return how far along each line the path is (k, p), as a share of it, and the derivatives by s."""
        x, sizes = s * self.size, self._lines.sizes
        done = np.ones(
            (len(sizes) + 1, len(x))
        )  # of the transitions into each line: speed that has passed on
        speed = np.ones_like(done)
        done[0], speed[0] = x, 1.0
        for k, (corner, blend) in enumerate(zip(self._corners, self._blends, strict=True)):
            y = np.clip((x - corner + blend) / (2.0 * blend), 0.0, 1.0)
            # The integral of the smooth step y^4 (35 - 84 y + 70 y^2 - 20 y^3).
            done[k + 1] = 2.0 * blend * y**5 * (7.0 - 14.0 * y + 10.0 * y**2 - 2.5 * y**3) + np.maximum(
                x - corner - blend, 0.0
            )
            speed[k + 1] = y**4 * (35.0 - 84.0 * y + 70.0 * y**2 - 20.0 * y**3)
        done[-1] = speed[-1] = 0.0
        share = (done[:-1] - done[1:]) / sizes[:, None]
        return share, (speed[:-1] - speed[1:]) * (self.size / sizes[:, None])

    def goals(self, s: Array) -> Array:
        """Return goals (p, 9) for the kernels at s (p,)."""
        lines, (share, _) = self._lines, self._done(s)
        points = lines.position + share.T @ lines.moves
        if lines.direction is None:
            return pack_goals(points, None)
        axis = np.repeat(lines.direction[None], len(s), axis=0)
        for k, (w, angle) in enumerate(zip(lines.axes, lines.angles, strict=True)):
            turn = (share[k] * angle)[:, None]
            along = (axis @ w)[:, None] * (1.0 - np.cos(turn)) * w
            axis = np.cos(turn) * axis + np.sin(turn) * np.cross(w, axis) + along
        return pack_goals(points, axis / np.linalg.norm(axis, axis=1)[:, None])

    def speed(self, s: Array) -> Array:
        """Return how fast the tool point moves (p,) [m per unit of s] at s (p,)."""
        return np.linalg.norm(self._done(s)[1].T @ self._lines.moves, axis=1)

    def travelled(self, s: float) -> float:
        """Return the distance along the lines [m] from the start to s."""
        share = self._done(np.array([s]))[0][:, 0]
        return float(share @ np.linalg.norm(self._lines.moves, axis=1))


@dataclass(frozen=True, eq=False)
class ToolPath:
    """Points (k, 3) [m] in the base link's frame; the tool moves to one after another in straight lines.

    directions (k, 3), unit: the direction turns evenly along each line, about the axis normal to both ends.
    None: it is free. Raises InputError for values that are not finite or not of these shapes.
    """

    points: Array
    directions: Array | None = None

    def __post_init__(self) -> None:
        goals = pack_goals(self.points, self.directions)
        if not 0 < len(goals) <= MOST_POINTS:
            raise InputError(f'a path must have from 1 to {MOST_POINTS} poses, got {len(goals)}')
        object.__setattr__(self, 'points', goals[:, :3])
        if self.directions is not None:
            object.__setattr__(self, 'directions', goals[:, 3:6])

    def stretches(self, position: Array, direction: Array, blend: float | None) -> list[Stretch]:
        """Return the smooth parts of the path from position (3,) and direction (3,); none if it is there.

        blend [m]: how near a corner the path may leave the lines; None: it stops at each corner. Raises
        InputError for a direction opposite to the one before.
        """
        points = np.vstack([position, self.points])
        rows = None if self.directions is None else np.vstack([direction, self.directions])
        kept = [0]
        for k in range(1, len(points)):
            turn = 0.0 if rows is None else float(np.linalg.norm(rows[k] - rows[kept[-1]]))
            if max(float(np.linalg.norm(points[k] - points[kept[-1]])), METRES_PER_RADIAN * turn) > SHORTEST:
                kept.append(k)
        if blend is not None and len(kept) > MOST_BLENDED + 1:
            raise InputError(
                f'a path with blended corners may have {MOST_BLENDED} poses at most, got {len(kept) - 1}'
            )
        moves = np.diff(points[kept], axis=0)
        axes, angles = (np.zeros_like(moves), np.zeros(len(moves))) if rows is None else _turns(rows[kept])
        sizes = np.maximum(np.linalg.norm(moves, axis=1), METRES_PER_RADIAN * angles)
        ends = [0, *([] if blend is not None else range(1, len(moves))), len(moves)]
        return [
            Stretch(
                Lines(
                    points[kept[first]],
                    None if rows is None else rows[kept[first]],
                    sizes[first:last],
                    moves[first:last],
                    angles[first:last],
                    axes[first:last],
                ),
                blend or 0.0,
            )
            for first, last in pairwise(ends)
            if last > first
        ]


def _turns(rows: Array) -> tuple[Array, Array]:
    """Return axes (k, 3) and angles (k,) of the turns between unit vectors (k + 1, 3)."""
    before, after = rows[:-1], rows[1:]
    normal = np.cross(before, after)
    length = np.linalg.norm(normal, axis=1)
    angles = np.arctan2(length, (before * after).sum(axis=1))
    opposite: NDArray[np.int64] = np.flatnonzero(angles > OPPOSITE)
    if len(opposite):
        raise InputError(
            f'line {opposite[0] + 1} turns the tool to the opposite direction: '
            'add a pose between them to define the direction of the turn'
        )
    axes = normal / np.maximum(length, 1e-300)[:, None]
    return axes, angles
