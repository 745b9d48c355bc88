"""SampleLoop: a thread that requests samples at the publish rate, on a real or simulated clock."""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable

from rclpy.node import Node

from ik_node.ros.conversions import NS_PER_S

SIMULATED_WAIT = 0.001  # seconds between two checks of a simulated clock


class SampleLoop:
    """Calls sample(now [ns]) once per period [s] until closed, and half a period early after hurry()."""

    def __init__(self, node: Node, period: Callable[[], float], sample: Callable[[int], None]) -> None:
        self._node, self._period, self._sample = node, period, sample
        self._closing = threading.Event()
        self._set_off = threading.Event()  # an arm at rest has a new target
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def hurry(self) -> None:
        """Shorten the current period, for an arm that starts to move."""
        self._set_off.set()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._set_off.set()
        self._thread.join(timeout=2.0)

    def _run(self) -> None:
        last = due = self._node.get_clock().now().nanoseconds
        while not self._closing.is_set():
            period = int(NS_PER_S * self._period())
            due += period
            now = self._wait_until(due, last, period)
            try:
                self._sample(now)
            except Exception:
                if self._closing.is_set() or not self._node.context.ok():
                    return
                self._node.get_logger().error(
                    f'unexpected error, please report it: {traceback.format_exc()}',
                    throttle_duration_sec=10.0,
                )
            last = now
            if not due <= now < due + period:  # early start, or late after a stall: no burst to catch up
                due = now

    def _wait_until(self, due: int, last: int, period: int) -> int:
        """Wait for the time due [ns], or half a period after the last sample after hurry().

        Returns the time then. A clock that goes back ends the wait too.
        """
        clock = self._node.get_clock()
        simulated = self._node.get_parameter('use_sim_time').value
        while True:
            hurry = self._set_off.is_set()
            until = min(due, last + period // 2) if hurry else due
            now = clock.now().nanoseconds
            if not last <= now < until or self._closing.is_set():
                self._set_off.clear()
                return now
            left = min((until - now) / NS_PER_S, SIMULATED_WAIT if simulated else math.inf)
            if hurry:
                time.sleep(left)
            else:
                self._set_off.wait(left)
