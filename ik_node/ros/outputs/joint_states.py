"""joint_states: every sample as a JointState message, for display or as commands for a driver."""

from __future__ import annotations

from typing import Any

from sensor_msgs.msg import JointState

from ik_node.control.outputs import Plan, Sample
from ik_node.ros.conversions import joint_state
from ik_node.ros.node_time import NodeTime
from ik_node.ros.qos import STREAM


class JointStates:
    """Publishes samples on joint_states."""

    def __init__(self, node: Any, time: NodeTime) -> None:
        self._time = time
        self._publisher = node.create_publisher(JointState, 'joint_states', STREAM)

    def planned(self, plan: Plan) -> None:
        """Ignore plans: the samples are enough."""

    def sampled(self, sample: Sample) -> None:
        """Publish a sample."""
        stamp = self._time.stamp(sample.time)
        self._publisher.publish(joint_state(stamp, sample.names, sample.positions, sample.velocities))
