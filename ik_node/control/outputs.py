# SPDX-License-Identifier: Apache-2.0
"""Outputs: they receive the commands of an arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from .streaming import TrajectoryStreamer
from .trajectory import JointTrajectory, Setpoint

MAX_DELAY = 0.5  # [s] for which trajectories may be late: the controller continues the last one


class Output:
    """Receives setpoints; may ignore any of them.

    runs_plans: the output sends the trajectories of the setpoints, and its controller continues the last one
    when no setpoints follow. only_listed: it moves only the joints of the controller.
    """

    runs_plans = only_listed = False

    def late(self, time: float) -> float:  # noqa: ARG002
        """Return how late [s] a command sent now would be for a setpoint of a time [s]."""
        return 0.0

    def take(self, setpoint: Setpoint) -> None:
        """Receive the next setpoint of the motion."""

    def done(self) -> bool:
        """Whether the last command has been executed, as far as the controller reports it."""
        return True

    def halted(self, hold_trajectory: JointTrajectory | None) -> None:
        """End the motion: no setpoint follows, and the last trajectory is void.

        hold_trajectory: ends it where the joints are measured; None if no trajectory is under way.
        """


class Outputs:
    """All outputs of an arm. trajectories: for those that run plans, else idle."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self._outputs = tuple(outputs)
        self._halted = True
        self._late_since = math.inf  # since when trajectories come too late [s]
        self.runs_plans = any(output.runs_plans for output in self._outputs)
        self.only_listed = any(output.only_listed for output in self._outputs)
        self.trajectories = TrajectoryStreamer()

    def done(self) -> bool:
        """Whether the last commands have been executed, as far as controllers report it."""
        return self.trajectories.settled() and all(output.done() for output in self._outputs)

    def _late(self, time: float) -> float:
        return max(output.late(time) for output in self._outputs)

    def in_time(self, setpoint: Setpoint | None) -> tuple[Setpoint | None, str]:
        """Return the setpoint, without its trajectory if that is late: the next setpoint may be in time.

        Until then the controller continues the last one. If that lasts, return no setpoint and the reason:
        the arm is then halted at its measured position. A controller at rest starts on reception.
        """
        trajectories = self.trajectories
        if setpoint is None or setpoint.trajectory is None:
            return setpoint, ''
        late = self._late(setpoint.time)
        if not trajectories.replaces:
            return replace(setpoint, trajectory=trajectories.delayed(late)), ''
        if late <= trajectories.slack:
            self._late_since = math.inf
            return setpoint, ''
        # Once may be accidental; the next trajectory will be as late.
        trajectories.undo(late if self._late_since <= setpoint.time else 0.0)
        if not self._late_since <= setpoint.time:  # or the clock was set back
            self._late_since = setpoint.time
        if setpoint.time - self._late_since > MAX_DELAY:
            self._late_since = math.inf
            return None, f'trajectory dropped: it was {late:.3f} s late, because the computer is overloaded'
        return replace(setpoint, trajectory=None), ''

    def drop(self, setpoint: Setpoint) -> None:
        """Discard a setpoint whose motion has ended before it was sent."""
        if setpoint.trajectory is not None:
            self.trajectories.undo()

    def hold_trajectory(
        self, measured: Callable[[], Mapping[str, float]], faulted: bool = False
    ) -> JointTrajectory | None:
        """Return the trajectory that ends a running one, with the joints as measured; else None.

        faulted: a controller that should be at rest elsewhere may still run an earlier one.
        """
        if self._halted or not self.runs_plans:
            return None
        return self.trajectories.halted(measured(), self._late(self.trajectories.time), faulted)

    def emit(self, setpoint: Setpoint | None, hold_trajectory: JointTrajectory | None = None) -> Setpoint | None:
        """Send a setpoint and return it. None: commands end, with hold_trajectory."""
        if setpoint is not None:
            for output in self._outputs:
                output.take(setpoint)
        elif not self._halted:
            for output in self._outputs:
                output.halted(hold_trajectory)
        self._halted = setpoint is None
        return setpoint
