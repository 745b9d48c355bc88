# SPDX-License-Identifier: Apache-2.0
"""JointSet: every joint of a robot that moves, and the independent ones among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.model.plausibility import Span, spans_of
from ik_node.model.robot import Robot


class JointSet:
    """The m movable joints of a robot, driven by n <= m independent ones.

    names (m): all of them, including mimic joints. variables (n): the independent ones; prismatic (n,)
    bool; lower, upper, velocity (n,): their limits, the velocity such that mimic joints also keep theirs.
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
        # By joint (m,): value = ratio * value of variable + shift; fixed joints count as one more, at zero.
        place = {name: index for index, name in enumerate(self.variables)}
        self._variable = np.array([place.get(driver.joint, self.n) for driver in drivers], dtype=np.int64)
        self._ratio = np.array([driver.ratio for driver in drivers])
        self._shift = np.array([driver.shift for driver in drivers])
        velocity = np.full(self.n + 1, np.inf)
        moves = self._ratio != 0.0
        speeds = np.array([joint.velocity for joint in joints])[moves] / np.abs(self._ratio[moves])
        np.minimum.at(velocity, self._variable[moves], speeds)
        self.velocity = velocity[: self.n]

    @property
    def spans(self) -> list[Span]:
        """The limits of the variables."""
        return spans_of(self.variables, self.lower, self.upper, self.velocity, self.prismatic)

    def expand(self, values: Array, velocities: Array) -> tuple[Array, Array]:
        """Return values and velocities (m,) of all joints from those of the variables (n,)."""
        q, qd = np.append(values, 0.0), np.append(velocities, 0.0)
        return self._ratio * q[self._variable] + self._shift, self._ratio * qd[self._variable]

    def indices(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Return where in variables each of names is."""
        return np.array([self.variables.index(name) for name in names], dtype=np.int64)

    def named(self, values: Array) -> dict[str, float]:
        """Return the variables (n,) by name."""
        return dict(zip(self.variables, values.tolist(), strict=True))

    def filled(self, values: Mapping[str, float]) -> Array:
        """Return (n,): the given values, and Joint.rest for the others."""
        return np.array(
            [values.get(name, rest) for name, rest in zip(self.variables, self.rest, strict=True)]
        )
