# SPDX-License-Identifier: Apache-2.0
"""What the main thread of ik_node must survive or not wait for: bad messages, transitions in mid-motion."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import rclpy
from builtin_interfaces.msg import Time
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from node_harness import Client
from processes import Running, start_node
from rosgraph_msgs.msg import Clock


@contextmanager
def simulated(tmp_path) -> Iterator[tuple[Running, Client]]:
    """A node in a process of its own on simulated time, which goes on."""
    running = start_node(tmp_path, 'use_sim_time:=true')
    context = rclpy.Context()
    context.init(domain_id=running.domain)
    client = Client(context)
    clock = client.node.create_publisher(Clock, '/clock', 10)
    hundredths = count(100_000)

    def tick() -> None:
        sec, part = divmod(next(hundredths), 100)
        clock.publish(Clock(clock=Time(sec=sec, nanosec=part * 10_000_000)))

    timer = client.node.create_timer(0.01, tick)
    try:
        client.wait(lambda: client.samples, 'joint_states')
        yield running, client
    finally:
        client.node.destroy_timer(timer)
        client.close()
        context.try_shutdown()
        running.end()


def change(client: Client, transition: int) -> bool:
    request = ChangeState.Request(transition=Transition(id=transition))
    return client._call(ChangeState, 'ik_node/change_state', request).success


def test_impossible_times_and_transitions_do_not_end_the_node(tmp_path):
    with simulated(tmp_path) as (running, client):
        clock = client.node.create_publisher(Clock, '/clock', 10)

        def rejected() -> bool:
            clock.publish(Clock(clock=Time(sec=-5)))  # again and again: the node takes /clock as best effort
            return 'rclpy cannot read it: ValueError' in running.said

        client.wait(rejected, 'a line about the time')
        assert not change(client, Transition.TRANSITION_ACTIVATE)  # it is active already
        seen = len(client.samples)
        client.wait(lambda: len(client.samples) > seen + 10, 'more joint_states')
        assert running.process.poll() is None
        assert 'Traceback' not in running.said


def test_a_moving_arm_can_be_deactivated_on_simulated_time(tmp_path):
    """While the transition waits for rest, the node hears no /clock, by which the arm brakes."""
    with simulated(tmp_path) as (_, client):
        client.answer('goal_joints', client.joints(yaw=2.0))
        client.wait(lambda: client.position('yaw')[0] > 0.3, 'the yaw')
        assert change(client, Transition.TRANSITION_DEACTIVATE)
        client.wait(lambda: not any(client.samples[-1].velocity), 'the joints to rest')
        assert client.position('yaw')[0] < 1.5
        assert change(client, Transition.TRANSITION_ACTIVATE)
        assert client.answer('goal_joints', client.joints(yaw=0.0)).message.startswith('solved')
