# SPDX-License-Identifier: Apache-2.0
"""Seldom: a callback group for events that may wait a second."""

from __future__ import annotations

import time
from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

PERIOD = 1.0  # [s]
OPEN = 0.05  # [s] for which the executor waits for the events


class Seldom(CallbackGroup):
    """Excludes the events of a node from the wait set of the executor, except briefly every second.

    Every publisher and subscription has two such events for incompatible qualities of service. They are rare,
    but rclpy prepares all of them again for every message, which is most of the cost of a message. An event
    stays available until it is taken, so none is lost.
    """

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node, self._until = node, 0.0
        node.create_timer(PERIOD, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _look(self) -> None:
        """Let the executor take what has happened, and keep the events of what was created since."""
        entities: list[Any] = [*self._node.publishers, *self._node.subscriptions]
        for entity in entities:
            for handler in entity.event_handlers:
                if handler.callback_group is not self:
                    handler.callback_group = self
                    self.add_entity(handler)
        self._until = time.monotonic() + OPEN

    def can_execute(self, entity: Any) -> bool:  # noqa: ARG002
        """Whether the executor may wait for these events now."""
        return time.monotonic() < self._until

    def beginning_execution(self, entity: Any) -> bool:  # noqa: ARG002
        """Allow it."""
        return True

    def ending_execution(self, entity: Any) -> None:
        """Do nothing."""
