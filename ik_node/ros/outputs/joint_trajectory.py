# SPDX-License-Identifier: Apache-2.0
"""joint_trajectory: whole motions for the topic of a joint_trajectory_controller of ros2_control."""

from __future__ import annotations

from trajectory_msgs.msg import JointTrajectory

from ik_node.ros.interfaces import JOINT_TRAJECTORY
from ik_node.ros.outputs.trajectory_output import TrajectoryOutput

from .context import OutputContext


class JointTrajectoryTopic(TrajectoryOutput):
    """Publishes each plan on joint_trajectory."""

    def __init__(self, context: OutputContext) -> None:
        super().__init__(context)
        self._publisher = context.publisher(JOINT_TRAJECTORY)

    def send(self, message: JointTrajectory, braking: bool) -> None:  # noqa: ARG002
        """Publish a trajectory."""
        self._publisher.publish(message)
        if self._publisher.get_subscription_count() == 0:
            self._context.fault(f'no controller subscribes to {self._publisher.topic_name}')
