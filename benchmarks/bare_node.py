# SPDX-License-Identifier: Apache-2.0
"""What a node costs at least: publishes five joints at 100 Hz and hears goals; cost.py compares with it."""

from __future__ import annotations

import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

RATE = 100.0  # [Hz] of joint_states, the default of ik_node
JOINTS = ['joint1', 'joint2', 'joint3', 'joint4', 'joint5']


class BareNode(Node):
    """A timer, a publisher and a subscription."""

    def __init__(self) -> None:
        super().__init__('bare')
        self._states = self.create_publisher(JointState, 'bare/joint_states', 10)
        self.create_subscription(PoseStamped, 'bare/goal_pose', self._hear, 10)
        self.create_timer(1.0 / RATE, self._publish)

    def _hear(self, message: PoseStamped) -> None:
        self._goal = message

    def _publish(self) -> None:
        message = JointState(name=JOINTS, position=[0.0] * 5, velocity=[0.0] * 5)
        message.header.stamp = self.get_clock().now().to_msg()
        self._states.publish(message)


def main() -> None:
    """Spin until the process is ended."""
    rclpy.init()
    rclpy.spin(BareNode())


if __name__ == '__main__':
    main()
