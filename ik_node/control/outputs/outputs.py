# SPDX-License-Identifier: Apache-2.0
"""Output: the interface of everything that receives the commands of an arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ik_node.control.outputs.joint_trajectory import JointTrajectory
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.control.outputs.trajectory_streamer import TrajectoryStreamer

MAX_DELAY = 0.5  # [s] for which trajectories may come too late: the controller moves on along the last one


class Output:
    """Receives setpoints; may ignore any of them.

    runs_plans: what is connected is sent the trajectories of the setpoints, and carries on with the last one
    when no setpoints follow. only_listed: it moves only the joints of the controller.
    """

    runs_plans = only_listed = False

    def late(self, time: float) -> float:  # noqa: ARG002
        """Return how late [s] what is sent now would come for a setpoint of a time [s]."""
        return 0.0

    def take(self, setpoint: Setpoint) -> None:
        """Receive the next setpoint of the motion."""

    def done(self) -> bool:
        """Whether what was sent is carried out, as far as the controller tells."""
        return True

    def halted(self, stand: JointTrajectory | None) -> None:
        """End whatever still moves: no setpoint follows, and the last trajectory is void.

        stand: ends it where the joints are measured; None if no trajectory is under way.
        """


class Outputs:
    """All outputs of an arm. trajectories: for those that run plans, None without any."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self._outputs = tuple(outputs)
        self._halted = True
        self._late_since = math.inf  # since when trajectories come too late [s]
        self.runs_plans = any(output.runs_plans for output in self._outputs)
        self.only_listed = any(output.only_listed for output in self._outputs)
        self.trajectories = TrajectoryStreamer() if self.runs_plans else None

    def done(self) -> bool:
        """Whether what was sent is carried out, as far as controllers tell."""
        return all(output.done() for output in self._outputs)

    def carry_on(self, time: float) -> bool:
        """Whether a controller moves on at time [s] without setpoints."""
        return self.trajectories is not None and self.trajectories.under_way(time)

    def halting(self, time: float) -> bool:
        """Whether a controller is still on its way to where it was halted."""
        return self.trajectories is not None and self.trajectories.halting(time)

    def _late(self, time: float) -> float:
        return max(output.late(time) for output in self._outputs)

    def in_time(self, setpoint: Setpoint | None) -> tuple[Setpoint | None, str]:
        """Return the setpoint without a trajectory that would come too late: the next setpoint may do.

        The controller moves on along the last one. No setpoint and why, if that lasts: then the arm is halted
        where it is measured. A controller at rest begins when it is sent something.
        """
        trajectories = self.trajectories
        if setpoint is None or setpoint.trajectory is None or trajectories is None:
            return setpoint, ''
        late = self._late(setpoint.time)
        if not trajectories.replaces:
            return replace(setpoint, trajectory=trajectories.postponed(late)), ''
        if late <= trajectories.slack:
            self._late_since = math.inf
            return setpoint, ''
        # Once may be chance; the next time the controller gets it as late again.
        trajectories.withdraw(late if self._late_since <= setpoint.time else 0.0)
        if not self._late_since <= setpoint.time:  # or the clock was set back
            self._late_since = setpoint.time
        if setpoint.time - self._late_since > MAX_DELAY:
            self._late_since = math.inf
            return None, f'trajectory dropped: {late:.3f} s late, the computer is overloaded'
        return replace(setpoint, trajectory=None), ''

    def drop(self, setpoint: Setpoint) -> None:
        """Take back a setpoint that does not go out: the motion that it belongs to has ended meanwhile."""
        if setpoint.trajectory is not None and self.trajectories is not None:
            self.trajectories.withdraw()

    def hold_trajectory(self, measured: Callable[[], Mapping[str, float]]) -> JointTrajectory | None:
        """Return what ends a trajectory that is under way, with the joints as measured; else None."""
        if self._halted or self.trajectories is None:
            return None
        return self.trajectories.halted(measured(), self._late(self.trajectories.time))

    def emit(self, setpoint: Setpoint | None, stand: JointTrajectory | None = None) -> Setpoint | None:
        """Pass on a setpoint and return it. None: commands end, with what stand returned."""
        if setpoint is not None:
            for output in self._outputs:
                output.take(setpoint)
        elif not self._halted:
            for output in self._outputs:
                output.halted(stand)
        self._halted = setpoint is None
        return setpoint
