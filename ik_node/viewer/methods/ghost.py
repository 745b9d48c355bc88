# SPDX-License-Identifier: Apache-2.0
"""Ghost: a translucent second arm in one colour."""

from __future__ import annotations

from collections.abc import Mapping

import viser

from ik_node.model.arm import Arm
from ik_node.viewer.panel.colours import GHOSTS
from ik_node.viewer.scene.ghost_meshes import ghost_meshes
from ik_node.viewer.scene.poses import move
from ik_node.viewer.scene.visuals import Drawing

OPACITY = 0.45
SWELLING = 0.03  # larger than the arm, the next ghost twice, so that surfaces that coincide do not flicker


class Ghost:
    """The links that the joints of an arm move, beside the arm itself; hidden at first."""

    def __init__(self, server: viser.ViserServer, arm: Arm, drawing: Drawing, index: int) -> None:
        """index: of the colour in GHOSTS."""
        name, swelling = f'/ghost{index}', 1.0 + SWELLING * (index + 1)
        self._robot = arm.robot
        self._root = server.scene.add_frame(name, show_axes=False, visible=False)
        self._links: dict[str, viser.MeshHandle] = {}
        for link, whole in ghost_meshes(arm, drawing, swelling).items():
            self._links[link] = server.scene.add_mesh_simple(
                f'{name}/{len(self._links)}',
                whole.vertices,
                whole.faces,
                color=GHOSTS[index],
                opacity=OPACITY,
                cast_shadow=False,
                receive_shadow=False,
            )

    def place(self, values: Mapping[str, float]) -> None:
        """Show the ghost at joint positions by name."""
        for link, node in self._links.items():
            move(node, self._robot.link_pose(link, values))
        if not self._root.visible:
            self._root.visible = True

    def hide(self) -> None:
        """Hide the ghost."""
        if self._root.visible:
            self._root.visible = False

    def remove(self) -> None:
        """Remove the ghost from the scene."""
        self._root.remove()
