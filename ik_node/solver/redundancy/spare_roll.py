# SPDX-License-Identifier: Apache-2.0
"""The spare roll: a last joint on the tool axis only turns the tool's lateral axis."""

from __future__ import annotations

import numpy as np

from ik_node.model.arm import Arm

ROLL_TOLERANCE = 1e-6  # rad and share of the reach: how far the tool may lie off the last joint's axis


def spare_roll(arm: Arm) -> int:
    """Return the index of the joint that is free to serve Goal.lateral, -1 if there is none."""
    last, tool = arm.joints[-1], arm.tool
    joint = int(last[7])
    if last[6] or last[8] != 1.0 or last[9] or (arm.joints[:, 7] == joint).sum() > 1:
        return -1
    off_axis = float(np.linalg.norm(np.cross(last[:3], tool[:3])))
    slant = float(np.linalg.norm(np.cross(last[:3], tool[3:6])))
    return joint if max(slant, off_axis / max(arm.reach, 1e-9)) < ROLL_TOLERANCE else -1
