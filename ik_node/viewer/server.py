# SPDX-License-Identifier: Apache-2.0
"""The web server behind the page."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any

import viser
from rclpy.node import Node
from viser import ClientHandle
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from ik_node.errors import IkError

from .guard import Guard, check_messages, close_tunnel, guarded

# Wake-ups of viser's web server by other threads.
#
# Each change of the page is queued and sets an asyncio.Event for which the server waits. viser 1.1 sets it
# first in the thread of the change, then in that of the server. If the server begins to wait at that moment,
# the first call raises RuntimeError, or the server waits for an event that is already set and the page
# freezes.


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
    """Make each viser server that is started from now on use LoopEvent, if this version has such events."""
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


PAGE, STOP, ALIVE, DRIVE, GO = '/', '/stop', '/alive', '/drive', '/go'


def answering(
    stop: Callable[[], Awaitable[str]], drive: Callable[[str], str], go: Callable[[str], str]
) -> Callable[[Request], Awaitable[Response | None]]:
    """Return what answers the requests for this page, and None for those for viser.

    stop: called on the thread of the server when the button is pressed; returns '' once ik_node has taken the
    stop, else why the arm may not have stopped. drive: called there with what the sticks of a page command; returns
    why that is ignored, else ''. go: the same for a goal that was typed.
    """
    html = files('ik_node.viewer').joinpath('stop_page.html').read_bytes()

    async def answer(request: Request) -> Response | None:
        path, _, query = request.path.partition('?')
        if 'Upgrade' in request.headers or path not in (PAGE, STOP, ALIVE, DRIVE, GO):
            return None
        problem = await stop() if path == STOP else drive(query) if path == DRIVE else go(query) if path == GO else ''
        body = html if path == PAGE else problem.encode()
        kind = 'text/html; charset=utf-8' if path == PAGE else 'text/plain; charset=utf-8'
        headers = {'Content-Type': kind, 'Content-Length': str(len(body)), 'Cache-Control': 'no-store'}
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        return Response(status, status.phrase, Headers(headers), body)

    return answer


# Hosts that mean every address of this machine, and an address elsewhere (reserved, never contacted).
WILDCARDS = {'': '192.0.2.1', '0.0.0.0': '192.0.2.1', '::': '2001:db8::1'}
DISCARD = 9  # a port; nothing is sent there


class ServerError(IkError):
    """The server cannot listen on the address."""


async def no_answer(_: Request) -> None:
    """Leave a request to viser."""


def start_server(
    host: str, port: int, guard: Guard, answer: Callable[[Request], Awaitable[Response | None]] = no_answer
) -> viser.ViserServer:
    """Listen on host and port, or any free port for 0, behind a guard. Raises ServerError or GuardError.

    answer: answers requests before viser does, or returns None.
    """
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    try:  # here, as viser alone would choose another port, or hang on an unknown host
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise ServerError(
            f'cannot listen on {host}:{port}: {why}; choose another port with -p page_port:=NUMBER'
        ) from None
    # No traceback for a browser that disconnects during a handshake.
    logging.getLogger('websockets').setLevel(logging.CRITICAL)
    set_events_in_their_thread()
    check_messages()
    server = None
    with _silence():
        try:
            with guarded(guard, listener, answer):
                server = viser.ViserServer(host, port, verbose=False)
            close_tunnel(server)
        except BaseException:
            listener.close()
            if server is not None:
                with contextlib.suppress(Exception):  # it may end in another way too; it does not listen
                    server.stop()
            raise
    return server


def stop_server(server: viser.ViserServer) -> None:
    """Close every connection and the port."""
    with _silence():
        server.stop()


def page_url(host: str, port: int, token: str) -> str:
    """Return the URL to open in a browser."""
    name = _reachable(host)
    return f'http://{f"[{name}]" if ":" in name else name}:{port}/{token}/'


def _reachable(host: str) -> str:
    """Return the address at which others reach a server on host: for a wildcard, the outgoing one."""
    if host not in WILDCARDS:
        return host
    family = socket.AF_INET6 if ':' in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((WILDCARDS[host], DISCARD))
        except OSError:  # no network
            return 'localhost'
        return str(probe.getsockname()[0])


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Suppress the banner of viser, and messages of asyncio on a server that may not listen."""
    log = logging.getLogger('asyncio')
    before, log.disabled = log.disabled, True
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        log.disabled = before


class Pages:
    """Serves the page behind a guard.

    Callbacks of viser only wake the executor of the node: changed is called there when a page was opened or
    closed, or the stop button pressed.
    """

    def __init__(
        self,
        node: Node,
        host: str,
        port: int,
        changed: Callable[[], None],
        stop: Callable[[], Awaitable[str]],
        drive: Callable[[str], str],
        go: Callable[[str], str],
    ) -> None:
        """stop, drive, go: as for answering. Raises ServerError."""
        guard = Guard(host, node.get_logger().warning)
        self._node, self._stop, self._closed = node, stop, False
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._bell = node.create_guard_condition(changed)
        self.server = start_server(host, port, guard, answering(self._stop_pressed, drive, go))
        self.url = page_url(host, self.server.get_port(), guard.token)

    def watch(self, opened: Callable[[ClientHandle], None]) -> None:
        """Notice pages from now on."""

        async def notice(client: ClientHandle) -> None:
            opened(client)
            self._ring()

        async def forget(_: ClientHandle) -> None:
            self._ring()

        self.server.on_client_connect(notice)
        self.server.on_client_disconnect(forget)

    @property
    def open(self) -> bool:
        """Whether any browser has the page open."""
        return bool(self.server.get_clients())

    async def _stop_pressed(self) -> str:
        stopped = self._stop()
        self._ring()
        return await stopped

    def _ring(self) -> None:
        if self._node.context.ok() and not self._closed:
            self._bell.trigger()

    def show(self) -> None:
        """Open the page in the browser of this desktop.

        All users can read the arguments of programs, so the browser is given a file that leads to the page.
        """
        self._folder = tempfile.TemporaryDirectory(prefix='ik_viewer_')  # for this user only
        file = Path(self._folder.name, 'ik_viewer.html')
        file.write_text(f'<meta http-equiv="refresh" content="0; url={self.url}">', encoding='utf-8')
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()  # it may wait for it

    def close(self) -> None:
        """Close every connection and the port."""
        if self._folder is not None:
            self._folder.cleanup()
        self._closed = True
        stop_server(self.server)
