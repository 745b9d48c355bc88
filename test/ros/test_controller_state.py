# SPDX-License-Identifier: Apache-2.0
"""What a trajectory controller reports about itself."""

from types import SimpleNamespace

import pytest
from std_msgs.msg import String

from ik_node.ros.interfaces import CONTROLLER_STATE
from ik_node.ros.outputs.context import OutputContext
from ik_node.ros.outputs.joint_trajectory import JointTrajectoryTopic


@pytest.fixture
def subscribed(monkeypatch):
    """An output to the controller "arm", and its callback for the state of the controller."""
    monkeypatch.setitem(CONTROLLER_STATE.__dict__, 'type', String)  # control_msgs may be missing
    callbacks = {}
    node = SimpleNamespace(
        create_publisher=lambda *_, **__: None,
        create_subscription=lambda _, name, callback, *__, **___: callbacks.update({name: callback}),
    )
    time, clocks = SimpleNamespace(now=lambda: 1.0), SimpleNamespace(agree=True)
    context = OutputContext(node, '', 'arm', time, clocks, pytest.fail, pytest.fail)
    JointTrajectoryTopic(context)
    return context, callbacks


def test_its_state_is_no_topic_on_which_the_arm_is_commanded(subscribed):
    context, callbacks = subscribed
    assert context.commanded == ['arm/joint_trajectory']
    assert list(callbacks) == ['arm/controller_state']


@pytest.mark.parametrize('data', [b'', b'\x00' * 3, bytes(200)])
def test_a_state_that_rclpy_cannot_read_is_ignored(subscribed, data):
    _, callbacks = subscribed
    callbacks['arm/controller_state'](data)
