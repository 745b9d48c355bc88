"""TrajectoryOutput: what the outputs to a joint_trajectory_controller of ros2_control share."""

from __future__ import annotations

from collections.abc import Mapping

from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage
from trajectory_msgs.msg import JointTrajectoryPoint

from ik_node.control.controller_trajectories import JointTrajectory, Trajectories
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


class TrajectoryOutput(Output):
    """Turns plans into trajectories; a subclass sends them."""

    runs_plans = True

    def __init__(self, context: OutputContext) -> None:
        self._context = context
        self._trajectories = Trajectories()

    def send(self, message: JointTrajectoryMessage, braking: bool) -> None:
        """Send a trajectory. braking: it only ends an earlier one."""
        raise NotImplementedError

    def planned(self, plan: Plan) -> None:
        """Note that the plan has changed."""
        self._trajectories.planned(plan)

    def sampled(self, sample: Sample) -> None:
        """Send the trajectory that is due, if any."""
        trajectory = self._trajectories.sampled(sample)
        if trajectory is not None:
            self.send(trajectory_message(trajectory), sample.plan is not None and sample.plan.braking)

    def halted(self, measured: Mapping[str, float]) -> None:
        """Hold the joints where they are."""
        trajectory = self._trajectories.halted(measured)
        if trajectory is not None:
            self.send(trajectory_message(trajectory), True)
