# SPDX-License-Identifier: Apache-2.0
"""Self-collision for programs that judge single configurations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ik_node.checks import Array
from ik_node.control.models import arm_collision
from ik_node.control.settings import ArmSettings
from ik_node.model.arm import Arm
from ik_node.model.robot import JointSet
from ik_node.model.urdf.description import load_description

Clearance = Callable[[Array], float]


def clearance_of(path: str, arm: Arm, arguments: Mapping[str, str] | None = None) -> tuple[Clearance | None, str]:
    """Return what finds the least distance [m] between links at q (n,), and lines for the user.

    By the rules of ik_node. Distances are negative in collision. None where there is nothing to check, or no
    package for it.
    """
    joints = JointSet(arm.robot)
    text = load_description(path, arguments)
    found, notes = arm_collision(text, arm.robot, arm.joint_names, joints, ArmSettings())
    if found is None:
        return None, '\n'.join(notes)

    def clearance(q: Array) -> float:
        return found.distance(joints.filled(dict(zip(arm.joint_names, q.tolist(), strict=True))))[0]

    return clearance, '\n'.join(notes)
