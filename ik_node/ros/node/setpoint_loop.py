# SPDX-License-Identifier: Apache-2.0
"""SetpointLoop: a thread that requests setpoints at the publish rate, on a real or simulated clock."""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections.abc import Callable

from rclpy.node import Node

from ik_node.ros.conversions import NS_PER_S

RATIO = 0.05  # of the ratio of both periods from a whole number; beyond it, setpoints are not synchronised
GAIN = 8  # periods in which most of a phase difference is removed
SIMULATED_WAIT = 0.001  # seconds between two checks of a simulated clock


def in_step(due: int, period: int, begun: int, begun_before: int) -> int:
    """Return when a setpoint synchronised with a controller is due, near a time due [ns].

    Half a period [ns] after the start of a period of the controller, so that jitter does not change the
    period in which a command is used. Its last two began at begun and begun_before [ns].
    """
    ratio = (begun - begun_before) / period
    if ratio < 1.0 - RATIO or abs(ratio - round(ratio)) > RATIO:
        return due
    error = (begun + period - due) % period - period // 2
    return due + error // GAIN


class SetpointLoop:
    """Calls setpoint(due, now [ns]) once per period [s] until closed; send_now() brings one forward."""

    def __init__(self, node: Node, period: Callable[[], float], setpoint: Callable[[int, int], None]) -> None:
        self._node, self._period, self._setpoint = node, period, setpoint
        self._closing = threading.Event()
        self._set_off = threading.Event()  # an arm at rest has a new target
        self._begun: tuple[int, int] | None = None  # the last periods of the controller
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def send_now(self) -> None:
        """Shorten the current period, for an arm that starts to move."""
        self._set_off.set()

    def begun(self, time: int) -> None:
        """Note when a period of the controller has begun [ns], to synchronise the setpoints with it."""
        self._begun = time, self._begun[0] if self._begun else 0

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._set_off.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=2.0)

    def _run(self) -> None:
        last = due = self._node.get_clock().now().nanoseconds
        while not self._closing.is_set():
            period = int(NS_PER_S * self._period())
            due += period
            if self._begun is not None:
                due = in_step(due, period, *self._begun)
            now = self._wait_until(due, last, period)
            # A setpoint for the time when it is due: the thread may wake up late.
            at = due if due <= now < due + period // 2 else now
            try:
                self._setpoint(at, now)
            except Exception:
                if self._closing.is_set() or not self._node.context.ok():
                    return
                self._node.get_logger().error(
                    f'unexpected error, please report it: {traceback.format_exc()}',
                    throttle_duration_sec=10.0,
                )
            last = at
            if not due <= now < due + period:  # early start, or late after a stall: no burst to catch up
                due = now

    def _wait_until(self, due: int, last: int, period: int) -> int:
        """Wait for the time due [ns], or after send_now() for half a period since the last setpoint.

        Returns the present time. A clock that is set back ends the wait too.
        """
        clock = self._node.get_clock()
        simulated = self._node.get_parameter('use_sim_time').value
        while True:
            send_now = self._set_off.is_set()
            until = min(due, last + period // 2) if send_now else due
            now = clock.now().nanoseconds
            if not last <= now < until or self._closing.is_set():
                self._set_off.clear()
                return now
            left = min((until - now) / NS_PER_S, SIMULATED_WAIT if simulated else math.inf)
            if send_now:
                time.sleep(left)
            else:
                self._set_off.wait(left)
