# SPDX-License-Identifier: Apache-2.0
"""Events of publishers and subscriptions: not waited for with every message, and not lost."""

from __future__ import annotations

import rclpy
from domains import new_domain
from geometry_msgs.msg import PoseStamped
from node_harness import TIMEOUT, running
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from small_arm import arm_urdf
from waiting import wait_for

from ik_node.ros.node.rare_events import RareEvents
from ik_node.ros.qos import GOAL_QOS


def handlers(node):
    entities = (*node.publishers, *node.subscriptions)
    return [handler for entity in entities for handler in entity.event_handlers]


def test_an_incompatible_publisher_is_warned_of_although_the_executor_seldom_looks(capfd):
    context = rclpy.Context()
    context.init(domain_id=new_domain())
    node = Node('listener', context=context)
    events = RareEvents(node)
    node.create_subscription(PoseStamped, 'goal_pose', print, GOAL_QOS)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    said = ''

    def kept():
        executor.spin_once(0.1)
        return all(handler.callback_group is events for handler in handlers(node))

    wait_for(kept, 'the first look', TIMEOUT)
    other = Node('other', context=context)
    unreliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    other.create_publisher(PoseStamped, 'goal_pose', unreliable)

    def warned():
        nonlocal said
        executor.spin_once(0.1)
        said += capfd.readouterr().err
        return "on topic 'goal_pose', offering incompatible QoS" in said

    wait_for(warned, 'the warning', TIMEOUT)
    executor.shutdown()
    other.destroy_node()
    node.destroy_node()
    context.try_shutdown()


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
