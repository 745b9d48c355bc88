"""JointSet: every joint of a robot that moves, and the independent ones among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ik_node.model.robot import Robot

Vector = NDArray[np.float64]


class JointSet:
    """The m joints of a robot that have a value, driven by n <= m independent ones.

    names (m): all of them, mimic joints too. variables (n): the independent ones; prismatic (n,) bool
    says which of them slide; lower, upper, velocity (n,) are their limits, the velocity such that no
    joint that mimics one is too fast.
    """

    def __init__(self, robot: Robot) -> None:
        joints = robot.movable
        drivers = [robot.driver(joint.name) for joint in joints]
        free = dict.fromkeys(driver.joint for driver in drivers if robot.joints[driver.joint].movable)
        self.names = tuple(joint.name for joint in joints)
        self.variables = tuple(free)
        self.n = len(self.variables)
        variables = [robot.joints[name] for name in self.variables]
        self.lower = np.array([joint.lower for joint in variables])
        self.upper = np.array([joint.upper for joint in variables])
        self.rest = np.array([joint.rest for joint in variables])
        self.prismatic = np.array([joint.type == 'prismatic' for joint in variables], dtype=bool)
        # (m, n): a row is zero for a joint that follows a fixed one.
        column = {name: index for index, name in enumerate(self.variables)}
        self._ratio = np.zeros((len(joints), self.n))
        for row, driver in enumerate(drivers):
            if driver.joint in column:
                self._ratio[row, column[driver.joint]] = driver.ratio
        self._shift = np.array([driver.shift for driver in drivers])
        self.velocity = np.full(self.n, np.inf)
        for joint, ratios in zip(joints, np.abs(self._ratio), strict=True):
            for index in np.flatnonzero(ratios):
                self.velocity[index] = min(self.velocity[index], joint.velocity / ratios[index])

    def expand(self, values: Vector, velocities: Vector) -> tuple[Vector, Vector]:
        """Return values and velocities (m,) of all joints from those of the variables (n,)."""
        return self._ratio @ values + self._shift, self._ratio @ velocities

    def indices(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return where in variables each of names is."""
        return np.array([self.variables.index(name) for name in names], dtype=np.int64)

    def named(self, values: Vector) -> dict[str, float]:
        """Return the variables (n,) by name."""
        return dict(zip(self.variables, values.tolist(), strict=True))

    def filled(self, values: Mapping[str, float]) -> Vector:
        """Return (n,): the values that are given, and those of Joint.rest for the others."""
        return np.array(
            [values.get(name, rest) for name, rest in zip(self.variables, self.rest, strict=True)]
        )
