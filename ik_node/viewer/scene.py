# SPDX-License-Identifier: Apache-2.0
"""The scene: robots, ghosts, goals, trails, the ground and the cameras."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import trimesh
import viser
from numpy.typing import NDArray
from viser.transforms import SE3, SO3

from ik_node.checks import Array
from ik_node.errors import LARGEST
from ik_node.model.arm import Arm, tool_at
from ik_node.model.meshes import BadMeshError, MeshError, load_mesh
from ik_node.model.plausibility import doubtful_mesh
from ik_node.model.robot import Robot
from ik_node.steady import steady

from .events import Events
from .panel import Colour, ToolColours


def pose_of(pose: Array) -> dict[str, Any]:
    """Return the arguments that put a new scene node at a pose (4, 4)."""
    return {'wxyz': SO3.from_matrix(pose[:3, :3]).wxyz, 'position': pose[:3, 3]}


def move(node: viser.SceneNodeHandle, pose: Array) -> None:
    """Put a scene node at a pose (4, 4) in its parent."""
    node.wxyz = SO3.from_matrix(pose[:3, :3]).wxyz
    node.position = pose[:3, 3]


PARALLEL = 1e-12


def hits(origin: Array, direction: Array, triangles: Array) -> bool:
    """Whether a ray from origin (3,) along direction (3,) hits any of triangles (k, 3, 3), from either side.

    Möller and Trumbore, Fast, minimum storage ray-triangle intersection, 1997.
    """
    one, other = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    normal = np.cross(direction, other)
    scale = np.einsum('ij,ij->i', one, normal)
    facing = np.abs(scale) > PARALLEL * np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    scale = np.where(facing, scale, 1.0)
    gap = origin - triangles[:, 0]
    across = np.cross(gap, one)
    u = np.einsum('ij,ij->i', gap, normal) / scale
    v = across @ direction / scale
    way = np.einsum('ij,ij->i', other, across) / scale
    return bool((facing & (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (way > 0.0)).any())


PLAIN: Colour = (176, 184, 196)  # shapes without a material
STICK: Colour = (196, 203, 213)
JOINT: Colour = (62, 74, 94)
STICK_RADIUS = 0.016  # in extents of the robot
MARK = {'revolute': 4.2, 'continuous': 4.2, 'prismatic': 8.0}  # length of a joint's mark, in stick radii
SMOOTH_ANGLE = math.radians(30)  # edges sharper than this stay sharp
MIN_EXTENT = 1e-3  # [m], for an arm without any size
LARGE_MESH = 100_000  # faces; larger meshes are shown as they are, smoothing them takes seconds
SIZES = {'box': 3, 'cylinder': 2, 'sphere': 1, 'mesh': 0}  # of a kind of shape


@dataclass(frozen=True, eq=False)
class Shape:
    """One thing to draw, fixed in a link.

    kind: box (size = x, y, z), cylinder (radius, length along z), sphere (radius) or mesh, in metres.
    pose: (4, 4) in the link.
    """

    link: str
    kind: str
    pose: Array
    size: tuple[float, ...] = ()
    mesh: trimesh.Trimesh | None = None
    colour: Colour = PLAIN
    has_own_colours: bool = False  # use the colours of the mesh


@dataclass(frozen=True, eq=False)
class Drawing:
    """All shapes of a robot, the reach of its arm [m], and sentences on the shapes that cannot be shown."""

    shapes: tuple[Shape, ...]
    extent: float
    warnings: tuple[str, ...] = field(default=())


def draw(text: str, robot: Robot, tip_link: str, mesh_path: str = '') -> Drawing:
    """Return the shapes of the robot that was read from the URDF text, with an arm that ends in tip_link.

    mesh_path: as for find_mesh. Links without any of their meshes, and all links of a robot without
    shapes, get sticks from joint to joint.
    """
    import yourdfpy  # takes a second or two: the page is already served meanwhile

    shapes: list[Shape] = []
    bare: list[str] = []
    warnings: list[str] = []
    missing: list[str] = []
    try:
        options = dict.fromkeys(('build_scene_graph', 'load_meshes', 'load_collision_meshes'), False)
        model = yourdfpy.URDF.load(io.BytesIO(text.encode()), **options).robot
        links, materials = model.links, {material.name: material for material in model.materials}
    except Exception as error:  # an error in a visual must not reject an arm that read_urdf accepts
        links, materials = [], {}
        warnings.append(f'the shapes cannot be read: {error}')
    for link in links:
        drawn = len(shapes)
        for visual in link.visuals:
            try:
                shapes.extend(map(_checked, _shapes(link.name, visual, materials, mesh_path)))
            except BadMeshError as error:
                warnings.append(f'link "{link.name}": {error}')
            except MeshError as error:
                missing.append(str(error))
            except Exception as error:  # nor must an unreadable mesh file
                warnings.append(f'link "{link.name}": {error}')
        if link.visuals and len(shapes) == drawn:
            bare.append(link.name)
    large = {shape.link: doubt for shape in shapes if (doubt := _doubt(shape))}
    if large:
        link, doubt = next(iter(large.items()))
        more = f' and {len(large) - 1} more' if len(large) > 1 else ''
        warnings.append(f'mesh of link "{link}"{more}: {doubt}')
    if missing:
        more = f' and {len(missing) - 1} more' if len(missing) > 1 else ''
        warnings.append(
            f'{missing[0]}{more}; ik_demo and the launch file look for meshes in the folder of the '
            'description and in those above it, ik_viewer in that of its parameter mesh_path'
        )
    if not shapes:
        bare = list(robot.links)
    extent = extent_of(robot, tip_link)
    for name in bare:
        shapes.extend(_sticks(robot, name, STICK_RADIUS * extent))
    return Drawing(tuple(shapes), extent, tuple(warnings))


def along(position: NDArray[np.float64], direction: NDArray[np.float64]) -> Array:
    """Return the pose (4, 4) at position whose z axis points along direction."""
    pose = trimesh.geometry.align_vectors([0.0, 0.0, 1.0], direction)
    pose[:3, 3] = position
    return np.asarray(pose, dtype=np.float64)


def _shapes(link: str, visual: Any, materials: dict[str, Any], mesh_path: str) -> Iterator[Shape]:
    """Yield the shapes of one <visual>; none for a geometry that URDF does not define."""
    pose = np.eye(4) if visual.origin is None else np.asarray(visual.origin, dtype=np.float64)
    colour = _colour(visual.material, materials)
    geometry = visual.geometry
    if geometry is None:
        return
    if geometry.box is not None:
        size = tuple(float(side) for side in geometry.box.size)
        yield Shape(link, 'box', pose, size, colour=colour or PLAIN)
    elif geometry.cylinder is not None:
        size = (float(geometry.cylinder.radius), float(geometry.cylinder.length))
        yield Shape(link, 'cylinder', pose, size, colour=colour or PLAIN)
    elif geometry.sphere is not None:
        yield Shape(link, 'sphere', pose, (float(geometry.sphere.radius),), colour=colour or PLAIN)
    elif geometry.mesh is not None:
        scale = 1.0 if geometry.mesh.scale is None else geometry.mesh.scale
        for mesh in _meshes(load_mesh(geometry.mesh.filename, mesh_path), scale):
            own = colour is None and _has_colours(mesh)
            yield Shape(link, 'mesh', pose, mesh=mesh, colour=colour or PLAIN, has_own_colours=own)


def _doubt(shape: Shape) -> str:
    return '' if shape.mesh is None else doubtful_mesh(float(shape.mesh.extents.max()))


def _checked(shape: Shape) -> Shape:
    if len(shape.size) != SIZES[shape.kind] or not all(0.0 <= size < math.inf for size in shape.size):
        raise ValueError(f'a {shape.kind} cannot have the size {shape.size}')
    if not np.isfinite(shape.pose).all():
        raise ValueError(f'the pose of a {shape.kind} must be finite')
    return shape


def _meshes(scene: trimesh.Scene, scale: float | Sequence[float]) -> Iterator[trimesh.Trimesh]:
    for mesh in scene.dump():
        if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces):
            mesh.apply_scale(scale)
            if len(mesh.faces) <= LARGE_MESH and not _has_colours(mesh):
                mesh = trimesh.graph.smooth_shade(mesh, angle=SMOOTH_ANGLE)
            yield mesh


def _has_colours(mesh: trimesh.Trimesh) -> bool:
    return mesh.visual is not None and mesh.visual.defined


def _colour(material: Any, materials: dict[str, Any]) -> Colour | None:
    if material is None:
        return None
    if material.color is None:
        material = materials.get(material.name)
    if material is None or material.color is None or len(material.color.rgba) < 3:
        return None
    red, green, blue = (round(255 * min(max(float(part), 0.0), 1.0)) for part in material.color.rgba[:3])
    return red, green, blue


def _sticks(robot: Robot, link: str, radius: float) -> Iterator[Shape]:
    """Yield sticks from the link's origin to its joints, and a mark along the axis of each movable one."""
    for joint in robot.joints.values():
        if joint.parent != link:
            continue
        offset = joint.origin[:3, 3]
        length = float(np.linalg.norm(offset))
        if length > 0.5 * radius:
            yield Shape(link, 'cylinder', along(0.5 * offset, offset), (radius, length), colour=STICK)
        if joint.movable:
            axis = joint.origin[:3, :3] @ joint.axis
            size = (1.7 * radius, MARK[joint.type] * radius)
            yield Shape(link, 'cylinder', along(joint.origin[:3, 3], axis), size, colour=JOINT)


