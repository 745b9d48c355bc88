# SPDX-License-Identifier: Apache-2.0
"""What pages send does no harm, what threads change reaches the pages, and a failed computation is told."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import viser
from viser import _messages
from viser._gui_api import GuiApi
from waiting import wait_for

from ik_node.viewer.events import Events, Worker
from ik_node.viewer.guard import LARGEST, UPLOADS

TIMEOUT = 60.0
NAN = math.nan


def send(server: viser.ViserServer, message: _messages.Message) -> None:
    """Have the server handle a message as if a page had sent it."""
    handle = server._websock_server._handle_incoming_message(0, message)
    asyncio.run_coroutine_threadsafe(handle, server._event_loop).result(TIMEOUT)


def update(control: Any, **updates: Any) -> _messages.GuiUpdateMessage:
    return _messages.GuiUpdateMessage(control._impl.uuid, updates)


@pytest.mark.parametrize(
    ('add', 'given', 'good', 'bad'),
    [
        ('button_group', [('a', 'b')], 'b', (NAN, 'x', 1, None, ['a'], True)),
        ('dropdown', [('a', 'b')], 'b', (NAN, 'x', 0, None)),
        ('number', [0.5], 2, (NAN, math.inf, 'x', None, [1.0], True)),
        ('slider', [0.0, 2.0, 0.1, 0.5], 1, (NAN, -math.inf, '1', [])),
        ('multi_slider', [0.0, 3.0, 0.1, (0.5, 1.5)], [1, 2], ([NAN, 1], [1], [1, 2, 3], 5, 'ab', None)),
        ('checkbox', [False], True, (NAN, 1, 'true', None)),
        ('text', [''], 'word', (NAN, 3, None, 'x' * 2_000_000)),
    ],
)
def test_a_page_sets_only_values_that_a_control_can_have(server, add, given, good, bad):
    control = getattr(server.gui, f'add_{add}')('', *given)
    before, callbacks = control.value, control._impl.update_cb
    harmful = ({'update_cb': []}, {'removed': True}, {'value': good, 'update_cb': []}, {'nothing': 1}, {})
    for updates in (*({'value': value} for value in bad), *harmful):
        send(server, update(control, **updates))
        assert (control.value, control._impl.update_cb) == (before, callbacks)
        assert not control._impl.removed
    send(server, update(control, value=good))
    assert control.value == (tuple(good) if isinstance(good, list) else good)


def test_uploads_are_bounded(server):
    button, states = (
        server.gui.add_upload_button('', mime_type='.yaml'),
        server.gui._current_file_upload_states,
    )
    other = server.gui.add_number('', 0.5)

    def start(name: str, control: Any, size: int) -> None:
        uuid = control._impl.uuid
        send(server, _messages.FileTransferStartUpload(uuid, name, 'a', '', part_count=2, size_bytes=size))

    start('large', button, LARGEST + 1)
    start('elsewhere', other, 10)
    assert not states
    for number in range(2 * UPLOADS):
        start(str(number), button, 10)
    assert len(states) == UPLOADS
    for content in (b'x' * 11, b'x' * 6):
        send(server, _messages.FileTransferPart(None, '0', part_index=0, content=content))
    assert states['0']['transferred_bytes'] == 6


def test_no_page_opens_a_tunnel_or_fills_the_server(server, monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr(server, 'request_share_url', lambda *_: asked.append(1))
    monkeypatch.setattr(server, 'disconnect_share_url', lambda *_: asked.append(1))
    pool = SimpleNamespace(submit=lambda act, *_: act() or asked.append(2))
    monkeypatch.setattr(server, '_thread_executor', pool)
    kept = len(server._websock_server._broadcast_buffer.message_from_id)
    for message in (_messages.ShareUrlRequest(), _messages.ShareUrlDisconnect()):
        send(server, message)
    for number in range(10):
        send(server, _messages.GuiFormDirtyMessage(f'made up {number}'))
    assert not asked
    assert len(server._websock_server._broadcast_buffer.message_from_id) == kept
    assert type(server.gui) is not GuiApi


# What threads change


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
def buffer(server: viser.ViserServer) -> Iterator[Any]:
    """What the server sends to a page."""
    buffer = server._websock_server.get_message_buffer()
    event, waiters = buffer.message_event, buffer.message_event._waiters
    yield buffer
    event._waiters = waiters


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


def test_a_change_between_look_and_wait_of_the_server_is_not_lost(server: viser.ViserServer, buffer: Any) -> None:
    slow = buffer.message_event._waiters = SlowWaiters()
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


def test_a_change_while_the_server_begins_to_wait_raises_nothing(server: viser.ViserServer, buffer: Any) -> None:
    buffer.message_event._waiters = MutatedWaiters()
    got, task = received(buffer)
    try:
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.1), buffer.event_loop).result(TIMEOUT)
        assert isinstance(server.scene.add_frame('/made_up'), viser.FrameHandle)
        assert got.wait(TIMEOUT)
    finally:
        task.cancel()


# The thread behind lists and curves


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def worker(events: Events) -> Iterator[Worker[str]]:
    worker: Worker[str] = Worker(events, 'tested', 'failed')
    yield worker
    worker.close()


def wait_result(events: Events, results: list[str], count: int) -> None:
    """Process events until there are that many results."""
    wait_for(lambda: events.process() or len(results) == count, 'a result', TIMEOUT)


def test_a_computation_that_fails_is_told_and_the_next_one_runs(
    events: Events, worker: Worker[str], capsys: pytest.CaptureFixture[str]
) -> None:
    results: list[str] = []
    worker.submit(lambda: str(1 / 0), results.append)
    wait_result(events, results, 1)
    assert 'ZeroDivisionError' in capsys.readouterr().err
    worker.submit(lambda: 'done', results.append)
    wait_result(events, results, 2)
    assert results == ['failed', 'done']


def test_results_are_taken_by_the_thread_that_processes_events(events: Events, worker: Worker[str]) -> None:
    threads: list[threading.Thread] = []
    ended = threading.Event()
    worker.submit(lambda: 'one', lambda _: threads.append(threading.current_thread()))
    worker.submit(lambda: ended.set() or 'two', lambda _: threads.append(threading.current_thread()))
    assert ended.wait(TIMEOUT)  # the first one has ended or was replaced
    assert not threads
    wait_for(lambda: events.process() or threads, 'a result', TIMEOUT)
    assert set(threads) == {threading.current_thread()}


@pytest.mark.parametrize('ended', [False, True])
def test_what_is_dropped_has_no_result(events: Events, worker: Worker[str], ended: bool) -> None:
    results: list[str] = []
    begun, go = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        go.wait(TIMEOUT)
        return 'old'

    worker.submit(slow, results.append)
    assert begun.wait(TIMEOUT)
    if ended:
        go.set()
        wait_for(lambda: events._queue, 'the result in the queue', TIMEOUT)
    worker.drop()
    worker.submit(lambda: 'new', results.append)
    go.set()
    wait_result(events, results, 1)
    assert results == ['new']
