"""TrajectoryOutput: what the outputs to a joint_trajectory_controller of ros2_control share."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage
from trajectory_msgs.msg import JointTrajectoryPoint

from ik_node.control.controller_trajectories import JOIN, LAG, JointTrajectory, Trajectories
from ik_node.control.outputs import Output, Plan, Sample
from ik_node.ros.conversions import NS_PER_S
from ik_node.ros.outputs.context import OutputContext


def trajectory_message(trajectory: JointTrajectory) -> JointTrajectoryMessage:
    """Return the message; its stamp is zero: the motion begins when the controller receives it."""
    rows = zip(
        trajectory.times.tolist(), trajectory.positions.tolist(), trajectory.velocities.tolist(), strict=True
    )
    points = [
        JointTrajectoryPoint(positions=positions, velocities=velocities, time_from_start=_duration(time))
        for time, positions, velocities in rows
    ]
    return JointTrajectoryMessage(joint_names=list(trajectory.names), points=points)


def _duration(seconds: float) -> Duration:
    sec, nanosec = divmod(round(seconds * NS_PER_S), NS_PER_S)
    return Duration(sec=sec, nanosec=nanosec)


LATE = JOIN - LAG  # [s] after its sample: a controller that moves on is then farther than the first point
LOST = 0.15  # [s] without the plan of a sample, after which a controller may be too far from it


class TrajectoryOutput(Output):
    """Turns plans into trajectories; a subclass sends them."""

    runs_plans = True

    def __init__(self, context: OutputContext) -> None:
        self._context = context
        self._trajectories = Trajectories()
        self._due_since: float | None = None  # the first sample of plans that the controller does not have

    def send(self, message: JointTrajectoryMessage, braking: bool) -> None:
        """Send a trajectory. braking: it only ends an earlier one."""
        raise NotImplementedError

    def planned(self, plan: Plan) -> None:
        """Note that the plan has changed."""
        self._trajectories.planned(plan)

    def carries_on(self, time: float) -> bool:
        """Whether the controller is under way at time [s]."""
        return time < self._trajectories.ends

    def sampled(self, sample: Sample) -> None:
        """Send the trajectory that is due, if any; one that is late is left to the next sample."""
        before = copy(self._trajectories)
        trajectory = self._trajectories.sampled(sample)
        if trajectory is None and not self._trajectories.due:
            return
        since = self._due_since = sample.time if self._due_since is None else self._due_since
        if trajectory is None:
            return
        message = trajectory_message(trajectory)
        if self._late(sample) > LATE:
            self._trajectories = before
            return
        self._due_since = None
        waited = sample.time - since if before.ends > since else 0.0
        if waited <= LOST:
            self.send(message, sample.plan is not None and sample.plan.braking)
            waited = self._late(sample)
        if waited > LOST:
            reason = f'a trajectory was {waited:.3f} s late, this computer is too busy'
            self._context.fail(reason, True)

    def _late(self, sample: Sample) -> float:
        return self._context.time.now() - sample.time

    def halted(self, measured: Mapping[str, float]) -> None:
        """Hold the joints where they are."""
        trajectory = self._trajectories.halted(measured)
        if trajectory is not None:
            self.send(trajectory_message(trajectory), True)