def extent_of(robot: Robot, tip_link: str) -> float:
    """Return the size of the arm [m]: the sum of its offsets, and prismatic travel up to that sum."""
    chain = robot.chain(tip_link)
    offsets = sum(float(np.linalg.norm(joint.origin[:3, 3])) for joint in chain)
    travel = sum(max(abs(joint.lower), abs(joint.upper)) for joint in chain if joint.type == 'prismatic')
    return max(offsets + min(travel, offsets), MIN_EXTENT)


def ghost_meshes(arm: Arm, drawing: Drawing, swelling: float) -> dict[str, trimesh.Trimesh]:
    """Return the links that the joints of an arm move, in their own frames, larger by a factor."""
    found = {}
    for link in sorted(_moved(arm)):
        parts = [_mesh(shape, swelling) for shape in drawing.shapes if shape.link == link]
        if parts:
            found[link] = trimesh.util.concatenate(parts)
    return found  # type: ignore[return-value]


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
        swelling: float = 1.04,
    ) -> None:
        """name: of its scene node. swelling: factor of its size, because surfaces that coincide flicker."""
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


BEADS = 100  # ten seconds of motion, at one extend() every 0.1 s
STILL = 1e-4  # [m] from the newest bead: each change makes browsers draw the whole page again


def add_dots(
    server: viser.ViserServer, name: str, radius: float, colour: Colour, positions: Array, scales: Array
) -> viser.BatchedMeshHandle:
    """Add small balls at positions (k, 3) with scales (k,) of their radius as one node of the scene."""
    dot = trimesh.creation.icosphere(subdivisions=1, radius=radius)
    return server.scene.add_batched_meshes_simple(
        name,
        dot.vertices,
        dot.faces,
        batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (len(positions), 1)),
        batched_positions=positions,
        batched_scales=scales,
        batched_colors=colour,
        lod='off',
        cast_shadow=False,
        receive_shadow=False,
    )


