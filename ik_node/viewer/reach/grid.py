# SPDX-License-Identifier: Apache-2.0
"""Grid and Cube: cells in a plane, or in space."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.model.arm import Arm


@dataclass(frozen=True, eq=False)
class Grid:
    """size x size cells around centre (3,) [m] in the base frame; right, up (3,): unit vectors. cell [m]."""

    centre: Array
    right: Array
    up: Array
    size: int
    cell: float

    @property
    def width(self) -> float:
        """The length of a side [m]."""
        return self.size * self.cell

    @property
    def places(self) -> Array:
        """The middles (size^2, 3) [m] of the cells, row by row from the top left."""
        along = (np.arange(self.size) + 0.5) * self.cell - 0.5 * self.width
        across, down = np.meshgrid(along, -along)
        return self.centre + across.reshape(-1, 1) * self.right + down.reshape(-1, 1) * self.up

    @property
    def pose(self) -> Array:
        """T_base_image (4, 4) of viser's images, whose x is to the right and whose y is down."""
        T = np.eye(4)
        T[:3, 0], T[:3, 1], T[:3, 2] = self.right, -self.up, np.cross(self.right, -self.up)
        T[:3, 3] = self.centre
        return T


@dataclass(frozen=True, eq=False)
class Cube:
    """Cubic cells [m] whose middles are places (k, 3) [m] in the base frame."""

    places: Array
    cell: float


def whole(arm: Arm, size: int) -> Cube:
    """Return size cells along each axis, around the first joint, without those beyond the reach."""
    cell = 2.0 * arm.reach / size
    along = (np.arange(size) + 0.5) * cell - arm.reach
    places = np.stack(np.meshgrid(along, along, along, indexing='ij'), axis=-1).reshape(-1, 3)
    return Cube(arm.joints[0, 3:6] + places[np.linalg.norm(places, axis=1) <= arm.reach], cell)


def horizontal(arm: Arm, height: float, size: int) -> Grid:
    """Return the grid at a height [m] above the base that has all that the arm can reach."""
    shoulder = arm.joints[0, 3:6]
    centre = np.array([shoulder[0], shoulder[1], height])
    return Grid(centre, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), size, 2.0 * arm.reach / size)


def vertical(arm: Arm, point: Array, size: int) -> Grid:
    """Return the vertical grid through the first joint and a point (3,) [m] as wide as the reach."""
    shoulder = arm.joints[0, 3:6]
    turn = math.atan2(point[1] - shoulder[1], point[0] - shoulder[0])
    right = np.array([math.cos(turn), math.sin(turn), 0.0])
    return Grid(shoulder.copy(), right, np.array([0.0, 0.0, 1.0]), size, 2.0 * arm.reach / size)
