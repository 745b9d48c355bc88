# SPDX-License-Identifier: Apache-2.0
"""Nodes whose callbacks run in a thread of the test."""

from __future__ import annotations

import threading

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

LONGEST = 60.0  # [s] that a callback may take


class Spinning:
    """Spins nodes of one context until its end; they are destroyed by whoever made them."""

    def __init__(self, *nodes: Node) -> None:
        self._executor = SingleThreadedExecutor(context=nodes[0].context)
        for node in nodes:
            self._executor.add_node(node)
        self._thread = threading.Thread(target=self._executor.spin, daemon=True)
        self._thread.start()

    def add(self, node: Node) -> None:
        """Spin another node along."""
        self._executor.add_node(node)

    def end(self) -> None:
        """Spin no more."""
        self._executor.shutdown()
        self._thread.join(timeout=LONGEST)
