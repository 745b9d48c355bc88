# SPDX-License-Identifier: Apache-2.0
"""TeachScene: the points of a program in the scene, with their names and the lines between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import viser

from ik_node.checks import Array
from ik_node.viewer.panel.html import Colour

SIZE = 0.012  # radius of a point, as a share of the extent of the robot
SELECTED = 1.6  # times as large
THICKNESS = 3.0  # pixels
PLAIN: Colour = (28, 132, 128)
WRONG: Colour = (212, 60, 60)


class Mark(NamedTuple):
    """A point at position (3,) [m] in the base link's frame. straight: the tool comes in a line."""

    name: str
    position: Array
    straight: bool
    selected: bool
    wrong: bool


class TeachScene:
    """The points under a frame of their own, until the scene is cleared."""

    def __init__(self, server: viser.ViserServer, extent: float) -> None:
        """extent [m]: of the robot."""
        self._scene, self._radius = server.scene, SIZE * extent
        self._root: viser.FrameHandle | None = None

    def show(self, marks: Sequence[Mark], T_root_base: Array) -> None:
        """Show these points instead of the last ones."""
        if self._root is not None:
            self._root.remove()
        self._root = None
        if not marks:
            return
        self._root = self._scene.add_frame('/teach', show_axes=False)
        places = [T_root_base[:3, :3] @ mark.position + T_root_base[:3, 3] for mark in marks]
        for k, (mark, place) in enumerate(zip(marks, places, strict=True)):
            radius = self._radius * (SELECTED if mark.selected else 1.0)
            colour = WRONG if mark.wrong else PLAIN
            self._scene.add_icosphere(f'/teach/{k}', radius, colour, subdivisions=2, position=place)
            self._scene.add_label(f'/teach/{k}/name', mark.name, position=(0.0, 0.0, 2.0 * radius))
        lines = [(places[k - 1], places[k]) for k, mark in enumerate(marks) if mark.straight and k]
        if lines:
            self._scene.add_line_segments(
                '/teach/lines', np.array(lines), PLAIN, thickness=THICKNESS, thickness_units='screen'
            )
