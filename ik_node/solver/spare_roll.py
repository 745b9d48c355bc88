# SPDX-License-Identifier: Apache-2.0
"""The spare roll: a last joint on the tool axis only turns the tool's lateral axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import AXIS, PRISMATIC, RATIO, SHIFT, VARIABLE
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal, Solution

ROLL_TOLERANCE = 1e-6  # rad and share of the reach: how far the tool may lie off the last joint's axis


class SpareRoll:
    """Turns the last joint of an arm towards Goal.lateral; does nothing for arms without a spare roll."""

    def __init__(self, arm: Arm, met: Callable[[float, float, float], bool]) -> None:
        """met: whether a position error [m] and a direction error [rad] are within the tolerances and a cone."""
        self._arm, self._joint, self._met = arm, spare_roll(arm), met

    def aligned(self, goal: Goal, seed: Array, solution: Solution) -> Solution:
        """Return solution turned towards goal.lateral near seed (n,), with its lateral_error.

        Only as far as what is solved stays within the tolerances.
        """
        arm, q = self._arm, solution.q.copy()
        lateral_error = kernels.serve_lateral(arm.joints, arm.tool, arm.limits, goal.packed, self._joint, seed, q)
        errors = kernels.goal_errors(arm.joints, arm.frames(q), goal.packed)
        met = self._met(errors[0], errors[1], goal.cone)
        if solution.solved and not met:  # the tool point is slightly off the roll axis
            return solution
        if arm.has_cones and arm.ball_excess(q) > 0.0:
            return solution
        return replace(
            solution,
            q=q,
            position_error=errors[0],
            direction_error=errors[1],
            lateral_error=lateral_error,
        )


def spare_roll(arm: Arm) -> int:
    """Return the index of the joint that is free to serve Goal.lateral, -1 if there is none."""
    last, tool = arm.joints[-1], arm.tool
    joint = int(last[VARIABLE])
    shared = (arm.joints[:, VARIABLE] == joint).sum() > 1
    if last[PRISMATIC] or last[RATIO] != 1.0 or last[SHIFT] or shared:
        return -1
    off_axis = float(np.linalg.norm(np.cross(last[AXIS], tool[:3])))
    slant = float(np.linalg.norm(np.cross(last[AXIS], tool[3:6])))
    return joint if max(slant, off_axis / max(arm.reach, 1e-9)) < ROLL_TOLERANCE else -1
