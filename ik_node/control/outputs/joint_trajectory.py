# SPDX-License-Identifier: Apache-2.0
"""JointTrajectory: a motion for a joint_trajectory_controller of ros2_control."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ik_node.checks import Array
from ik_node.control.motion.trajectory import Trajectory


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
