"""JointSet: every joint of a robot that moves, and the independent ones among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ik_node.kinematics.urdf import Robot

Vector = NDArray[np.float64]

ONE_VALUE = ('revolute', 'continuous', 'prismatic')  # the joint types that one number describes


class JointSet:
    """The m joints of a robot that one number each describes, driven by n <= m independent ones.

    names (m): all of them, mimic joints too. variables (n): the independent ones; lower, upper,
    velocity (n,) are their limits, the velocity such that no joint that mimics one is too fast.
    """

    def __init__(self, robot: Robot) -> None:
        joints = [joint for joint in robot.movable if joint.type in ONE_VALUE]
        drivers = [robot.driver(joint.name) for joint in joints]
        self.names = tuple(joint.name for joint in joints)
        self.variables = tuple(dict.fromkeys(driver for driver, _, _ in drivers))
        self.n = len(self.variables)
        self.lower = np.array([robot.joints[name].lower for name in self.variables])
        self.upper = np.array([robot.joints[name].upper for name in self.variables])
        self._driver = np.array([self.variables.index(driver) for driver, _, _ in drivers], dtype=int)
        self._ratio = np.array([ratio for _, ratio, _ in drivers])
        self._shift = np.array([shift for _, _, shift in drivers])
        self.velocity = np.full(self.n, np.inf)
        for joint, index, ratio in zip(joints, self._driver, np.abs(self._ratio), strict=True):
            if ratio > 0.0:
                self.velocity[index] = min(self.velocity[index], joint.velocity / ratio)

    def expand(self, values: Vector, velocities: Vector) -> tuple[Vector, Vector]:
        """Return values and velocities (m,) of all joints from those of the variables (n,)."""
        return (
            self._ratio * values[self._driver] + self._shift,
            self._ratio * velocities[self._driver],
        )

    def indices(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return where in variables each of names is."""
        return np.array([self.variables.index(name) for name in names], dtype=np.int64)

    def named(self, values: Vector) -> dict[str, float]:
        """Return the variables (n,) by name."""
        return dict(zip(self.variables, values.tolist(), strict=True))

    def carried_over(self, values: Mapping[str, float]) -> Vector:
        """Return (n,): the values that are given, and for the others zero or the limit nearest to it."""
        near_zero = np.clip(0.0, self.lower, self.upper)
        return np.array(
            [values.get(name, zero) for name, zero in zip(self.variables, near_zero, strict=True)]
        )
