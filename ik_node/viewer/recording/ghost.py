# SPDX-License-Identifier: Apache-2.0
"""ReplayGhost: translucent copies of all arms, where they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import viser

from ik_node.model.arm import Arm
from ik_node.viewer.panel.html import Colour
from ik_node.viewer.scene.ghost_meshes import ghost_meshes
from ik_node.viewer.scene.poses import move
from ik_node.viewer.scene.visuals import Drawing

COLOUR: Colour = (37, 99, 235)
OPACITY = 0.45
SWELLING = 1.04  # larger than the arm, so that surfaces that coincide do not flicker


class ReplayGhost:
    """The links that the joints of any arm move, beside the arms, until the scene is cleared."""

    def __init__(self, server: viser.ViserServer, arms: Sequence[Arm], drawing: Drawing) -> None:
        self._robot = arms[0].robot
        self._root = server.scene.add_frame('/replay', show_axes=False)
        meshes = {link: mesh for arm in arms for link, mesh in ghost_meshes(arm, drawing, SWELLING).items()}
        self._links = {
            link: server.scene.add_mesh_simple(
                f'/replay/{index}',
                mesh.vertices,
                mesh.faces,
                color=COLOUR,
                opacity=OPACITY,
                cast_shadow=False,
                receive_shadow=False,
            )
            for index, (link, mesh) in enumerate(meshes.items())
        }

    def place(self, values: Mapping[str, float]) -> bool:
        """Show the ghost at joint positions by name; return whether the robot has any of these joints."""
        known = {name: value for name, value in values.items() if name in self._robot.joints}
        for link, node in self._links.items():
            move(node, self._robot.link_pose(link, known))
        return bool(known)

    def remove(self) -> None:
        """Remove the ghost from the scene."""
        self._root.remove()
