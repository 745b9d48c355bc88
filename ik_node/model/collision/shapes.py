# SPDX-License-Identifier: Apache-2.0
"""The collision geometry of a URDF, as shapes of the library coal."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ik_node.checks import Array
from ik_node.errors import IkError, InputError, MissingError, UrdfError, quoted
from ik_node.extras import load
from ik_node.model.meshes import check_mesh, find_mesh
from ik_node.model.plausibility import doubtful_mesh
from ik_node.model.urdf.elements import Element, named, parse_xml
from ik_node.model.urdf.findings import Reading
from ik_node.model.urdf.reader import rotation

LARGEST = 1e3  # [m] larger sizes and offsets are mistakes


@dataclass(frozen=True, eq=False)
class CollisionShape:
    """One shape fixed to a link.

    pose (4, 4) in the link's frame; radius [m] of a sphere about centre (3,), in the link's frame, around it.
    """

    link: str
    geometry: Any
    pose: Array
    centre: Array
    radius: float


def collision_shapes(text: str, mesh_path: str) -> tuple[list[CollisionShape], list[str]]:
    """Return the shapes of the <collision> elements of a URDF, and one sentence per one that is left out.

    A mesh becomes its convex hull; mesh_path: as for find_mesh. Raises MissingError without coal.
    """
    shapes: list[CollisionShape] = []
    notes: list[str] = []
    for link, element in named(parse_xml(text, Reading()), 'link').items():
        for collision in element.findall('collision'):
            coal = load('coal', 'self-collision checking')
            try:
                geometry = _geometry(coal, collision.find('geometry'), mesh_path)
            except Exception as error:  # an unreadable mesh file too must not reject the arm
                reason = str(error) if isinstance(error, IkError) else f'{type(error).__name__}: {error}'
                notes.append(
                    f'a collision shape of link {quoted(link)} is left out: {" ".join(reason.split())}'
                )
                continue
            pose = _origin(collision.find('origin'))
            geometry.computeLocalAABB()
            centre = pose[:3, :3] @ np.array(geometry.aabb_center) + pose[:3, 3]
            shapes.append(CollisionShape(link, geometry, pose, centre, float(geometry.aabb_radius)))
    return shapes, notes


def _geometry(coal: Any, element: Element | None, mesh_path: str) -> Any:
    """Return the coal geometry of a <geometry>."""
    for kind in () if element is None else element:
        if kind.tag == 'box':
            return coal.Box(*_numbers(kind, 'size', 3, positive=True))
        if kind.tag in ('cylinder', 'capsule'):
            (radius,), (length,) = (_numbers(kind, name, 1, positive=True) for name in ('radius', 'length'))
            make = coal.Cylinder if kind.tag == 'cylinder' else coal.Capsule
            return make(radius, length)
        if kind.tag == 'sphere':
            return coal.Sphere(*_numbers(kind, 'radius', 1, positive=True))
        if kind.tag == 'mesh':
            scale = _numbers(kind, 'scale', 3) if kind.get('scale') else [1.0, 1.0, 1.0]
            return _hull(coal, kind.get('filename', ''), scale, mesh_path)
    raise InputError('it has no box, cylinder, sphere or mesh')


def large_meshes(text: str, mesh_path: str) -> Iterator[str]:
    """Yield a question for each mesh of a URDF that is too large for an arm, the same file once.

    mesh_path: as for find_mesh; files that cannot be read are skipped. Raises MissingError without trimesh.
    """
    known = set[tuple[str, str]]()
    for link, element in named(parse_xml(text, Reading()), 'link').items():
        for mesh in element.iter('mesh'):
            key = mesh.get('filename', ''), mesh.get('scale', '1 1 1')
            if key in known:
                continue
            known.add(key)
            try:
                sizes = _scene(key[0], mesh_path).extents * [float(part) for part in key[1].split()]
            except MissingError:
                raise
            except Exception:  # whatever trimesh raises for a file that is no mesh
                continue
            if doubt := doubtful_mesh(float(np.abs(sizes).max())):
                yield f'mesh {quoted(key[0])} of link {quoted(link)}: {doubt}'


def _scene(filename: str, mesh_path: str) -> Any:
    """Return a mesh file as a scene of trimesh, in metres where it tells its unit."""
    trimesh = load('trimesh', 'reading meshes')
    path = find_mesh(filename, mesh_path)
    check_mesh(path)
    scene = trimesh.load_scene(path)
    if path.suffix.lower() == '.dae' and scene.units is not None:  # as for the viewer: RViz applies it too
        scene = scene.convert_units('meters')
    return scene


def _hull(coal: Any, filename: str, scale: list[float], mesh_path: str) -> Any:
    """Return the convex hull of a mesh file. Raises InputError for one in millimetres."""
    scene = _scene(filename, mesh_path)
    if doubt := doubtful_mesh(float(np.abs(scene.extents * scale).max())):
        raise InputError(doubt)
    hull = scene.to_mesh().convex_hull
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for vertex in np.asarray(hull.vertices, dtype=np.float64) * scale:
        points.append(vertex)
    for face in hull.faces.tolist():
        triangles.append(coal.Triangle(*face))
    return coal.Convex(points, triangles)


def _origin(element: Element | None) -> Array:
    pose = np.eye(4)
    if element is not None:
        if element.get('rpy'):
            pose[:3, :3] = rotation(*_numbers(element, 'rpy', 3))
        if element.get('xyz'):
            pose[:3, 3] = _numbers(element, 'xyz', 3)
    return pose


def _numbers(element: Element, attribute: str, count: int, *, positive: bool = False) -> list[float]:
    try:
        values = [float(word) for word in element.get(attribute, '').split()]
    except ValueError:
        values = []
    if len(values) != count or not all(
        math.isfinite(x) and abs(x) <= LARGEST and (x > 0 or not positive) for x in values
    ):
        allowed = f'{count} numbers{" greater than 0" if positive else ""} up to {LARGEST:g}'
        raise InputError(f'{attribute} of <{element.tag}> must be {allowed}, got {element.get(attribute)!r}')
    return values


def disabled_pairs(path: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of links that an SRDF file excludes from collision checking. Raises UrdfError."""
    try:
        root = parse_xml(Path(path).read_text(encoding='utf-8'), Reading())
    except (OSError, UnicodeDecodeError, UrdfError) as error:
        raise InputError(f'parameter srdf_file: {path} cannot be read: {error}') from None
    for element in root.findall('disable_collisions'):
        yield element.get('link1', ''), element.get('link2', '')
