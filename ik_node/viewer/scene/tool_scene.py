# SPDX-License-Identifier: Apache-2.0
"""What the scene shows of one tool: the goal as a draggable gizmo, both tool axes and the trail."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import trimesh
import viser
from viser.transforms import SE3, SO3

from ik_node.checks import Array
from ik_node.errors import LARGEST
from ik_node.model.arm import Arm, tool_at
from ik_node.viewer.panel.colours import ToolColours
from ik_node.viewer.panel.html import Colour
from ik_node.viewer.panel.inputs import Inputs
from ik_node.viewer.scene.poses import move, pose_of
from ik_node.viewer.scene.trail import Trail
from ik_node.viewer.scene.visuals import along

# Lengths in extents of the arm.
GIZMO_SCALE = 0.26
WANTED_LENGTH, WANTED_RADIUS = 0.40, 0.006  # longer and thinner, so that both show where they agree
PRESENT_LENGTH, PRESENT_RADIUS = 0.20, 0.011
BEAD_RADIUS = 0.005


class ToolScene:
    """One tool of the robot that the scene shows, until the scene is cleared.

    The gizmo starts hidden. A drag of it is kept until take_drag returns it and not overwritten.
    """

    def __init__(
        self, server: viser.ViserServer, name: str, arm: Arm, extent: float, colours: ToolColours
    ) -> None:
        """name: of the tool, empty for the only one. extent: of the arm [m]."""
        self._server, self._arm, self._extent, self._colours = server, arm, extent, colours
        self._prefix = f'/tools/{name}' if name else ''
        self._trail: Trail | None = None
        self._holders: set[int | None] = set()  # browsers whose users hold the gizmo
        self._dragged: Inputs[Array] = Inputs()
        self._late = False  # a drag arrived too late to act upon
        self._base = server.scene.add_frame(
            f'{self._prefix}/base',
            axes_length=0.16 * extent,
            axes_radius=0.005 * extent,
            origin_radius=0.008 * extent,
        )
        self._tip = server.scene.add_frame(f'{self._prefix}/tip', show_axes=False)
        self._gizmo = self._add_gizmo(GIZMO_SCALE * extent)
        # Neither arrow needs separate updates: one is fixed to the tip, one to the gizmo.
        tool = along(arm.tool_point, arm.tool_axis)
        self._add_arrow(
            f'{self._tip.name}/axis', tool, colours.present, PRESENT_LENGTH * extent, PRESENT_RADIUS * extent
        )
        self._wanted = self._add_arrow(
            f'{self._gizmo.name}/axis', tool, colours.wanted, WANTED_LENGTH * extent, WANTED_RADIUS * extent
        )
        self.place({})

    def _add_arrow(
        self, name: str, pose: Array, colour: Colour, length: float, radius: float
    ) -> viser.MeshHandle:
        """Add an arrow along z of pose, as a solid with light and shade; viser's own arrows look faded."""
        head = 5.0 * radius
        top = np.eye(4)
        top[2, 3] = length - head
        shaft = trimesh.creation.cylinder(radius, segment=np.array([[0.0, 0.0, 0.0], top[:3, 3]]))
        cone = trimesh.creation.cone(2.4 * radius, head, transform=top)
        mesh = trimesh.graph.smooth_shade(trimesh.util.concatenate([shaft, cone]), angle=0.7)
        return self._server.scene.add_mesh_simple(
            name, mesh.vertices, mesh.faces, color=colour, cast_shadow=False, **pose_of(pose)
        )

    def _add_gizmo(self, scale: float) -> viser.TransformControlsHandle:
        gizmo = self._server.scene.add_transform_controls(
            f'{self._base.name}/goal',
            scale=scale,
            line_width=3.0,
            disable_sliders=True,
            depth_test=False,
            visible=False,
        )

        @gizmo.on_update
        async def _(event: viser.TransformControlsEvent) -> None:
            # async: viser keeps start, updates and end in order, and ends the drag of a browser that leaves
            if event.phase == 'end':
                self._holders.discard(event.client_id)
                return
            self._holders.add(event.client_id)
            if event.phase == 'update':
                pose = _pose(event.target)
                if np.isfinite(pose).all():
                    self._late |= not self._dragged.add(pose)

        return gizmo

    def place(self, values: Mapping[str, float]) -> None:
        """Move the tool to joint positions by name, as Scene.place."""
        robot = self._arm.robot
        move(self._base, robot.link_pose(self._arm.base_link, values))
        self._T_root_tip = robot.link_pose(self._arm.tip_link, values)
        move(self._tip, self._T_root_tip)

    def extend_trail(self) -> None:
        """Add a bead at the tool point; call it at a constant rate."""
        point, _ = tool_at(self._arm, self._T_root_tip)
        if self._trail is None:
            self._trail = Trail(
                self._server,
                f'{self._prefix}/trail',
                point,
                BEAD_RADIUS * self._extent,
                self._colours.present,
            )
        self._trail.extend(point)

    def place_goal(self, T_base_goal: Array, with_direction: bool = True) -> bool:
        """Move the gizmo to a pose (4, 4) and return True, or False if a user holds it.

        with_direction: show the wanted axis.
        """
        if self._holders or self._dragged.waiting():
            return False
        move(self._gizmo, T_base_goal)
        self._wanted.visible = with_direction
        self._gizmo.visible = True
        return True

    def end_drags(self) -> None:
        """End all drags until they move on. A browser that loses the mouse sends no end."""
        self._holders.clear()

    def gizmo_pose(self) -> Array | None:
        """Return T_base_goal (4, 4) of the gizmo, None while it is hidden or where no goal may be."""
        pose = _pose(self._gizmo)
        point, axis = tool_at(self._arm, pose)
        within = (np.abs(point) <= LARGEST).all() and np.isfinite(axis).all()
        return pose if self._gizmo.visible and within else None

    @property
    def directed(self) -> bool:
        """Whether the wanted axis is shown."""
        return self._wanted.visible

    def take_late(self) -> bool:
        """Return whether a drag has arrived too late to act upon since the last call."""
        late, self._late = self._late, False
        return late

    def take_drag(self) -> Array | None:
        """Return T_base_goal (4, 4), the newest, if users moved the gizmo since the last call."""
        return next(reversed(self._dragged.take()), None)


def _pose(node: viser.SceneNodeHandle) -> Array:
    """Return the pose of a node (4, 4); a browser sends quaternions that are rounded."""
    turn = SO3(node.wxyz).normalize()
    return SE3.from_rotation_and_translation(turn, node.position).as_matrix().astype(np.float64)
