# SPDX-License-Identifier: Apache-2.0
"""WhyScene: shows how far a goal is from what the arm can reach, and the directions possible at its place."""

from __future__ import annotations

import numpy as np
import trimesh
import viser

from ik_node.checks import Array
from ik_node.viewer.panel.html import Colour
from ik_node.viewer.scene.poses import move

RED: Colour = (212, 60, 60)
POSSIBLE: Colour = (47, 158, 91)
DOTS = 24  # of the line
SAMPLES = 120  # directions that are tried, evenly spread: so many marks at most
# Lengths in extents of the arm.
DOT_RADIUS = 0.006
SPHERE_RADIUS, MARK_RADIUS = 0.16, 0.0065
HIDDEN = 1e-6  # scale


class WhyScene:
    """A dotted line with its length, and marks on a sphere about the goal; hidden at first."""

    def __init__(self, server: viser.ViserServer, extent: float) -> None:
        """extent: of the arm [m]."""
        self._extent = extent
        self._base = server.scene.add_frame('/why', show_axes=False)
        self._line = _dots(server, '/why/line', DOT_RADIUS * extent, DOTS, RED)
        self._marks = _dots(server, '/why/directions', MARK_RADIUS * extent, SAMPLES, POSSIBLE)
        self._label = server.scene.add_label('/why/distance', '', visible=False)

    def place(self, T_root_base: Array) -> None:
        """Follow the base of the arm, in whose frame the rest is."""
        move(self._base, T_root_base)

    def show_miss(self, goal: Array, reached: Array, words: str) -> None:
        """Show words, and a line from goal (3,) to the nearest point (3,) of the tool; without words hide."""
        shown = bool(words)
        if shown:
            shares = np.linspace(0.0, 1.0, DOTS)[:, None]
            self._line.batched_positions = ((1.0 - shares) * goal + shares * reached).astype(np.float32)
            self._label.text = words
            self._label.position = 0.5 * (goal + reached)
        for handle in (self._line, self._label):
            handle.visible = shown

    def show_directions(self, centre: Array, directions: Array) -> None:
        """Show directions (k, 3) on a sphere about centre (3,); k = 0: hide."""
        count = len(directions)
        if count:
            positions = np.tile(centre, (SAMPLES, 1))
            positions[:count] += SPHERE_RADIUS * self._extent * directions
            scales = np.full(SAMPLES, HIDDEN, dtype=np.float32)
            scales[:count] = 1.0
            self._marks.batched_positions = positions.astype(np.float32)
            self._marks.batched_scales = scales
        self._marks.visible = count > 0

    def remove(self) -> None:
        """Remove everything from the scene."""
        self._base.remove()


def _dots(
    server: viser.ViserServer, name: str, radius: float, count: int, colour: Colour
) -> viser.BatchedMeshHandle:
    dot = trimesh.creation.icosphere(subdivisions=1, radius=radius)
    return server.scene.add_batched_meshes_simple(
        name,
        dot.vertices,
        dot.faces,
        batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (count, 1)),
        batched_positions=np.zeros((count, 3)),
        batched_scales=np.ones(count),
        batched_colors=colour,
        lod='off',
        cast_shadow=False,
        receive_shadow=False,
        visible=False,
    )
