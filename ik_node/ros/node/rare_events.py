# SPDX-License-Identifier: Apache-2.0
"""RareEvents: a callback group for events that may wait a second."""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

PERIOD = 1.0  # [s] between two looks
OPEN = 0.05  # [s] for which a look lasts at least


class RareEvents(CallbackGroup):
    """Excludes the events of a node from the wait set of the executor, except briefly every second.

    Every publisher and subscription has two such events for incompatible qualities of service. They are rare,
    but rclpy prepares all of them again for every message, which is most of the cost of a message. An event
    stays available until it is taken, so none is lost.

    One timer begins and ends each look. The executor runs timers after events, so it has waited for all
    events at least once between the two, however late it is.
    """

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node, self._open = node, False
        self._timer = node.create_timer(PERIOD, self._turn, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _turn(self) -> None:
        """Begin a look, or end it."""
        self._open = not self._open
        self._timer.timer_period_ns = round((OPEN if self._open else PERIOD) * 1e9)
        self._timer.reset()
        if self._open:
            self._keep()

    def _keep(self) -> None:
        """Keep the events of what was created since the last look too."""
        entities: list[Any] = [*self._node.publishers, *self._node.subscriptions]
        for entity in entities:
            for handler in entity.event_handlers:
                if handler.callback_group is not self:
                    handler.callback_group = self
                    self.add_entity(handler)

    def can_execute(self, entity: Any) -> bool:  # noqa: ARG002
        """Whether the executor may wait for these events now."""
        return self._open

    def beginning_execution(self, entity: Any) -> bool:  # noqa: ARG002
        """Allow it."""
        return True

    def ending_execution(self, entity: Any) -> None:
        """Do nothing."""
