# SPDX-License-Identifier: Apache-2.0
"""The meshes of a ghost: a second arm beside the one that the scene shows."""

from __future__ import annotations

import numpy as np
import trimesh

from ik_node.model.arm import Arm
from ik_node.viewer.scene.visuals import Drawing, Shape


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
