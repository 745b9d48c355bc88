# SPDX-License-Identifier: Apache-2.0
"""The scene: the robot, the ground and the cameras."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import viser

from ik_node.model.robot import Robot
from ik_node.viewer.scene.poses import move, pose_of
from ik_node.viewer.scene.visuals import Drawing, Shape

SKY, HORIZON = (214, 224, 235), (250, 251, 253)
GRID, GRID_TENTH = (170, 178, 190), (206, 211, 219)
AMBIENT = 1.0  # light from everywhere, where no environment sheds it
FIELD_OF_VIEW = 0.7  # [rad] vertical; viser's own, wider one distorts the arm

# Lengths in extents of the arm. The camera leaves room for the panel beside an arm that reaches forwards.
EYE, EYE_TARGET = np.array([1.34, -1.30, 0.98]), np.array([0.24, 0.09, 0.36])
NARROW_TARGET = np.array([0.1, 0.0, 0.0])  # on a phone, whose panel is below the arm


class Scene:
    """The robot in the three-dimensional part of the page, the same for every browser."""

    def __init__(self, server: viser.ViserServer, shadows: bool = True) -> None:
        """shadows: and reflections of an environment, which take a page without a graphics processor long."""
        self._server, self._shadows = server, shadows
        self._robot: Robot | None = None
        self._links: dict[str, viser.FrameHandle] = {}
        self._extent = 1.0  # [m] of the robot
        server.scene.configure_environment_map('studio' if shadows else None, environment_intensity=0.35)
        server.scene.configure_default_lights(cast_shadow=shadows)
        self.clear()

    def clear(self) -> None:
        """Remove everything but the background."""
        self._robot = None
        self._links.clear()
        self._server.scene.reset()
        shades = np.linspace(SKY, HORIZON, 256)[:, None, :].repeat(2, axis=1)
        self._server.scene.set_background_image(shades.astype(np.uint8), format='png')
        if not self._shadows:
            self._server.scene.add_light_ambient('/light', intensity=AMBIENT)

    def show(self, robot: Robot, drawing: Drawing, aim: bool = True) -> None:
        """Draw a robot instead of the previous one; aim: let all cameras, present and future, look at it."""
        self.clear()
        self._robot, self._extent = robot, drawing.extent
        self._add_grid(drawing.extent)
        for index, shape in enumerate(drawing.shapes):
            self._add_shape(shape, index)
        self.place({})
        if aim:
            self._aim(self._server.initial_camera)
            for client in self._server.get_clients().values():
                self.aim(client)

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
        pose = pose_of(shape.pose)
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

    def greet(self, client: viser.ClientHandle) -> None:
        """Aim a new narrow page, such as that of a phone, at the arm; other pages begin there."""
        if client.camera.aspect < 1.0:
            self.aim(client)

    def aim(self, client: viser.ClientHandle) -> None:
        """Aim the camera of a browser at the arm."""
        self._aim(client.camera, min(client.camera.aspect, 1.0))

    def _aim(self, camera: Any, width: float = 1.0) -> None:
        """width: of the page over its height, at most 1; a narrow page has its panel below the arm."""
        extent, target = self._extent, EYE_TARGET if width == 1.0 else NARROW_TARGET
        camera.fov, camera.near, camera.far = FIELD_OF_VIEW, 0.01 * extent, 100.0 * extent
        camera.position = (target + (EYE - EYE_TARGET) / width**0.5) * extent
        camera.look_at = target * extent

    def place(self, values: Mapping[str, float]) -> None:
        """Move the links to joint positions by name; joints without one are at zero, mimic joints follow."""
        if self._robot is None:
            return
        for link, frame in self._links.items():
            move(frame, self._robot.link_pose(link, values))
