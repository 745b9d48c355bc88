# SPDX-License-Identifier: Apache-2.0
"""Inbox: a bounded queue of requests from callbacks to one worker. The newest is never lost."""

from __future__ import annotations

import math
import threading
from collections import deque

from ik_node.control.locks import OrderedLock, Rank
from ik_node.control.state.requests import Request
from ik_node.steady import steady

KEPT = 16  # maximum number of queued requests per tool
SLOW = 1.0  # [s] of work on the same requests, after which a condition is reported


class Inbox:
    """Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition(OrderedLock(Rank.INBOX))  # type: ignore[arg-type]
        self._requests: dict[str, deque[Request]] = {}  # by tool
        self._description: str | None = None
        self._changed_settings = False
        self._closed = False
        self._taken = math.inf  # when the requests at work were taken (steady)

    @property
    def slow(self) -> str:
        """A sentence if the worker has been busy with the same requests for a while, else empty."""
        passed = steady() - self._taken
        return f'a goal is still being solved after {passed:.1f} s: later goals wait' if passed > SLOW else ''

    def put(self, request: Request) -> int:
        """Add a request; return how many older ones were dropped to make room."""
        with self._changed:
            waiting = self._requests.setdefault(request.tool, deque(maxlen=KEPT))
            pushed = int(len(waiting) == KEPT)
            waiting.append(request)
            self._changed.notify()
        return pushed

    def put_description(self, text: str) -> None:
        """Set the next robot description; it replaces one that has not been taken."""
        with self._changed:
            self._description = text
            self._changed.notify()

    def put_change(self) -> None:
        """Note a change of settings that must be applied before later requests."""
        with self._changed:
            self._changed_settings = True
            self._changed.notify()

    def clear(self, tool: str) -> None:
        """Drop the queued requests of a tool."""
        with self._changed:
            self._requests.pop(tool, None)

    def take(self, timeout: float | None) -> tuple[str | None, bool, dict[str, list[Request]]] | None:
        """Wait for input, timeout [s] at most, and take it. Returns None once closed.

        Returns (new description or None, whether settings have changed, requests by tool, oldest first).
        """
        with self._changed:
            self._taken = math.inf
            self._changed.wait_for(self._has_something, timeout)
            if self._closed:
                return None
            description, self._description = self._description, None
            changed, self._changed_settings = self._changed_settings, False
            requests = {tool: list(waiting) for tool, waiting in self._requests.items()}
            self._requests.clear()
            if requests:
                self._taken = steady()
            return description, changed, requests

    def _has_something(self) -> bool:
        return bool(self._closed or self._requests or self._changed_settings or self._description is not None)

    def close(self) -> None:
        """Let take() return None from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
