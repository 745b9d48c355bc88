# SPDX-License-Identifier: Apache-2.0
"""Prints what the nodes report, for a person at a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

OK = b'\0'  # of DiagnosticStatus
HEARD_EVERY = 5.0  # [s] from a report to the next one of the same status, then twice as long each time


class StatusPrinter:
    """What was printed last of one tool."""

    def __init__(self, tool: str, say: Callable[[str], None]) -> None:
        self._say = say
        self._who = f'{tool}: ' if tool else ''
        self._stopped = False
        self._said, self._count, self._next, self._pause = '', 0, 0.0, HEARD_EVERY

    def on_status(self, status: Any) -> None:
        """Print a status unless ik_node logs it or it is a repetition."""
        values = {pair.key: pair.value for pair in status.values}
        self._count += 1
        now = time.monotonic()
        word = f'{values.get("status")} {values.get("state")}'
        if not values.get('goal') or status.level != OK:  # in the log of ik_node, in the same terminal
            self._said = ''
            if 'call ~/resume' in status.message and not self._stopped:
                self._say(f'{self._who}to continue, press Resume on the page, or c in ik_teleop')
            self._stopped = 'call ~/resume' in status.message
            return
        if now < self._next and word == self._said:
            return
        self._pause = 2.0 * self._pause if word == self._said else HEARD_EVERY
        errors = ''
        if values.get('position_error', 'nan') != 'nan':  # of a goal for the tool
            errors = (
                f' ({1e3 * float(values["position_error"]):.3f} mm and '
                f'{float(values["direction_error"]):.5f} rad off; {self._count} goals so far)'
            )
        self._say(f'{self._who}{status.message}{errors}')
        self._said, self._next = word, now + self._pause


class Listener:
    """Prints the status of the goals, at most every HEARD_EVERY seconds while it stays the same.

    tools: their names, empty for one without a name.
    """

    def __init__(self, tools: Sequence[str], say: Callable[[str], None]) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticStatus
        from rclpy.signals import SignalHandlerOptions

        from ik_node.ros.qos import LATCHED

        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
        self._rclpy = rclpy
        self._node = rclpy.create_node('ik_demo')
        for tool in tools or ('',):
            topic = f'ik_node/{tool}/status' if tool else 'ik_node/status'
            self._node.create_subscription(
                DiagnosticStatus, topic, StatusPrinter(tool, say).on_status, LATCHED
            )

    def listen(self, seconds: float) -> None:
        """Listen for that long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._rclpy.spin_once(self._node, timeout_sec=left)

    def close(self) -> None:
        """Stop listening."""
        self._node.destroy_node()
        self._rclpy.utilities.try_shutdown()
