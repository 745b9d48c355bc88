# SPDX-License-Identifier: Apache-2.0
"""Events of publishers and subscriptions: not waited for with every message, and not lost."""

from __future__ import annotations

from geometry_msgs.msg import PoseStamped
from node_harness import running
from rclpy.qos import QoSProfile, ReliabilityPolicy
from small_arm import arm_urdf


def handlers(node):
    entities = (*node.publishers, *node.subscriptions)
    return [handler for entity in entities for handler in entity.event_handlers]


def test_an_incompatible_publisher_is_warned_of_although_the_executor_seldom_looks(capfd):
    with running(arm_urdf()) as client:
        mark = len(client.diagnostics)
        client.wait(lambda: len(client.diagnostics) > mark + 1, 'diagnostics')
        groups = {handler.callback_group for handler in handlers(client.served)}
        assert groups == {client.served._rare_events}
        unreliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        client.node.create_publisher(PoseStamped, 'goal_pose', unreliable)
        said = ''

        def warned():
            nonlocal said
            said += capfd.readouterr().err
            return "on topic 'goal_pose', offering incompatible QoS" in said

        client.wait(warned, 'the warning of ik_node')


def test_between_two_looks_no_event_is_waited_for():
    with running(arm_urdf()) as client:
        mark = len(client.diagnostics)
        client.wait(lambda: len(client.diagnostics) > mark + 1, 'diagnostics')
        found = handlers(client.served)
        assert len(found) > 20
        for look in (True, False, True, False):
            client.wait(
                lambda look=look: all(h.callback_group.can_execute(h) == look for h in found),
                'a look' if look else 'the end of a look',
            )
