"""Way: the whole motion to a target, simulated and checked before it starts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ik_node.checks import Array
from ik_node.control.motion import JointMotion
from ik_node.control.tool_motion import tool_motion
from ik_node.control.workspace import Workspace
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal

SPACING = 0.01  # [s] between two places of a way
LONGEST = 3000  # places: the rest of a longer way is checked by the gate only


class Way:
    """Checks of motions of an arm. workspace: the box that the tool point may not leave."""

    def __init__(self, arm: Arm, workspace: Workspace) -> None:
        self._arm, self._workspace = arm, workspace

    def check_goal(self, wanted: Goal | Mapping[str, float]) -> None:
        """Raise InputError for a goal outside a workspace given by the user."""
        if isinstance(wanted, Goal) and self._workspace.given:
            outside = self._workspace.outside(wanted.position)
            if outside is not None:
                raise InputError(f'the goal is outside the workspace: {outside}')

    def check(self, motion: JointMotion) -> None:
        """Raise InputError if the motion, with its target set, leaves the workspace. It is used up."""
        if not self._workspace.given:
            return
        places = _places(motion)
        points = tool_motion(self._arm, places, np.zeros_like(places)).point
        allowed = self._workspace.reaching(points[0])
        for k, point in enumerate(points):
            outside = allowed.outside(point)
            if outside is not None:
                raise InputError(
                    f'the tool point would leave the workspace after {k * SPACING:.2f} s: {outside}'
                )


def _places(motion: JointMotion) -> Array:
    """Return positions (k, n) of a motion until it rests, SPACING apart."""
    places = [motion.position]
    while motion.moving and len(places) < LONGEST:
        places.append(motion.step(SPACING)[0])
    return np.array(places)
