# SPDX-License-Identifier: Apache-2.0
"""joint_states: every sample as a JointState message, for display or as commands for a driver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from ik_node.control.outputs.outputs import Output
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.ros.conversions import joint_state
from ik_node.ros.goals.node_time import NodeTime
from ik_node.ros.qos import STREAM


class JointStates(Output):
    """Publishes the samples of all arms of a robot as one message on joint_states."""

    def __init__(self, node: Node, time: NodeTime, hold_back: Callable[[], bool]) -> None:
        """hold_back(): whether a sample must not be published, since a driver may just have started."""
        self._time, self._hold_back = time, hold_back
        self._publisher = node.create_publisher(JointState, 'joint_states', STREAM)
        self._samples: list[Setpoint] = []

    def sampled(self, sample: Setpoint) -> None:
        """Take the sample of one arm."""
        self._samples.append(sample)

    def publish(self) -> None:
        """Publish what was taken, if anything was."""
        samples, self._samples = self._samples, []
        if not samples:
            return
        names = [name for sample in samples for name in sample.names]
        positions = np.concatenate([sample.positions for sample in samples])
        velocities = np.concatenate([sample.velocities for sample in samples])
        message = joint_state(self._time.stamp(samples[0].time), names, positions, velocities)
        if not self._hold_back():
            self._publisher.publish(message)
