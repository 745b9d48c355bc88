# SPDX-License-Identifier: Apache-2.0
"""joint_states: every setpoint as a JointState message, for display or as commands for a driver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rclpy.node import Node

from ik_node.control.outputs.outputs import Output
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.ros.conversions import joint_state
from ik_node.ros.goals.node_time import NodeTime
from ik_node.ros.interfaces import JOINT_STATES


class JointStates(Output):
    """Publishes the setpoints of all arms of a robot as one message on joint_states."""

    def __init__(self, node: Node, time: NodeTime, hold_back: Callable[[], bool]) -> None:
        """hold_back(): whether a setpoint must not be published, because a driver may just have started."""
        self._time, self._hold_back = time, hold_back
        self._publisher = JOINT_STATES.publisher(node)
        self._setpoints: list[Setpoint] = []

    def take(self, setpoint: Setpoint) -> None:
        """Take the setpoint of one arm."""
        self._setpoints.append(setpoint)

    def publish(self) -> None:
        """Publish the setpoints taken since the last call, if any."""
        setpoints, self._setpoints = self._setpoints, []
        if not setpoints:
            return
        names = [name for setpoint in setpoints for name in setpoint.names]
        positions = np.concatenate([setpoint.positions for setpoint in setpoints])
        velocities = np.concatenate([setpoint.velocities for setpoint in setpoints])
        message = joint_state(self._time.stamp(setpoints[0].time), names, positions, velocities)
        if not self._hold_back():
            self._publisher.publish(message)
