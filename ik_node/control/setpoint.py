# SPDX-License-Identifier: Apache-2.0
"""Setpoint and JointTrajectory: what an arm is commanded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ik_node.checks import Array

from .trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """Positions, velocities, accelerations (k, n) of named joints at times (k,) [s] from 0; the last is rest.

    begins: when time 0 is, by the clock of the setpoints [s]. joined: the time [s] until which the trajectory
    repeats what the controller was sent before. braking: it only ends an earlier motion. on_arrival: begins
    when it arrives, however late; the controller moves to its first point by itself.
    """

    names: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array
    accelerations: Array
    begins: float
    joined: float
    braking: bool = False
    on_arrival: bool = False

    @property
    def duration(self) -> float:
        """Time from 0 to the end [s]."""
        return float(self.times[-1])

    @property
    def ends(self) -> float:
        """When it ends, by the clock of the setpoints [s]."""
        return self.begins + self.duration

    @property
    def starts(self) -> int:
        """The first point that a controller needs: the last one at rest if the trajectory begins on arrival.

        An earlier one would be where the controller jumps to, a later one would be joined by a detour. None
        at time 0, which leaves no time to move there.
        """
        if not self.on_arrival:
            return 0
        last = max(int(np.searchsorted(self.times, self.joined)) - 1, 0)
        return last if self.times[last] > 0.0 else last + 1

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations."""
        return self.positions, self.velocities, self.accelerations

    @cached_property
    def motion(self) -> Trajectory:
        """The interpolation of the controller: quintics between the points."""
        return Trajectory(self.times, *self.rows)

    def states(self, times: Array) -> Array:
        """Return positions, velocities, accelerations (p, 3, n) at times (p,) on the setpoint clock."""
        return np.moveaxis(self.motion.sampled(np.asarray(times) - self.begins)[:3], 0, 1)


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
