# SPDX-License-Identifier: Apache-2.0
"""The shapes of a robot for a page: boxes, cylinders, spheres, and meshes reduced to a few thousand triangles."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import IkError, quoted
from ik_node.model.arm import Arm
from ik_node.model.meshes import load_mesh
from ik_node.model.plausibility import doubtful_mesh
from ik_node.model.urdf.elements import Element, Reading, named, parse_xml
from ik_node.model.urdf.reader import rotation

PLAIN = 0.69, 0.72, 0.77  # colour of shapes without a material
STICK, MARK = (0.66, 0.7, 0.75), (0.24, 0.29, 0.37)  # of links without shapes, and of their joints
STICK_RADIUS = 0.016  # in reaches of the arm
MOST_TRIANGLES = 9000  # of all meshes
SIZES = {'box': ('size',), 'cylinder': ('radius', 'length'), 'sphere': ('radius',)}
COUNTS = {'box': 3, 'cylinder': 2, 'sphere': 1}
CELL = 0.006  # of the reach, of the finest grid that vertices are joined in
COARSER = 1.25  # the next one


def shapes_of(arm: Arm, text: str, mesh_path: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the shapes of the robot with an arm from its URDF text, and a sentence on each that is left out.

    A shape: the row of joints that moves it, from 1, 0 for the base, its kind, size [m], pose (12,) in the base
    frame while all joints of the arm are at zero, and colour. mesh_path: as for find_mesh.
    """
    root = parse_xml(text, Reading())
    colours = {name: _colour(element) for name, element in named(root, 'material').items()}
    shapes: list[dict[str, Any]] = []
    meshes: list[tuple[dict[str, Any], Array, NDArray[np.int64]]] = []
    notes: list[str] = []
    links = named(root, 'link')
    for link, element in links.items():
        row, pose = place_of(arm, link)
        visuals = element.findall('visual') or element.findall('collision')
        drawn = False
        for visual in visuals:
            try:
                shape, mesh = shape_of(visual, colours, mesh_path)
            except Exception as error:  # a mesh file that trimesh cannot read must not reject an arm
                reason = str(error) if isinstance(error, IkError) else f'{type(error).__name__}: {error}'
                notes.append(f'a shape of link {quoted(link)} is left out: {" ".join(reason.split())}')
                continue
            drawn = True
            shapes.append({'link': row, **shape, 'pose': _numbers(pose @ shape['pose'])})
            if mesh is not None:
                meshes.append((shapes[-1], *mesh))
        if visuals and not drawn:
            shapes += _sticks(arm, link, row, pose)
    if not shapes:
        shapes = [stick for link in links for stick in _sticks(arm, link, *place_of(arm, link))]
    _reduce(meshes, arm.reach)
    return shapes, notes


def place_of(arm: Arm, link: str) -> tuple[int, Array]:
    """Return the row of joints that moves a link, from 1, and its pose (4, 4) in the base while all are at zero."""
    robot, row, pose = arm.robot, 0, np.eye(4)
    rows = [joint.name for joint in robot.chain(arm.tip_link, arm.base_link) if joint.movable]
    rests = robot.joint_values({})
    for joint in robot.path(link):
        pose = pose @ joint.pose(0.0 if joint.name in rows else rests.get(joint.name, 0.0))
        row = rows.index(joint.name) + 1 if joint.name in rows else row
    return row, np.linalg.inv(robot.link_pose(arm.base_link, {})) @ pose


def shape_of(
    visual: Element, colours: dict[str, Any], mesh_path: str
) -> tuple[dict[str, Any], tuple[Array, NDArray[np.int64]] | None]:
    """Return the shape of a <visual> in its link, and the points (k, 3) and faces (l, 3) of its mesh."""
    pose, mesh = _origin(visual.find('origin')), None
    material = visual.find('material')
    colour = None if material is None else _colour(material) or colours.get(material.get('name', ''))
    geometry = visual.find('geometry')
    for kind in () if geometry is None else geometry:
        if kind.tag == 'mesh':
            scene = load_mesh(kind.get('filename', ''), mesh_path)
            solid = scene.to_mesh()
            scale = [float(word) for word in kind.get('scale', '1 1 1').split()]
            points = np.asarray(solid.vertices, dtype=np.float64) * scale
            if doubt := doubtful_mesh(float(np.abs(points).max(initial=0.0))):
                raise IkError(doubt)
            mesh = points, np.asarray(solid.faces, dtype=np.int64)
            return {'kind': 'mesh', 'pose': pose, 'colour': colour or PLAIN}, mesh
        if kind.tag in SIZES:
            size = [float(word) for name in SIZES[kind.tag] for word in kind.get(name, '').split()]
            if len(size) != COUNTS[kind.tag] or not np.isfinite(size).all() or min(size) < 0.0:
                raise IkError(f'a {kind.tag} cannot have the size {size}')
            return {'kind': kind.tag, 'size': size, 'pose': pose, 'colour': colour or PLAIN}, mesh
    raise IkError('it has no box, cylinder, sphere or mesh')


