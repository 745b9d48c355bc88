# SPDX-License-Identifier: Apache-2.0
"""Freshness: how long ago a browser can have sent what arrives, and what is too old to act upon.

A network that is interrupted delivers later what a user did meanwhile, and an arm must not move by it.
Browsers send no times, but they answer pings in the order of their messages: a message that arrives after the
answer to a ping was sent after that ping.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, ClassVar

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

PERIOD = 0.25  # [s] from an answer to the next ping
OLDEST = 2.0  # [s] of an input that counts
MOST_OPENING = 256  # connections without a request: more than asyncio accepts at once, fewer than descriptors

_sent_after: ContextVar[float] = ContextVar('sent_after')  # of the message in process (time.monotonic)


def fresh() -> bool:
    """Whether the message that is being processed was sent within the last OLDEST seconds.

    True outside the callbacks of a message.
    """
    return time.monotonic() - _sent_after.get(time.monotonic()) <= OLDEST


class DatedConnection(ServerConnection):
    """A connection that knows after which time each message was sent.

    Tasks that are started for a message have that time in their context. Of many connections that make no
    request the oldest are closed, so that they keep no others out.
    """

    _opening: ClassVar[dict[DatedConnection, None]] = {}  # oldest first

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._answered = time.monotonic()  # when the last ping was sent that has been answered
        self.answers = False  # messages are requests of the page around that of viser

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the new connection."""
        super().connection_made(transport)
        self._opening[self] = None
        if len(self._opening) > MOST_OPENING:
            oldest = next(iter(self._opening))
            oldest.opened()
            oldest.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Note that it has ended."""
        self.opened()
        super().connection_lost(error)

    def opened(self) -> None:
        """Note that it has made its request."""
        self._opening.pop(self, None)

    async def recv(self, *arguments: Any, **options: Any) -> Any:
        """Receive the next message."""
        message = await super().recv(*arguments, **options)
        _sent_after.set(self._answered)
        return message

    async def ping_steadily(self) -> None:
        """Ping until the connection closes, one ping at a time.

        Inputs may wait unread while answers to later pings arrive. After an interruption the only answer is
        to a ping from before it, so such inputs still count as old.
        """
        try:
            while True:
                sent = time.monotonic()
                await (await self.ping())
                self._answered = sent
                await asyncio.sleep(PERIOD)
        except ConnectionClosed:
            return


def dated(
    handler: Callable[[ServerConnection], Awaitable[None]],
) -> Callable[[ServerConnection], Awaitable[None]]:
    """Return a handler of connections that pings during another one."""

    async def handle(connection: ServerConnection) -> None:
        assert isinstance(connection, DatedConnection)
        pings = asyncio.create_task(connection.ping_steadily())
        try:
            await handler(connection)
        finally:
            pings.cancel()

    return handle