class Trail:
    """BEADS beads from the newest point back, smaller and smaller; at first all lie at one point (3,).

    name: of the scene node. A tool at rest adds no bead.
    """

    def __init__(self, server: viser.ViserServer, name: str, point: Array, radius: float, colour: Colour) -> None:
        self._points = np.tile(point, (BEADS, 1))
        scales = np.linspace(1.0, 0.2, BEADS)
        self._beads = add_dots(server, name, radius, colour, self._points, scales)

    def extend(self, point: Array) -> None:
        """Add a point (3,) in the root link's frame if the tool has moved."""
        if np.linalg.norm(point - self._points[0]) > STILL:
            self._points = np.vstack([point, self._points[:-1]])
            self._beads.batched_positions = self._points.astype(np.float32)

    def remove(self) -> None:
        """Remove the beads from the scene."""
        self._beads.remove()


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
        self,
        server: viser.ViserServer,
        events: Events,
        name: str,
        arm: Arm,
        extent: float,
        colours: ToolColours,
    ) -> None:
        """name: of the tool, empty for the only one. extent: of the arm [m]."""
        self._server, self._events = server, events
        self._arm, self._extent, self._colours = arm, extent, colours
        self._prefix = f'/tools/{name}' if name else ''
        self._trail: Trail | None = None
        self._holders: set[int | None] = set()  # browsers whose users hold the gizmo
        self._dragged: Array | None = None  # T_base_goal (4, 4) of the newest drag
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

    def _add_arrow(self, name: str, pose: Array, colour: Colour, length: float, radius: float) -> viser.MeshHandle:
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
            pose = _pose(event.target)
            if event.phase == 'update' and np.isfinite(pose).all():
                self._late |= not self._events.post_input(event, partial(self.drag, pose))

        return gizmo

    def drag(self, pose: Array) -> None:
        """Process a pose (4, 4) as if a user had dragged the gizmo there."""
        self._dragged = pose

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

    def clear_trail(self) -> None:
        """Remove the trail; the next motion begins another."""
        if self._trail is not None:
            self._trail.remove()
            self._trail = None

    def place_goal(self, T_base_goal: Array, with_direction: bool = True) -> bool:
        """Move the gizmo to a pose (4, 4) and return True, or False if a user holds it.

        with_direction: show the wanted axis.
        """
        if self._holders or self._dragged is not None or self._events.pending(self._gizmo):
            return False
        move(self._gizmo, T_base_goal)
        self._wanted.visible = with_direction
        self._gizmo.visible = True
        return True

    def end_drags(self) -> None:
        """End all drags until the gizmo moves again: a browser that loses the mouse sends no end."""
        self._holders.clear()

    @property
    def pose(self) -> Array:
        """The pose (4, 4) of the gizmo in the base link's frame, shown or not."""
        return _pose(self._gizmo)

    def gizmo_pose(self) -> Array | None:
        """Return T_base_goal (4, 4) of the gizmo, None while it is hidden or where no goal may be."""
        pose = self.pose
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
        dragged, self._dragged = self._dragged, None
        return dragged


