# SPDX-License-Identifier: Apache-2.0
"""What a search on a grid cannot have missed."""

from __future__ import annotations

import numpy as np

from ik_node.checks import Array
from ik_node.kernels.arrays.layout import DIRECTION
from ik_node.placement.search import PlacementSearch
from ik_node.solver.workspace_bounds import radial_bounds

PART = 1_000_000  # goals at a time


def excluded_share(search: PlacementSearch, grid: Array, steps: Array, unmet: int) -> float:
    """Return the share of the region where every placement leaves more than `unmet` goals unmet.

    The cell of each placement of grid (N, 6) is as large as its distances, steps (6,). Within a cell a goal
    moves in the frame of the base by no more than half the cell's diagonal and half its turns times the
    distance of the goal. Where it stays outside the spheres that bound the workspace, it cannot be met.
    """
    shells = radial_bounds(search.arm)
    shift, turn = float(np.linalg.norm(steps[:3])) / 2.0, float(steps[3:].sum()) / 2.0
    excluded, rows = 0, max(1, PART // search.count)
    for first in range(0, len(grid), rows):
        places = search.goals(grid[first : first + rows])[:, :, :DIRECTION]
        moved = shift + turn * np.linalg.norm(places, axis=2)
        outside = np.zeros(moved.shape, dtype=bool)
        for shell in shells:
            distances = np.linalg.norm(places - shell[:3], axis=2)
            outside |= np.maximum(distances - shell[4], shell[3] - distances) > moved
        excluded += int((outside.sum(axis=1) > unmet).sum())
    return excluded / len(grid)
