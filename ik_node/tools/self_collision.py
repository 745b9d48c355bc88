# SPDX-License-Identifier: Apache-2.0
"""Self-collision for programs that judge single configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ik_node.checks import Array
from ik_node.errors import MissingError
from ik_node.model.arm import Arm
from ik_node.model.collision import SelfCollision, collision_shapes
from ik_node.model.robot import JointSet
from ik_node.model.urdf.description import load_description

Clearance = Callable[[Array], float]


def clearance_of(
    path: str, arm: Arm, arguments: Mapping[str, str] | None = None
) -> tuple[Clearance | None, str]:
    """Return what finds the least distance [m] between links at q (n,), and a line for the user.

    Distances are negative in collision. None where there is nothing to check, or no package for it.
    """
    joints = JointSet(arm.robot)
    try:
        shapes, _ = collision_shapes(load_description(path, arguments), '')
        found = SelfCollision(arm.robot, joints, arm.joint_names, shapes) if shapes else None
    except MissingError as error:
        return None, f'self-collision is not checked: {error}'
    if found is None or found.empty:
        return None, 'self-collision is not checked: the description has no collision shapes that could touch'

    def clearance(q: Array) -> float:
        return found.distance(joints.filled(dict(zip(arm.joint_names, q.tolist(), strict=True))))[0]

    return clearance, found.describe()
