"""joint_states: every sample as a JointState message, for display or as commands for a driver."""

from __future__ import annotations

from sensor_msgs.msg import JointState

from ik_node.control.outputs import Output, Sample
from ik_node.ros.conversions import joint_state
from ik_node.ros.outputs.context import OutputContext
from ik_node.ros.qos import STREAM


class JointStates(Output):
    """Publishes samples on joint_states."""

    def __init__(self, context: OutputContext) -> None:
        self._time = context.time
        self._hold_back = context.hold_back
        self._publisher = context.node.create_publisher(JointState, 'joint_states', STREAM)

    def sampled(self, sample: Sample) -> None:
        """Publish a sample."""
        stamp = self._time.stamp(sample.time)
        message = joint_state(stamp, sample.names, sample.positions, sample.velocities)
        if not self._hold_back():
            self._publisher.publish(message)
