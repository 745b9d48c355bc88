# SPDX-License-Identifier: Apache-2.0
"""Polled: subscriptions that do not wake the executor, for a display that is slower than its topics."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakSet

from rclpy.callback_groups import CallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.subscription import Subscription


class Polled(CallbackGroup):
    """A callback group of subscriptions, whose messages wait until deliver is called.

    A subscription keeps as many of them as the depth of its history.
    """

    def __init__(self) -> None:
        super().__init__()
        self._subscriptions: WeakSet[Subscription] = WeakSet()

    def add_entity(self, entity: Any) -> None:
        """Add a subscription, or its events, which nobody handles."""
        super().add_entity(entity)
        if isinstance(entity, Subscription):
            self._subscriptions.add(entity)

    def can_execute(self, entity: Any) -> bool:  # noqa: ARG002
        """Return False: the executor waits for none of them.

        Not for events either: a message that waits would wake it for these, again and again.
        """
        return False

    def deliver(self) -> None:
        """Call the callbacks with all messages that wait."""
        for subscription in list(self._subscriptions):
            with suppress(InvalidHandle):  # it was destroyed
                while (message := _take(subscription)) is not None:
                    subscription.callback(message)


def _take(subscription: Any) -> Any:
    """Return the next message of a subscription, None if none waits."""
    with subscription.handle:
        taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
    return taken and taken[0]
