# SPDX-License-Identifier: Apache-2.0
"""Ghost: a translucent second arm in one colour."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import trimesh
import viser

from ik_node.model.arm import Arm
from ik_node.viewer.panel.colours import GHOSTS
from ik_node.viewer.scene.poses import move
from ik_node.viewer.scene.visuals import Drawing, Shape

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
        for link in sorted(_moved(arm)):
            parts = [_mesh(shape, swelling) for shape in drawing.shapes if shape.link == link]
            if not parts:
                continue
            whole: trimesh.Trimesh = trimesh.util.concatenate(parts)  # type: ignore[assignment]
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


def _moved(arm: Arm) -> set[str]:
    """Return the links behind the first joint of an arm."""
    chain = arm.robot.chain(arm.tip_link, arm.base_link)
    first = next((joint.child for joint in chain if joint.type != 'fixed'), None)
    found = {first} if first else set()
    while more := {j.child for j in arm.robot.joints.values() if j.parent in found} - found:
        found |= more
    return found


def _mesh(shape: Shape, swelling: float) -> trimesh.Trimesh:
    """Return a shape as a mesh in its link's frame, larger by a factor about its middle."""
    if shape.mesh is not None:
        mesh = trimesh.Trimesh(shape.mesh.vertices, shape.mesh.faces, process=False)
    elif shape.kind == 'box':
        mesh = trimesh.creation.box(shape.size)
    elif shape.kind == 'cylinder':
        mesh = trimesh.creation.cylinder(shape.size[0], shape.size[1], sections=24)
    else:
        mesh = trimesh.creation.icosphere(subdivisions=2, radius=shape.size[0])
    middle = mesh.bounds.mean(axis=0)
    mesh.apply_transform(trimesh.transformations.scale_matrix(swelling, middle))
    mesh.apply_transform(np.asarray(shape.pose))
    return trimesh.graph.smooth_shade(mesh, angle=0.5) if len(mesh.faces) < 20_000 else mesh
