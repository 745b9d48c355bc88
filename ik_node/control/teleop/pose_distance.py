# SPDX-License-Identifier: Apache-2.0
"""How far operator poses are from the tool and from one another, in position and orientation."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.control.teleop.jog_kinematics import roll_joint
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal

NEAR, AIMED = 0.1, 0.3  # [m] and [rad] from the tool within which the first pose without a clutch must be
FAR = f'pose ignored: without a clutch the first one must be within {NEAR} m of the tool'
TURNED = f'pose ignored: without a clutch the first one must be turned by at most {AIMED} rad from the tool'


def distant(goal: Goal, tool: Array, arm: Arm, q: Array) -> str:
    """Return why goal is too far from the tool T (4, 4) at q (n,) for a first pose; empty if it is not.

    A rotation that no joint of the arm can make is ignored. goal: with direction and lateral.
    """
    assert goal.direction is not None
    assert goal.lateral is not None
    if np.linalg.norm(goal.position - tool[:3, 3]) > NEAR:
        return FAR
    turn = 0.0
    if aims(arm):
        turn = _angle(float(goal.direction @ tool[:3, 2]))
    if roll_joint(arm, q) is not None:
        turn = max(turn, abs(math.atan2(goal.lateral @ tool[:3, 1], goal.lateral @ tool[:3, 0])))
    return TURNED if turn > AIMED else ''


def aims(arm: Arm) -> bool:
    """Whether the arm can turn the axis of the tool while the tool point stays."""
    return arm.effective_dof > arm.position_dof


def turns_tool(arm: Arm, q: Array) -> bool:
    """Whether the arm at q (n,) can turn the tool while the tool point stays."""
    return aims(arm) or roll_joint(arm, q) is not None


def angle_between(first: Array, second: Array) -> float:
    """Return the angle [rad] by which the second pose T (4, 4) is turned from the first."""
    return _angle((float(np.trace(first[:3, :3].T @ second[:3, :3])) - 1.0) / 2.0)


def _angle(cosine: float) -> float:
    return math.acos(min(max(cosine, -1.0), 1.0))
