# SPDX-License-Identifier: Apache-2.0
"""The recent path of the tool point, as a trail of beads."""

from __future__ import annotations

import numpy as np
import trimesh
import viser

from ik_node.checks import Array
from ik_node.viewer.panel.html import Colour

BEADS = 100  # ten seconds of motion, at one extend() every 0.1 s
STILL = 1e-4  # [m] from the newest bead: each change has the whole page drawn again


class Trail:
    """BEADS beads from the newest point back, smaller and smaller; at first all lie at one point (3,).

    name: of the scene node. A tool at rest adds no bead.
    """

    def __init__(
        self, server: viser.ViserServer, name: str, point: Array, radius: float, colour: Colour
    ) -> None:
        self._points = np.tile(point, (BEADS, 1))
        bead = trimesh.creation.icosphere(subdivisions=1, radius=radius)
        self._beads = server.scene.add_batched_meshes_simple(
            name,
            bead.vertices,
            bead.faces,
            batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (BEADS, 1)),
            batched_positions=self._points,
            batched_scales=np.linspace(1.0, 0.2, BEADS),
            batched_colors=colour,
            lod='off',
            cast_shadow=False,
            receive_shadow=False,
        )

    def extend(self, point: Array) -> None:
        """Add a point (3,) in the root link's frame if the tool has moved."""
        if np.linalg.norm(point - self._points[0]) > STILL:
            self._points = np.vstack([point, self._points[:-1]])
            self._beads.batched_positions = self._points.astype(np.float32)
