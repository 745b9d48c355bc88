# SPDX-License-Identifier: Apache-2.0
"""Every entry of compat.py, with the rclpy that is installed."""

from __future__ import annotations

import pytest
import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode
from rclpy.parameter import Parameter

from ik_node.ros.compat import RCLError, given_parameters, wrap_change_state


@pytest.fixture
def node():
    context = rclpy.Context()
    rclpy.init(context=context)
    node = LifecycleNode('inside', context=context, parameter_overrides=[Parameter('speed', value=2.0)])
    yield node
    node.destroy_node()
    rclpy.shutdown(context=context)


def test_parameters_that_nobody_declared_are_known(node):
    assert given_parameters(node)['speed'].value == 2.0


def test_the_callback_of_change_state_is_wrapped_and_raises_rclerror_without_such_a_transition(node):
    before = []
    wrap_change_state(node, lambda change: before.append(change) or (lambda *_: 'wrapped'))
    assert node._service_change_state.callback(None, None) == 'wrapped'
    request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_DEACTIVATE))
    with pytest.raises(RCLError):
        before[0](request, ChangeState.Response())
