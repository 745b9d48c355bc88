# SPDX-License-Identifier: Apache-2.0
"""Setpoint: the commanded state of the joints at one time."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.checks import Array
from ik_node.control.outputs.joint_trajectory import JointTrajectory


@dataclass(frozen=True, eq=False)
class Setpoint:
    """Positions and velocities (m,) [rad or m, per second] of the joints called names at time [s].

    controller: joints of the controller, in its order. replanned: it starts another motion than the previous
    setpoint. trajectory: the rest of the motion, if an interpolating controller needs a new one.
    arrival: if this is the first setpoint for a goal, when that was received (steady), else None.
    """

    time: float
    names: tuple[str, ...]
    positions: Array
    velocities: Array
    controller: tuple[str, ...] = ()
    replanned: bool = False
    trajectory: JointTrajectory | None = None
    arrival: float | None = None

    def named(self) -> dict[str, tuple[float, float]]:
        """Return position and velocity by joint name."""
        pairs = zip(self.positions.tolist(), self.velocities.tolist(), strict=True)
        return dict(zip(self.names, pairs, strict=True))

    def listed(self) -> list[float]:
        """Return the positions of the joints of the controller."""
        places = dict(zip(self.names, self.positions.tolist(), strict=True))
        return [places[name] for name in self.controller]
