# SPDX-License-Identifier: Apache-2.0
"""Waiting for what other threads, processes and services do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from ik_node.steady import steady


def wait_for(
    condition: Callable[[], Any],
    what: str,
    timeout: float,
    *,
    every: float = 0.01,
    alive: Callable[[], bool] = lambda: True,
    context: Callable[[], Any] = lambda: '',
) -> Any:
    """Return what condition returns once that is true.

    Fail after timeout [s], or if condition is false though nothing is alive any more that could change it;
    context says what is known by then.
    """
    end = time.monotonic() + timeout
    while True:
        may_change = time.monotonic() < end and alive()
        found = condition()
        if found:
            return found
        assert may_change, f'waited for {what}, at most {timeout} s: {context()}'
        time.sleep(every)


AGAIN = 10.0  # s


def answer_of(client: Any, request: Any, wait: Callable[[Callable[[], Any], str], Any], name: str) -> Any:
    """Return the answer of a service, which is asked again after a while.

    A node discards an answer to a client that it has not discovered within 0.1 s, even if the client has
    discovered its service. wait: returns what a condition returns once that is true.
    """
    wait(client.service_is_ready, name)
    futures: list[Any] = []
    due = 0.0

    def answered() -> Any:
        nonlocal due
        if steady() > due:
            futures.append(client.call_async(request))
            due = steady() + AGAIN
        return next((future for future in futures if future.done()), None)

    return wait(answered, f'the answer of {name}').result()


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