def _colour(material: Element) -> tuple[float, ...] | None:
    colour = material.find('color')
    if colour is None:
        return None
    return tuple(round(min(max(float(part), 0.0), 1.0), 3) for part in colour.get('rgba', '').split()[:3]) or None


def _origin(element: Element | None) -> Array:
    pose = np.eye(4)
    if element is not None:
        roll, pitch, yaw = map(float, element.get('rpy', '0 0 0').split())
        pose[:3, :3] = rotation(roll, pitch, yaw)
        pose[:3, 3] = [float(word) for word in element.get('xyz', '0 0 0').split()]
    return pose


def _numbers(pose: Array) -> list[float]:
    """Return a pose (4, 4) as the columns of its rotation, then its translation."""
    return [round(value, 6) + 0.0 for value in pose[:3].T.ravel().tolist()]


def _sticks(arm: Arm, link: str, row: int, pose: Array) -> Iterator[dict[str, Any]]:
    """Yield sticks from the origin of a link to its joints, and a mark along the axis of each movable one."""
    radius = STICK_RADIUS * arm.reach
    for joint in arm.robot.joints.values():
        if joint.parent != link:
            continue
        offset = joint.origin[:3, 3]
        length = float(np.linalg.norm(offset))
        sticks = [(0.5 * offset, offset, radius, length, STICK)] if length > 0.5 * radius else []
        if joint.movable:
            sticks.append((offset, joint.origin[:3, :3] @ joint.axis, 1.7 * radius, 4.2 * radius, MARK))
        for middle, along, width, size, colour in sticks:
            placed = np.eye(4)
            placed[:3, 2] = along / np.linalg.norm(along)
            placed[:3, 1] = np.linalg.svd(placed[None, :3, 2])[2][1]
            placed[:3, 0] = np.cross(placed[:3, 1], placed[:3, 2])
            placed[:3, 3] = middle
            shape = {'link': row, 'kind': 'cylinder', 'size': [width, size], 'colour': colour}
            yield {**shape, 'pose': _numbers(pose @ placed)}


def _reduce(meshes: list[tuple[dict[str, Any], Array, NDArray[np.int64]]], reach: float) -> None:
    """Write points and faces of all meshes into their shapes, with at most MOST_TRIANGLES."""
    cell = CELL * reach
    while True:
        reduced = [joined(points, faces, cell) for _, points, faces in meshes]
        if sum(len(faces) for _, faces in reduced) <= MOST_TRIANGLES:
            break
        cell *= COARSER
    for (shape, _, _), (points, faces) in zip(meshes, reduced, strict=True):
        scale = max(float(np.abs(points).max(initial=0.0)), 1e-9) / 32767.0
        shape['scale'] = scale
        shape['points'] = base64.b64encode(np.round(points / scale).astype('<i2').tobytes()).decode()
        shape['faces'] = base64.b64encode(faces.astype('<u2').tobytes()).decode()


def joined(points: Array, faces: NDArray[np.int64], cell: float) -> tuple[Array, NDArray[np.int64]]:
    """Return a mesh whose vertices (k, 3) in one cell [m] of a grid are one, at their middle; faces (l, 3).

    Vertex clustering (Rossignac and Borrel 1993): faces that become a line or a point disappear.
    """
    cells = np.floor((points - points.min(axis=0, initial=0.0)) / cell).astype(np.int64)
    wide = cells.max(axis=0, initial=0) + 1
    _, which = np.unique((cells[:, 0] * wide[1] + cells[:, 1]) * wide[2] + cells[:, 2], return_inverse=True)
    counts = np.bincount(which)
    middles = np.stack([np.bincount(which, points[:, axis]) for axis in range(3)], axis=1) / counts[:, None]
    corners = which[faces]
    low, middle, high = np.sort(corners, axis=1).T
    different = (low < middle) & (middle < high)
    corners = corners[different]
    _, first = np.unique(((low * len(counts) + middle) * len(counts) + high)[different], return_index=True)
    corners = corners[first]
    used, renumbered = np.unique(corners, return_inverse=True)
    return middles[used], renumbered.reshape(-1, 3)
