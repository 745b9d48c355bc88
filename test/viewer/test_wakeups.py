# SPDX-License-Identifier: Apache-2.0
"""Changes of the page in any thread reach it, whatever the thread of the web server does meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
import viser

from ik_node.viewer.guard import Guard
from ik_node.viewer.server import start_server, stop_server

TIMEOUT = 20.0


class SlowWaiters(deque[Any]):
    """Waits before a waiter is added, when the event was found not to be set."""

    def __init__(self) -> None:
        super().__init__()
        self.adding, self.go = threading.Event(), threading.Event()

    def append(self, waiter: Any) -> None:
        self.adding.set()
        assert self.go.wait(TIMEOUT)
        super().append(waiter)


class MutatedWaiters(deque[Any]):
    """As if a waiter were added at each iteration."""

    def __iter__(self) -> Iterator[Any]:
        for waiter in super().__iter__():
            yield waiter
            if asyncio._get_running_loop() is None:
                raise RuntimeError('deque mutated during iteration')


@pytest.fixture
def server() -> Iterator[viser.ViserServer]:
    server = start_server('127.0.0.1', 0, Guard('127.0.0.1'))
    yield server
    stop_server(server)


def buffer_of(server: viser.ViserServer) -> Any:
    return server._websock_server.get_message_buffer()  # type: ignore[attr-defined]


def received(buffer: Any) -> tuple[threading.Event, Any]:
    """Return an event that is set when the server's thread has got the next window, and its task."""
    got = threading.Event()

    async def receive() -> None:
        generator = buffer.window_generator(client_id=1000)
        seen = buffer.message_counter
        try:
            async for _ in generator:
                if buffer.generator_cursors[1000] >= seen:
                    got.set()
        finally:
            await generator.aclose()

    return got, asyncio.run_coroutine_threadsafe(receive(), buffer.event_loop)


def test_a_change_between_look_and_wait_of_the_server_is_not_lost(server: viser.ViserServer) -> None:
    buffer = buffer_of(server)
    slow = SlowWaiters()
    buffer.message_event._waiters = slow
    got, task = received(buffer)
    try:
        assert slow.adding.wait(TIMEOUT)
        change = threading.Thread(target=server.scene.add_frame, args=('/made_up',))
        change.start()
        change.join(TIMEOUT)  # viser does not wait for the server
        slow.go.set()
        assert got.wait(TIMEOUT), 'the server waits for an event that is set'
    finally:
        slow.go.set()
        task.cancel()


def test_a_change_while_the_server_begins_to_wait_raises_nothing(server: viser.ViserServer) -> None:
    buffer = buffer_of(server)
    buffer.message_event._waiters = MutatedWaiters()
    got, task = received(buffer)
    try:
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.1), buffer.event_loop).result(TIMEOUT)
        assert isinstance(server.scene.add_frame('/made_up'), viser.FrameHandle)
        assert got.wait(TIMEOUT)
    finally:
        task.cancel()
