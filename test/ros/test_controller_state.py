# SPDX-License-Identifier: Apache-2.0
"""What a trajectory controller reports about itself."""

import struct
from types import SimpleNamespace

import pytest
from std_msgs.msg import String

from ik_node.ros.interfaces import CONTROLLER_STATE
from ik_node.ros.outputs import trajectory_output
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
    heard: list = []
    time, clocks = SimpleNamespace(now=lambda: 1.0, of=lambda stamp: stamp), SimpleNamespace(agree=True)
    context = OutputContext(node, '', 'arm', time, clocks, pytest.fail, lambda *told: heard.append(told))
    JointTrajectoryTopic(context)
    return context, callbacks, heard


def test_its_state_is_no_topic_on_which_the_arm_is_commanded(subscribed):
    context, callbacks, _ = subscribed
    assert context.commanded == ['arm/joint_trajectory']
    assert list(callbacks) == ['arm/controller_state']


@pytest.mark.parametrize('data', [b'', b'\x00' * 3, bytes(200)])
def test_a_state_that_rclpy_cannot_read_is_ignored(subscribed, data):
    _, callbacks, _ = subscribed
    callbacks['arm/controller_state'](data)


def test_of_states_that_have_waited_together_the_newest_counts(subscribed, monkeypatch):
    _, callbacks, heard = subscribed
    callback = callbacks['arm/controller_state']
    state = SimpleNamespace(joint_names=['yaw'], reference=SimpleNamespace(positions=[0.5]))
    for nanosec in (100_000_000, 102_000_000, 900_000_000):
        stamp = nanosec * 1e-9
        monkeypatch.setattr(
            trajectory_output,
            'deserialize_message',
            lambda *_, stamp=stamp: SimpleNamespace(header=SimpleNamespace(stamp=stamp), **vars(state)),
        )
        callback(b'\x00\x01\x00\x00' + struct.pack('<iI', 0, nanosec) + bytes(20))
    assert [time for _, time, _ in heard] == [0.1, 0.9]
