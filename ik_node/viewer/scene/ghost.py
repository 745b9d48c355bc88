# SPDX-License-Identifier: Apache-2.0
"""Ghost: a translucent second robot in one colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import viser

from ik_node.model.arm import Arm
from ik_node.viewer.panel.html import Colour
from ik_node.viewer.scene.ghost_meshes import ghost_meshes
from ik_node.viewer.scene.poses import move
from ik_node.viewer.scene.visuals import Drawing

OPACITY = 0.45


class Ghost:
    """The links that the joints of arms of one robot move, until the scene is cleared; hidden at first."""

    def __init__(
        self,
        server: viser.ViserServer,
        name: str,
        arms: Sequence[Arm],
        drawing: Drawing,
        colour: Colour,
        swelling: float,
    ) -> None:
        """name: of its node of the scene. swelling: factor of its size; surfaces that coincide flicker."""
        self._robot = arms[0].robot
        self._root = server.scene.add_frame(name, show_axes=False, visible=False)
        self._placed: dict[str, float] = {}
        meshes = {link: mesh for arm in arms for link, mesh in ghost_meshes(arm, drawing, swelling).items()}
        self._links = {
            link: server.scene.add_mesh_simple(
                f'{name}/{index}',
                mesh.vertices,
                mesh.faces,
                color=colour,
                opacity=OPACITY,
                cast_shadow=False,
                receive_shadow=False,
            )
            for index, (link, mesh) in enumerate(meshes.items())
        }

    def place(self, values: Mapping[str, float]) -> None:
        """Show the ghost at joint positions by name."""
        known = {name: value for name, value in values.items() if name in self._robot.joints}
        if known != self._placed:  # a ghost that stands still costs nothing
            self._placed = known
            poses = self._robot.link_poses(known)
            for link, node in self._links.items():
                move(node, poses[link])
        if not self._root.visible:
            self._root.visible = True

    def hide(self) -> None:
        """Hide the ghost."""
        if self._root.visible:
            self._root.visible = False

    def remove(self) -> None:
        """Remove the ghost from the scene."""
        self._root.remove()
