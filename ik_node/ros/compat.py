# SPDX-License-Identifier: Apache-2.0
"""Private parts of rclpy that ik_node uses, checked by test_compat.py, and packages that may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.subscription import Subscription

MessageInfo = Mapping[str, Any]  # source_timestamp, received_timestamp [ns], publication_sequence_number
RCLError: type[Exception] = rclpy_implementation.RCLError  # rclpy exports it nowhere


def wrap_change_state(node: LifecycleNode, wrapped: Callable[[Any], Any]) -> None:
    """Replace the callback of the service change_state by what wrapped makes of it.

    It gets a group of its own: other callbacks run while it awaits something, and it is not called again.
    """
    service = node._service_change_state
    service.callback = wrapped(service.callback)
    service.callback_group = MutuallyExclusiveCallbackGroup()
    service.callback_group.add_entity(service)


def with_message_info(callback: Callable[[Any, MessageInfo], None]) -> Callable[..., None]:
    """Return a callback of a subscription that gets the MessageInfo: an empty one from rclpy of Humble."""
    if hasattr(Subscription, 'CallbackType'):
        return callback
    return lambda message: callback(message, {})


def given_parameters(node: Node) -> Mapping[str, Any]:
    """Return the parameters that a node was started with, declared or not."""
    given: Mapping[str, Any] = getattr(node, '_parameter_overrides', {})
    return given


def installed(module: str, name: str) -> Any:
    """Return a message, service or class of a ROS package, or None if the package is not installed."""
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        return None
