# SPDX-License-Identifier: Apache-2.0
"""The signals that end a program, and SignalFlag: an event that signal handlers may set."""

from __future__ import annotations

import contextlib
import queue
import signal

ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP  # Ctrl-C, kill, and a terminal that is closed


class SignalFlag:
    """A threading.Event for handlers: the lock of an Event would deadlock where one interrupts another."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self, *_: object) -> None:
        """Set it; also serves as a signal handler."""
        self._queue.put(None)

    def is_set(self) -> bool:
        """Whether it was ever set."""
        return not self._queue.empty()

    def wait(self, timeout: float) -> None:
        """Wait until it is set, at most for a time [s]."""
        with contextlib.suppress(queue.Empty):
            self._queue.put(self._queue.get(timeout=timeout))
