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
OPEN = 0.05  # [s]: the executor waits for the events in the rounds that begin within this time


class Seldom(CallbackGroup):
    """Keeps the events of a node out of what the executor waits for, except for a moment every second.

    Every publisher and subscription warns of others with an incompatible quality of service by two such
    events. They happen rarely, and rclpy prepares all of them anew for every message that is received: most
    of what a message costs. An event that has happened stays until it is taken, so that none is lost.
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
