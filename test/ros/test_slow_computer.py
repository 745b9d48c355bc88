# SPDX-License-Identifier: Apache-2.0
"""Late measurements slow the arm down or stop it, and are named as the reason."""

from __future__ import annotations

from collections import deque

import pytest
from node_harness import Client, running
from rclpy.time import Time
from sensor_msgs.msg import JointState
from small_arm import ARM_JOINTS, arm_urdf

SLOW = 'the computer or the driver is too slow'
REMAPPED = ['--ros-args', '-r', 'joint_states:=joint_commands', '-r', 'measured_joint_states:=joint_states']
LATE = 0.4  # [s]


class LateDriver:
    """Joints that follow at once, and whose measurements come LATE, with stamps of a clock or without."""

    def __init__(self, client: Client, stamps: str) -> None:
        self._client, self._stamps = client, stamps
        self._sent: deque[JointState] = deque()
        self.newest = JointState(name=list(ARM_JOINTS), position=[0.0] * 5)
        node = client.node
        self._publisher = node.create_publisher(JointState, 'joint_states', 10)
        node.create_subscription(JointState, 'joint_commands', self._take, 10)
        node.create_timer(0.01, self._publish)

    def _take(self, message: JointState) -> None:
        self.newest = message

    def _publish(self) -> None:
        message = JointState(name=list(self.newest.name), position=list(self.newest.position))
        message.header.stamp = self._client.now().to_msg()
        self._sent.append(message)
        now = self._client.now().nanoseconds
        while self._sent and Time.from_msg(self._sent[0].header.stamp).nanoseconds <= now - LATE * 1e9:
            late = self._sent.popleft()
            if self._stamps != 'true':
                late.header.stamp = Time(seconds=0 if self._stamps == 'none' else 1234).to_msg()
            self._publisher.publish(late)


@pytest.mark.parametrize('stamps', ['true', 'none', 'other clock'])
def test_measurements_are_compared_with_what_was_commanded_at_their_stamp(stamps):
    # 2 rad/s: without the stamps a joint is 0.6 rad away.
    with running(
        arm_urdf(), ready=False, cli_args=REMAPPED, speed_scaling=1.0, measured_timeout=10.0
    ) as client:
        client.wait(lambda: client.statuses, 'the node to wait')
        LateDriver(client, stamps)
        client.wait(lambda: client.said()['state'] == 'ready', 'measured joints')
        client.send('goal_joints', client.joints(yaw=-2.4))
        client.wait(lambda: client.said()['state'] in ('arrived', 'faulted'), 'the end')
        messages = [status.message for status in client.statuses]
        if stamps == 'true':
            assert client.said()['state'] == 'arrived'
            assert any(SLOW in message for message in messages)
        else:
            assert 'joint "yaw" is' in messages[-1]
