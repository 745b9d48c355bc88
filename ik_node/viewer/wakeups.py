# SPDX-License-Identifier: Apache-2.0
"""Wake-ups of viser's web server by other threads.

Each change of the page is queued, and sets an asyncio.Event for which the server waits. viser 1.1 sets it
first in the thread of the change, then in that of the server. If the server begins to wait at that moment,
the former raises RuntimeError, or the server waits for an event that is already set, and the page freezes.
"""

from __future__ import annotations

import asyncio
from typing import Any


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

    _infra.AsyncMessageBuffer = MessageBuffer  # type: ignore[attr-defined]
