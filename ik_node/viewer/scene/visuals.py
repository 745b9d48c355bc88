# SPDX-License-Identifier: Apache-2.0
"""URDF text -> shapes to draw: primitives and meshes, sticks if these are missing."""

from __future__ import annotations

import io
import math
import pathlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import trimesh
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.model.meshes import BadMeshError, MeshError, check_mesh, find_mesh
from ik_node.model.plausibility import doubtful_mesh
from ik_node.model.robot import Robot
from ik_node.viewer.panel.html import Colour

PLAIN: Colour = (176, 184, 196)  # shapes without a material
STICK: Colour = (196, 203, 213)
JOINT: Colour = (62, 74, 94)
STICK_RADIUS = 0.016  # in extents of the robot
MARK = {'revolute': 4.2, 'continuous': 4.2, 'prismatic': 8.0}  # length of a joint's mark, in stick radii
SMOOTH_ANGLE = math.radians(30)  # edges sharper than this stay sharp
MINIMAL_EXTENT = 1e-3  # [m], for an arm of no size at all
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
        path = find_mesh(geometry.mesh.filename, mesh_path)
        scale = 1.0 if geometry.mesh.scale is None else geometry.mesh.scale
        for mesh in _load_mesh(path, scale):
            own = colour is None and _has_colours(mesh)
            yield Shape(link, 'mesh', pose, mesh=mesh, colour=colour or PLAIN, has_own_colours=own)


def _doubt(shape: Shape) -> str:
    return '' if shape.mesh is None else doubtful_mesh(float(shape.mesh.extents.max()))


def _checked(shape: Shape) -> Shape:
    """Return shape. Raises ValueError if it cannot be drawn."""
    if len(shape.size) != SIZES[shape.kind] or not all(0.0 <= size < math.inf for size in shape.size):
        raise ValueError(f'a {shape.kind} cannot have the size {shape.size}')
    if not np.isfinite(shape.pose).all():
        raise ValueError(f'the pose of a {shape.kind} must be finite')
    return shape


def _load_mesh(path: pathlib.Path, scale: float | Sequence[float]) -> Iterator[trimesh.Trimesh]:
    check_mesh(path)
    scene = trimesh.load_scene(path)
    if path.suffix.lower() == '.dae' and scene.units is not None:
        scene = scene.convert_units(
            'meters'
        )  # of these formats only COLLADA has a unit, which RViz also applies
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
    """Return the size of the arm [m]: its offsets, and prismatic travel up to the same amount again."""
    chain = robot.chain(tip_link)
    offsets = sum(float(np.linalg.norm(joint.origin[:3, 3])) for joint in chain)
    travel = sum(max(abs(joint.lower), abs(joint.upper)) for joint in chain if joint.type == 'prismatic')
    return max(offsets + min(travel, offsets), MINIMAL_EXTENT)
