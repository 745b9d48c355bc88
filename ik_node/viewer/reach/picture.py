# SPDX-License-Identifier: Apache-2.0
"""MapPicture: a map of the workspace in the scene, as an image of a plane or as points in space."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import viser

from ik_node.checks import Array
from ik_node.viewer.reach.grid import Cube, Grid
from ik_node.viewer.reach.heat import colours, image
from ik_node.viewer.scene.poses import move

DOT = 0.1  # size of a point, in cells: so small that the arm is seen among them


class Map(NamedTuple):
    """The shares (k,) of directions that are possible in cells, NaN out of reach."""

    cells: Grid | Cube
    shares: Array


class MapPicture:
    """What is drawn; nothing at first."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._base: viser.FrameHandle | None = None
        self._drawn: viser.ImageHandle | viser.PointCloudHandle | None = None

    def draw(self, found: Map, least: float, T_root_base: Array) -> None:
        """Draw a map in place of the last one; least: share below which a point in space is left out."""
        if self._base is None:
            self._base = self._server.scene.add_frame('/map', show_axes=False)
        move(self._base, T_root_base)
        if isinstance(found.cells, Grid):
            self._draw_plane(found.cells, found.shares)
        else:
            self._draw_points(found.cells, found.shares, least)

    def _draw_plane(self, grid: Grid, shares: Array) -> None:
        pixels = image(shares, grid.size)
        if isinstance(self._drawn, viser.ImageHandle):
            self._drawn.image = pixels
        else:
            self._clear()
            self._drawn = self._server.scene.add_image(
                '/map/plane',
                pixels,
                grid.width,
                grid.width,
                format='png',
                cast_shadow=False,
                receive_shadow=False,
            )
        move(self._drawn, grid.pose)

    def _draw_points(self, cube: Cube, shares: Array, least: float) -> None:
        shown = shares >= least  # not NaN
        self._clear()
        self._drawn = self._server.scene.add_point_cloud(
            '/map/points',
            cube.places[shown].astype(np.float32),
            colours(shares[shown]),
            point_size=DOT * cube.cell,
            point_shape='circle',
        )

    def _clear(self) -> None:
        if self._drawn is not None:
            self._drawn.remove()
        self._drawn = None

    def remove(self) -> None:
        """Remove what is drawn."""
        if self._base is not None:
            self._base.remove()
        self.forget()

    def forget(self) -> None:
        """The scene was cleared."""
        self._base = self._drawn = None
