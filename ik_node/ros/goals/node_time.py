# SPDX-License-Identifier: Apache-2.0
"""NodeTime: a node's clock as seconds since it started, exact to the nanosecond."""

from __future__ import annotations

from builtin_interfaces.msg import Time as Stamp
from rclpy.node import Node

from ik_node.ros.conversions import NS_PER_S

NO_CLOCK = 'use_sim_time is true, but no /clock message has been received: the arm does not move'


class NodeTime:
    """Seconds since 1970 need so many digits that a float rounds them to a quarter of a microsecond."""

    def __init__(self, node: Node) -> None:
        self._clock = node.get_clock()
        self._start = self.now_ns()

    def now_ns(self) -> int:
        """Return the node's clock [ns]."""
        return int(self._clock.now().nanoseconds)

    @property
    def stands(self) -> bool:
        """Whether the time is simulated and no /clock message has been received."""
        return self.now_ns() == 0

    def now(self) -> float:
        """Return the time since the start [s]."""
        return self.seconds(self.now_ns())

    def seconds(self, nanoseconds: int) -> float:
        """Return the time since the start [s] of a time of the node's clock [ns]."""
        return (nanoseconds - self._start) / NS_PER_S

    def nanoseconds(self, seconds: float) -> int:
        """Return the time of the node's clock [ns] of a time since the start [s]."""
        return self._start + round(seconds * NS_PER_S)

    def of(self, stamp: Stamp) -> float | None:
        """Return the time since the start [s] of the stamp of a message, None if that is zero."""
        nanoseconds = stamp.sec * NS_PER_S + stamp.nanosec
        return self.seconds(nanoseconds) if nanoseconds else None

    def stamp(self, seconds: float) -> Stamp:
        """Return the stamp of a time since the start [s]."""
        sec, nanosec = divmod(self.nanoseconds(seconds), NS_PER_S)
        return Stamp(sec=sec, nanosec=nanosec)
