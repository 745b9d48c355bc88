"""JointTrajectory: a motion as a joint_trajectory_controller of ros2_control carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ik_node.checks import Array
from ik_node.control.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class JointTrajectory:
    """Positions, velocities and accelerations (k, n) of named joints at times (k,) > 0 [s]; the last is rest.

    start (3, n): the same at time 0, where the controller is expected to be by then. braking: the motion goes
    nowhere, it only ends an earlier one.
    """

    names: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array
    accelerations: Array
    start: Array
    braking: bool = False

    @property
    def duration(self) -> float:
        """When it ends [s]."""
        return float(self.times[-1])

    @property
    def rows(self) -> tuple[Array, ...]:
        """Start, positions, velocities and accelerations."""
        return self.start, self.positions, self.velocities, self.accelerations

    @cached_property
    def motion(self) -> Trajectory:
        """What the controller makes of it: quintics from the start and between the points."""
        rows = [np.vstack([first, row]) for first, row in zip(self.start, self.rows[1:], strict=True)]
        return Trajectory(np.append(0.0, self.times), *rows)
