# SPDX-License-Identifier: Apache-2.0
"""Joint: one joint of a robot."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ik_node.model.rotations import hat

MOVABLE = ('revolute', 'continuous', 'prismatic')  # the joint types with one degree of freedom


@dataclass(frozen=True)
class Mimic:
    """value = multiplier * value of joint + offset."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True, eq=False)
class Joint:
    """One URDF joint, already checked.

    type: revolute, continuous, prismatic, fixed (planar and floating only off every arm).
    origin: (4, 4) pose of the joint frame in the parent link at zero. axis: (3,) unit, in the
    joint frame. lower, upper [rad or m]: -inf and inf for continuous; such that joints that mimic this one
    keep theirs too. velocity [rad/s or m/s] > 0.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: NDArray[np.float64]
    axis: NDArray[np.float64]
    lower: float
    upper: float
    velocity: float
    mimic: Mimic | None = None

    def __post_init__(self) -> None:
        for array in (self.origin, self.axis):
            array.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and unpickle by the constructor: numpy does not keep the read-only flag."""
        return Joint, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def movable(self) -> bool:
        """Whether the joint has one degree of freedom: neither fixed nor planar nor floating."""
        return self.type in MOVABLE

    @property
    def rest(self) -> float:
        """Default position [rad or m]: zero, or mid-range if zero is outside the limits."""
        return 0.0 if self.lower <= 0.0 <= self.upper else (self.lower + self.upper) / 2

    def pose(self, value: float) -> NDArray[np.float64]:
        """Return the child link's pose (4, 4) in the parent link at value [rad or m]. Rodrigues' formula.

        A joint that is not movable stays at its origin.
        """
        if not self.movable:
            return self.origin
        linear, square = self.terms
        if self.type == 'prismatic':
            return self.origin @ (np.eye(4) + value * linear)
        return self.origin @ (np.eye(4) + (math.sin(value) * linear + (1.0 - math.cos(value)) * square))

    @property
    def terms(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """L and Q (4, 4) of the motion I + value L of a prismatic joint, else I + sin L + (1 - cos) Q."""
        linear, square = np.zeros((4, 4)), np.zeros((4, 4))
        if self.type == 'prismatic':
            linear[:3, 3] = self.axis
        else:
            cross = hat(self.axis)
            linear[:3, :3], square[:3, :3] = cross, cross @ cross
        return linear, square
