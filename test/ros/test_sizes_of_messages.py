# SPDX-License-Identifier: Apache-2.0
"""Programs refuse messages that are too large before rclpy converts them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from ik_node.ros import interfaces
from ik_node.ros.interfaces import MANY_JOINTS, subscribe

PACKAGE = Path(interfaces.__file__).parents[1]


class Listener:
    """What a subscription needs of a node."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def create_subscription(self, _kind, _name, callback, _qos, **options):
        assert options['raw']
        return callback

    def get_logger(self):
        return self

    def error(self, sentence):
        self.said.append(sentence)


@pytest.mark.parametrize('size', [1, 2])
def test_a_large_message_is_refused_before_it_is_converted(size):
    node, heard = Listener(), []
    take = subscribe(node, JointState, 'joint_states', heard.append, QoSProfile(depth=1))
    for _ in range(3):
        take(serialize_message(JointState(position=[0.0] * (size * MANY_JOINTS // 16))))
    assert len(heard) == (3 if size == 1 else 0)
    assert len(node.said) == (0 if size == 1 else 1)


def test_no_program_subscribes_without_a_limit():
    known = {'interfaces.py', 'neighbours.py', 'recorder.py', 'status_printer.py', 'trajectory_output.py'}
    found = {
        path.name
        for path in PACKAGE.rglob('*.py')
        if re.search(r'\bcreate_subscription\(', path.read_text(encoding='utf-8'))
    }
    assert found <= known | {'teleop_keys.py'}
