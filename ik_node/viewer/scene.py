"""The scene: the arm, the goal as a draggable gizmo, the wanted and the present tool axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import trimesh
import viser
from viser.transforms import SE3, SO3

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.viewer.trail import Trail
from ik_node.viewer.visuals import Colour, Drawing, Shape, along

WANTED: Colour = (255, 159, 28)  # colours of the two tool axes, here and in the panel's legend
PRESENT: Colour = (38, 178, 170)
SKY, HORIZON = (214, 224, 235), (250, 251, 253)
GRID, GRID_TENTH = (170, 178, 190), (206, 211, 219)
FIELD_OF_VIEW = 0.7  # [rad] vertical; viser's own, wider one distorts the arm

# Lengths in extents of the arm. The camera leaves room for the panel beside an arm that reaches forwards.
EYE, EYE_TARGET = np.array([1.34, -1.30, 0.98]), np.array([0.24, 0.09, 0.36])
GIZMO_SCALE = 0.26
WANTED_LENGTH, WANTED_RADIUS = 0.40, 0.006  # longer and thinner, so that both show where they agree
PRESENT_LENGTH, PRESENT_RADIUS = 0.20, 0.011
BEAD_RADIUS = 0.005


class Scene:
    """The three-dimensional part of the page, the same for every browser.

    A drag of the gizmo is kept until take_drag returns it; until then it is not overwritten.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._arm: Arm | None = None
        self._trail: Trail | None = None
        self._links: dict[str, viser.FrameHandle] = {}
        self._holders: set[int | None] = set()  # browsers whose users hold the gizmo
        self._dragged: Array | None = None
        server.scene.configure_environment_map('studio', environment_intensity=0.35)
        self.clear()

    def clear(self) -> None:
        """Remove everything but the background."""
        self._arm = self._trail = None
        self._links.clear()
        self._holders.clear()
        self._dragged = None
        self._server.scene.reset()
        shades = np.linspace(SKY, HORIZON, 256)[:, None, :].repeat(2, axis=1)
        self._server.scene.set_background_image(shades.astype(np.uint8), format='png')

    def show(self, arm: Arm, drawing: Drawing) -> None:
        """Draw the robot of an arm instead of the previous one; the gizmo starts hidden."""
        self.clear()
        self._arm = arm
        self._extent = extent = drawing.extent
        self._add_grid(extent)
        self._base = self._server.scene.add_frame(
            '/base', axes_length=0.16 * extent, axes_radius=0.005 * extent, origin_radius=0.008 * extent
        )
        self._tip = self._server.scene.add_frame('/tip', show_axes=False)
        for index, shape in enumerate(drawing.shapes):
            self._add_shape(shape, index)
        self._gizmo = self._add_gizmo(GIZMO_SCALE * extent)
        # Neither arrow needs separate updates: one is fixed to the tip, one to the gizmo.
        tool = along(arm.tool_point, arm.tool_axis)
        self._add_arrow('/tip/axis', tool, PRESENT, PRESENT_LENGTH * extent, PRESENT_RADIUS * extent)
        self._wanted = self._add_arrow(
            '/base/goal/axis', tool, WANTED, WANTED_LENGTH * extent, WANTED_RADIUS * extent
        )
        self.place({})
        self._aim_cameras(extent)

    def _add_grid(self, extent: float) -> None:
        cell = float(10.0 ** np.floor(np.log10(0.5 * extent)))
        self._server.scene.add_grid(
            '/grid',
            infinite_grid=True,
            cell_size=cell,
            section_size=10.0 * cell,
            cell_color=GRID_TENTH,
            section_color=GRID,
            cell_thickness=0.7,
            fade_distance=9.0 * extent,
            fade_from='origin',
            shadow_opacity=0.22,
        )

    def _add_shape(self, shape: Shape, index: int) -> None:
        """Add one shape below its link's frame; numbers make the names, since link names may hold slashes."""
        scene = self._server.scene
        if shape.link not in self._links:
            self._links[shape.link] = scene.add_frame(f'/link{len(self._links)}', show_axes=False)
        name = f'{self._links[shape.link].name}/{index}'
        pose = _pose(shape.pose)
        if shape.mesh is None:
            colour = shape.colour
            if shape.kind == 'box':
                scene.add_box(name, colour, np.array(shape.size), **pose)
            elif shape.kind == 'cylinder':
                scene.add_cylinder(name, shape.size[0], shape.size[1], colour, **pose)
            else:
                scene.add_icosphere(name, shape.size[0], colour, **pose)
        elif shape.has_own_colours:
            scene.add_mesh_trimesh(name, shape.mesh, **pose)
        else:
            vertices, faces = shape.mesh.vertices, shape.mesh.faces
            scene.add_mesh_simple(name, vertices, faces, color=shape.colour, side='double', **pose)

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
            name, mesh.vertices, mesh.faces, color=colour, cast_shadow=False, **_pose(pose)
        )

    def _add_gizmo(self, scale: float) -> viser.TransformControlsHandle:
        gizmo = self._server.scene.add_transform_controls(
            '/base/goal', scale=scale, line_width=3.0, disable_sliders=True, depth_test=False, visible=False
        )

        @gizmo.on_update
        async def _(event: viser.TransformControlsEvent) -> None:
            # async: viser keeps start, updates and end in order, and ends the drag of a browser that leaves
            if event.phase == 'start':
                self._holders.add(event.client_id)
            elif event.phase == 'end':
                self._holders.discard(event.client_id)
            else:
                turn, position = SO3(event.target.wxyz), event.target.position
                pose = SE3.from_rotation_and_translation(turn, position).as_matrix()
                self._dragged = pose.astype(np.float64)

        return gizmo

    def _aim_cameras(self, extent: float) -> None:
        """Aim the camera of every browser, present and future, at the arm."""
        cameras: list[Any] = [client.camera for client in self._server.get_clients().values()]
        for camera in (self._server.initial_camera, *cameras):
            camera.fov, camera.near, camera.far = FIELD_OF_VIEW, 0.01 * extent, 100.0 * extent
            camera.position, camera.look_at = EYE * extent, EYE_TARGET * extent

    def place(self, values: Mapping[str, float]) -> None:
        """Move the arm to joint positions by name; joints without one are at zero, mimic joints follow."""
        if self._arm is None:
            return
        robot = self._arm.robot
        for link, frame in self._links.items():
            _move(frame, robot.link_pose(link, values))
        _move(self._base, robot.link_pose(self._arm.base_link, values))
        self._T_root_tip = robot.link_pose(self._arm.tip_link, values)
        _move(self._tip, self._T_root_tip)

    def extend_trail(self) -> None:
        """Add a bead at the tool point; call it at a constant rate."""
        if self._arm is None:
            return
        point = self._T_root_tip[:3, :3] @ self._arm.tool_point + self._T_root_tip[:3, 3]
        if self._trail is None:
            self._trail = Trail(self._server, point, BEAD_RADIUS * self._extent, PRESENT)
        self._trail.extend(point)

    def place_goal(self, T_base_goal: Array, with_direction: bool = True) -> None:
        """Move the gizmo to a pose (4, 4), unless a user holds it; with_direction: show the wanted axis."""
        if self._arm is None or self._holders or self._dragged is not None:
            return
        _move(self._gizmo, T_base_goal)
        self._wanted.visible = with_direction
        self._gizmo.visible = True

    def take_drag(self) -> Array | None:
        """Return T_base_goal (4, 4) if a user moved the gizmo since the last call."""
        dragged, self._dragged = self._dragged, None
        return dragged


def _pose(pose: Array) -> dict[str, Any]:
    return {'wxyz': SO3.from_matrix(pose[:3, :3]).wxyz, 'position': pose[:3, 3]}


def _move(node: viser.SceneNodeHandle, pose: Array) -> None:
    node.wxyz = SO3.from_matrix(pose[:3, :3]).wxyz
    node.position = pose[:3, 3]
