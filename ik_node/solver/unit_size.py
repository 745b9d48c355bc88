# SPDX-License-Identifier: Apache-2.0
"""UnitSize: an arm in a unit of length near its reach, so that thresholds are shares of its size."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.kernels.arrays.layout import (
    C1,
    C2,
    C5,
    END,
    KIND,
    LINK1,
    LINK2,
    OFFSET,
    P0,
    PRISMATIC,
    RATIO,
    SHIFT,
    SIZE,
    VARIABLE,
)
from ik_node.model.arm import Arm, frozen

RANGE = (1e-9, 1e9)  # m: no arm is smaller or larger
LENGTHS = [C1, C2, C5, END, LINK1, LINK2, P0]  # rows of a form


class UnitSize:
    """The arrays of an arm whose reach is about 1 in its unit of length.

    length [m]: the unit, a power of two, so that nothing is rounded. joints, tool, limits: as those of Arm,
    in that unit. units (n,): of the variables, length for prismatic ones, else 1. reach: that of the arm, in
    this unit.
    """

    def __init__(self, arm: Arm) -> None:
        reach = min(max(arm.reach, RANGE[0]), RANGE[1])
        self.length = length = 2.0 ** round(math.log2(reach))
        self.reach = reach / length
        self.units = frozen(np.where(arm.prismatic, length, 1.0))
        joints, tool, limits = arm.joints.copy(), arm.tool.copy(), arm.limits.copy()
        moves = np.where(joints[:, PRISMATIC] != 0.0, length, 1.0)
        joints[:, OFFSET] /= length
        joints[:, RATIO] *= self.units[joints[:, VARIABLE].astype(int)] / moves
        joints[:, SHIFT] /= moves
        tool[:3] /= length
        limits[:2] /= self.units
        self.joints, self.tool, self.limits = frozen(joints), frozen(tool), frozen(limits)

    def goal(self, packed: Array) -> Array:
        """Return goal (9,) in this unit."""
        scaled = packed.copy()
        scaled[:3] /= self.length
        return scaled

    def form(self, constants: Array) -> Array:
        """Return the constants (14, 3) of a closed form in this unit."""
        scaled = constants.copy()
        scaled[LENGTHS] /= self.length
        scaled[KIND, SIZE] /= self.length
        return frozen(scaled)
