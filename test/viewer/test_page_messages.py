# SPDX-License-Identifier: Apache-2.0
"""What pages send reaches viser's handlers only if it can do no harm: over a real websocket."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace

import pytest
import viser
from viser import _messages
from viser._gui_api import GuiApi

from ik_node.viewer.guard import Guard
from ik_node.viewer.page_messages import LARGEST, UPLOADS
from ik_node.viewer.server import start_server, stop_server


@pytest.fixture(scope='module')
def server():
    started = start_server('127.0.0.1', 0, Guard('127.0.0.1'))
    yield started
    stop_server(started)


def send(server: viser.ViserServer, message: _messages.Message) -> None:
    """Have the server handle a message as if a page had sent it."""

    async def handle() -> None:
        await server._websock_server._handle_incoming_message(0, message)

    asyncio.run_coroutine_threadsafe(handle(), server._event_loop).result(60.0)


def update(control, **updates) -> _messages.GuiUpdateMessage:
    return _messages.GuiUpdateMessage(control._impl.uuid, updates)


NAN = math.nan


@pytest.mark.parametrize(
    ('kind', 'good', 'bad'),
    [
        ('button_group', 'b', (NAN, 'x', 1, None, ['a'], True)),
        ('dropdown', 'b', (NAN, 'x', 0, None)),
        ('number', 2, (NAN, math.inf, 'x', None, [1.0], True)),
        ('slider', 1, (NAN, -math.inf, '1', [])),
        ('multi_slider', [1, 2], ([NAN, 1], [1], [1, 2, 3], 5, 'ab', None)),
        ('checkbox', True, (NAN, 1, 'true', None)),
        ('text', 'word', (NAN, 3, None, 'x' * 2_000_000)),
    ],
)
def test_a_page_sets_only_values_that_a_control_can_have(server, kind, good, bad):
    gui = server.gui
    control = {
        'button_group': lambda: gui.add_button_group('', ('a', 'b')),
        'dropdown': lambda: gui.add_dropdown('', ('a', 'b')),
        'number': lambda: gui.add_number('', 0.5),
        'slider': lambda: gui.add_slider('', 0.0, 2.0, 0.1, 0.5),
        'multi_slider': lambda: gui.add_multi_slider('', 0.0, 3.0, 0.1, (0.5, 1.5)),
        'checkbox': lambda: gui.add_checkbox('', False),
        'text': lambda: gui.add_text('', ''),
    }[kind]()
    before, callbacks = control.value, control._impl.update_cb
    for value in bad:
        send(server, update(control, value=value))
        assert control.value == before
    for updates in (
        {'update_cb': []},
        {'removed': True},
        {'value': good, 'update_cb': []},
        {'nothing': 1},
        {},
    ):
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

    def start(name: str, control, size: int) -> None:
        uuid = control._impl.uuid
        send(server, _messages.FileTransferStartUpload(uuid, name, 'a', '', part_count=2, size_bytes=size))

    start('large', button, LARGEST + 1)
    start('elsewhere', other, 10)
    assert not states
    for number in range(2 * UPLOADS):
        start(str(number), button, 10)
    assert len(states) == UPLOADS
    for content in (b'x' * 11, b'x' * 6):
        part = _messages.FileTransferPart(None, '0', part_index=0, content=content)
        send(server, part)
    assert states['0']['transferred_bytes'] == 6


def test_no_page_opens_a_tunnel_or_fills_the_server(server, monkeypatch):
    asked = []
    monkeypatch.setattr(server, 'request_share_url', lambda *_: asked.append(1))
    monkeypatch.setattr(server, 'disconnect_share_url', lambda *_: asked.append(1))
    pool = SimpleNamespace(submit=lambda act, *_: act() or asked.append(2))
    monkeypatch.setattr(server, '_thread_executor', pool)
    kept = len(server._websock_server._broadcast_buffer.message_from_id)
    send(server, _messages.ShareUrlRequest())
    send(server, _messages.ShareUrlDisconnect())
    for number in range(10):
        send(server, _messages.GuiFormDirtyMessage(f'made up {number}'))
    assert not asked
    assert len(server._websock_server._broadcast_buffer.message_from_id) == kept
    assert type(server.gui) is not GuiApi