def _pose(node: viser.SceneNodeHandle) -> Array:
    """Return the pose of a node (4, 4); a browser sends quaternions that are rounded."""
    turn = SO3(node.wxyz).normalize()
    return SE3.from_rotation_and_translation(turn, node.position).as_matrix().astype(np.float64)


SKY, HORIZON = (214, 224, 235), (250, 251, 253)
GRID, GRID_TENTH = (170, 178, 190), (206, 211, 219)
AMBIENT = 1.0  # intensity of the light from everywhere, without an environment
FIELD_OF_VIEW = 0.7  # [rad] vertical; viser's own, wider one distorts the arm

# Lengths in extents of the arm. The camera leaves room for the panel beside an arm that reaches forwards.
EYE, EYE_TARGET = np.array([1.55, -1.50, 1.15]), np.array([0.24, 0.09, 0.46])
LAYOUT = 10.0  # [s] in which a page is laid out
NARROW_TARGET = np.array([0.2, 0.0, -0.15])  # on a phone, whose panel is below the arm


class Scene:
    """The robot in the three-dimensional part of the page, the same for every browser."""

    def __init__(self, server: viser.ViserServer, shadows: bool = True) -> None:
        """shadows: and reflections of an environment, which are slow without a graphics processor."""
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
        """Add one shape below its link's frame. Names are numbers, because link names may have slashes."""
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
        """Aim a new narrow page, such as that of a phone, at the arm; other pages begin there.

        A busy browser tells its aspect before it has laid the page out.
        """
        latest = steady() + LAYOUT

        def once() -> None:
            nonlocal latest
            if client.camera.aspect < 1.0 and steady() < latest:
                latest = -math.inf
                self.aim(client)

        async def updated(_: viser.CameraHandle) -> None:
            once()

        once()
        client.camera.on_update(updated)

    def aim(self, client: viser.ClientHandle) -> None:
        """Aim the camera of a browser at the arm."""
        self._aim(client.camera, min(client.camera.aspect, 1.0))

    def _aim(self, camera: Any, width: float = 1.0) -> None:
        """width: of the page over its height, at most 1; a narrow page has its panel below the arm."""
        extent, target = self._extent, EYE_TARGET if width == 1.0 else NARROW_TARGET
        camera.fov, camera.near, camera.far = FIELD_OF_VIEW, 0.01 * extent, 100.0 * extent
        camera.position = (target + (EYE - EYE_TARGET) / width**0.9) * extent
        camera.look_at = target * extent

    def place(self, values: Mapping[str, float]) -> None:
        """Move the links to joint positions by name; joints without one are at zero, mimic joints follow."""
        if self._robot is None:
            return
        for link, frame in self._links.items():
            move(frame, self._robot.link_pose(link, values))
