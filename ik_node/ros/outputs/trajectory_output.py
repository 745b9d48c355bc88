"""TrajectoryOutput: what the outputs to a joint_trajectory_controller of ros2_control share."""

from __future__ import annotations

from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMessage
from trajectory_msgs.msg import JointTrajectoryPoint

from ik_node.control.joint_trajectory import JointTrajectory
from ik_node.control.outputs import Output, Sample
from ik_node.ros.conversions import NS_PER_S
from ik_node.ros.outputs.context import OutputContext


def trajectory_message(trajectory: JointTrajectory) -> JointTrajectoryMessage:
    """Return the message; its stamp is zero: the motion begins when the controller receives it."""
    rows = zip(trajectory.times.tolist(), *(row.tolist() for row in trajectory.rows[1:]), strict=True)
    points = [
        JointTrajectoryPoint(
            positions=positions,
            velocities=velocities,
            accelerations=accelerations,
            time_from_start=_duration(time),
        )
        for time, positions, velocities, accelerations in rows
    ]
    return JointTrajectoryMessage(joint_names=list(trajectory.names), points=points)


def _duration(seconds: float) -> Duration:
    sec, nanosec = divmod(round(seconds * NS_PER_S), NS_PER_S)
    return Duration(sec=sec, nanosec=nanosec)


class TrajectoryOutput(Output):
    """Sends trajectories, as a subclass knows how to."""

    runs_plans = True

    def __init__(self, context: OutputContext) -> None:
        self._context = context

    def send(self, message: JointTrajectoryMessage, braking: bool) -> None:
        """Send a trajectory. braking: it only ends an earlier one."""
        raise NotImplementedError

    def late(self, time: float) -> float:
        """Return how late [s] a trajectory would be sent now for a sample of a time [s]."""
        return self._context.time.now() - time

    def sampled(self, sample: Sample) -> None:
        """Send the trajectory that is due, if any."""
        if sample.trajectory is not None:
            self.send(trajectory_message(sample.trajectory), sample.trajectory.braking)

    def halted(self, stand: JointTrajectory | None) -> None:
        """Hold the joints where they are."""
        if stand is not None:
            self.send(trajectory_message(stand), True)
