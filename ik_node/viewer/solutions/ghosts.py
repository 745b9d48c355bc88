# SPDX-License-Identifier: Apache-2.0
"""Ghosts: translucent copies of an arm, one for each solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import viser
from viser.transforms import SO3

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.viewer.panel.html import Colour
from ik_node.viewer.panel.inputs import Inputs, by_user
from ik_node.viewer.scene.ghost_meshes import ghost_meshes
from ik_node.viewer.scene.rays import hits
from ik_node.viewer.scene.visuals import Drawing

SWELLING = 1.02  # larger than the arm, so that surfaces that coincide do not flicker


class Look(NamedTuple):
    """How one ghost looks."""

    q: Array
    colour: Colour
    opacity: float


class Click(NamedTuple):
    """A click on a link of the ghost with that number. ray (2, 3): its origin and direction, in root."""

    number: int
    link: str
    ray: Array


class Ghosts:
    """Any number of ghosts of an arm, until the scene is cleared; clicks on them are kept.

    The links of all ghosts are one node of the scene each, so that a change takes few messages.
    """

    def __init__(self, server: viser.ViserServer, arm: Arm, drawing: Drawing) -> None:
        self._arm = arm
        self._clicked: Inputs[Click] = Inputs()
        self._placed: list[dict[str, Array]] = []  # T_root_link of each ghost that is shown
        self._meshes = ghost_meshes(arm, drawing, SWELLING)
        self._root = server.scene.add_frame('/solutions', show_axes=False, visible=False)
        self._links: dict[str, viser.BatchedMeshHandle] = {}
        for link, mesh in self._meshes.items():
            handle = server.scene.add_batched_meshes_simple(
                f'/solutions/{len(self._links)}',
                mesh.vertices,
                mesh.faces,
                np.array([[1.0, 0.0, 0.0, 0.0]]),
                np.zeros((1, 3)),
                batched_colors=np.zeros((1, 3), dtype=np.uint8),
                batched_opacities=np.ones(1),
                opacity=1.0,
                lod='off',
                cast_shadow=False,
                receive_shadow=False,
            )
            handle.on_click(self._on_click)
            self._links[link] = handle

    @by_user
    def _on_click(self, event: viser.SceneNodePointerEvent[Any]) -> bool:
        if event.instance_index is None:
            return True
        link = next(link for link, handle in self._links.items() if handle is event.target)
        ray = np.array([event.ray_origin, event.ray_direction])
        return self._clicked.add(Click(event.instance_index, link, ray))

    def take_clicks(self) -> list[int | None]:
        """Return which ghosts users clicked since the last call, None for one that is no longer there.

        A browser may show older ghosts than this does.
        """
        return [click.number if self._hit(click) else None for click in self._clicked.take()]

    def _hit(self, click: Click) -> bool:
        """Whether the ray of a click hits the link of that ghost."""
        if click.number >= len(self._placed):
            return False
        pose = self._placed[click.number][click.link]
        origin, direction = (click.ray[0] - pose[:3, 3]) @ pose[:3, :3], click.ray[1] @ pose[:3, :3]
        return hits(origin, direction, np.asarray(self._meshes[click.link].triangles))

    def show(self, looks: Sequence[Look], values: Mapping[str, float]) -> None:
        """Show these ghosts; other joints of the robot are at values by name."""
        names = self._arm.joint_names
        placed = self._placed = [
            dict(self._arm.robot.link_poses({**values, **dict(zip(names, look.q, strict=True))}))
            for look in looks
        ]
        self._root.visible = bool(looks)
        if not looks:
            return
        colours = np.array([look.colour for look in looks], dtype=np.uint8)
        opacities = np.array([look.opacity for look in looks], dtype=np.float32)
        for link, handle in self._links.items():
            poses = np.array([poses[link] for poses in placed], dtype=np.float32)
            handle.batched_wxyzs = SO3.from_matrix(poses[:, :3, :3]).wxyz
            handle.batched_positions = poses[:, :3, 3]  # their number is that of the ghosts
            handle.batched_colors, handle.batched_opacities = colours, opacities

    def remove(self) -> None:
        """Remove the ghosts from the scene."""
        self._root.remove()
