# SPDX-License-Identifier: Apache-2.0
"""Wake-ups of viser's web server by other threads.

Each change of the page is queued, and sets an asyncio.Event for which the server waits. viser 1.1 sets it
first in the thread of the change, then in that of the server. If the server begins to wait at that moment,
the former raises RuntimeError, or the server waits for an event that is already set, and the page freezes.

It also wakes the server after each group of changes, even one without any: 30 times per second for a page at
rest.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

LONGEST_SLEEP = 0.25  # [s] of the server while changes are grouped


class LoopEvent(asyncio.Event):
    """An event that only its own thread sets: calls in other threads have no effect."""

    def set(self) -> None:
        """Set it, within a callback or task of asyncio."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        super().set()


def set_events_in_their_thread() -> None:
    """Let each viser server that is started from now on use LoopEvent, if this version has such events."""
    try:
        from viser.infra import _infra
        from viser.infra._async_message_buffer import AsyncMessageBuffer
    except ImportError:
        return

    class MessageBuffer(AsyncMessageBuffer):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.message_event = LoopEvent()
            self._due = 0.0  # when to wake the server at the latest (time.monotonic)

        def atomic_end(self) -> None:
            with self.buffer_lock:
                self.atomic_counter -= 1
                newest, now = self.message_counter - 1, time.monotonic()
                waiting = any(sent < newest for sent in list(self.generator_cursors.values()))
                if self.atomic_counter or not (waiting or now >= self._due):
                    return
                self._due = now + LONGEST_SLEEP
            with suppress(RuntimeError):  # the server has ended
                self.event_loop.call_soon_threadsafe(self.message_event.set)

    _infra.AsyncMessageBuffer = MessageBuffer  # type: ignore[attr-defined]
