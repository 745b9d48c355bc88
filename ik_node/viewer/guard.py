# SPDX-License-Identifier: Apache-2.0
"""Access control: only clients with the token, and no web pages of other origins.

Listening on loopback alone does not restrict access: a browser opens websockets to loopback for any page, and
programs of all users can connect to it. The token is in the path of the page URL, where viser's page also
opens its websocket. A page of another origin that has the token is rejected by its Origin header, which it
cannot forge.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import ipaddress
import math
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import viser
from viser import _gui_api, _messages, _viser
from websockets.asyncio import server as websocket_server
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from ik_node.errors import IkError, quoted

# Freshness: how old a message can be when it arrives, and which age is too old to act upon.
#
# After an interruption a network delivers what a user did meanwhile, and no arm must move because of it.
# Browsers send no times, but they answer pings in the order of their messages: a message that arrives
# after the answer to a ping was sent after that ping.

PERIOD = 0.25  # [s] from an answer to the next ping
OLDEST = 2.0  # [s] of an input that counts
MAX_OPENING = 256  # connections without a request: more than asyncio accepts at once, fewer than descriptors

_sent_after: ContextVar[float] = ContextVar('sent_after')  # of the message in process (time.monotonic)


def fresh() -> bool:
    """Whether the message that is being processed was sent within the last OLDEST seconds.

    True outside the callbacks of a message.
    """
    return time.monotonic() - _sent_after.get(time.monotonic()) <= OLDEST


class DatedConnection(ServerConnection):
    """A connection that knows a time after which each message was sent.

    Tasks that are started for a message have that time in their context. If too many connections make no
    request, the oldest are closed, so that they do not keep others out.
    """

    _opening: ClassVar[dict[DatedConnection, None]] = {}  # oldest first

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._answered = time.monotonic()  # when the last ping was sent that has been answered
        self.answers = False  # messages are requests of the page around that of viser

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count a connection that has made no request."""
        super().connection_made(transport)
        self._opening[self] = None
        if len(self._opening) > MAX_OPENING:
            oldest = next(iter(self._opening))
            oldest.opened()
            oldest.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Count it no longer."""
        self.opened()
        super().connection_lost(error)

    def opened(self) -> None:
        """Count a connection no longer that has made its request."""
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


# What a page may send is checked in one place, before viser acts upon it.
#
# viser sets any attribute of a control that a page names, for all pages, and accepts values that the
# control cannot have. It also opens a tunnel to a public relay when a page asks for one.

LARGEST = 4 << 20  # [bytes] of a message: a picture of the scene
UPLOADS = 8  # at a time
LONGEST = 10_000  # characters or numbers of a value


def is_allowed(control: Any, updates: Mapping[str, Any]) -> bool:
    """Whether a page may make these updates of a control: only of its value, to one that it can have."""
    if set(updates) != {'value'}:
        return False
    value, before = updates['value'], control.value
    options = getattr(control.props, 'options', None)
    if options is not None:
        return isinstance(value, str) and value in options
    if isinstance(before, tuple):
        kinds = {type(item) for item in before}
        return (
            isinstance(value, (list, tuple))
            and len(value) == len(before)
            and all(_is_like(item, kind) for item in value for kind in kinds)
        )
    return _is_like(value, type(before))


def _is_like(value: Any, kind: type) -> bool:
    if kind in (int, float):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and abs(value) < math.inf and (kind is float or value == int(value))
    return isinstance(value, kind) and not (isinstance(value, str) and len(value) > LONGEST)


class CheckedGui(_gui_api.GuiApi):
    """viser's handlers of what pages send, with checks before them."""

    async def _handle_gui_updates(self, client_id: Any, message: Any) -> None:
        control = self._gui_input_handle_from_uuid.get(message.uuid)
        if control is not None and is_allowed(control._impl, message.updates):
            await super()._handle_gui_updates(client_id, message)

    def _handle_file_transfer_start(self, client_id: Any, message: Any) -> None:
        fits = 0 <= message.size_bytes <= LARGEST and len(self._current_file_upload_states) < UPLOADS
        if fits and isinstance(
            self._gui_input_handle_from_uuid.get(message.source_component_uuid), viser.GuiUploadButtonHandle
        ):
            super()._handle_file_transfer_start(client_id, message)

    def _handle_file_transfer_part(self, client_id: Any, message: Any) -> None:
        upload = self._current_file_upload_states.get(message.transfer_uuid)
        if upload is not None and upload['transferred_bytes'] + len(message.content) <= upload['total_bytes']:
            super()._handle_file_transfer_part(client_id, message)

    async def _handle_gui_form_submit(self, client_id: Any, message: Any) -> None:
        """Ignore it: there are no forms, and viser keeps one message for each name that a page makes up."""

    _handle_gui_form_dirty = _handle_gui_form_submit


def check_messages() -> None:
    """Make each viser server that is started from now on check what pages send."""
    setattr(_viser, 'GuiApi', CheckedGui)  # noqa: B010


def close_tunnel(server: viser.ViserServer) -> None:
    """Ignore requests of pages for viser's share URL, whose relay would show the page to everybody."""
    for request in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        server._websock_server.unregister_handler(request)


PORTS = {'http': 80, 'https': 443}  # of an origin that names none
TOKEN_BYTES = 16
LOCALHOST = 'localhost'
ORIGIN = '/origin'  # a page asks here, with its origin as the query, why its websockets are rejected
MAX_LOGGED = 10  # rejected origins
OPENING = 5.0  # [s] in which a connection must make its request
ACCEPTED = 8  # new connections at a time, between which the open ones are served
SOCKET = '/socket'  # a websocket that stays open; its messages are paths such as stop


def is_loopback(host: str) -> bool:
    """Whether a host name or address stands for loopback addresses only."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    except OSError:
        return False
    return bool(found) and all(_is_loopback_address(str(address[0])) for *_, address in found)


def _is_loopback_address(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


class GuardError(IkError):
    """Access to the server cannot be restricted."""


class Guard:
    """Accepts or rejects every request to the server: pages and websocket handshakes.

    host: the address that the server listens on. token: required at the start of the path; each guard makes
    its own. warn: called with a sentence once for each rejected origin, on the thread of the server.
    """

    def __init__(self, host: str, warn: Callable[[str], object] = lambda _: None) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._warn, self._logged = warn, set[str]()
        self._loopback = is_loopback(host)

    def admitted(self, request: Request) -> Request | str:
        """Return the request for the server behind, or why it is rejected."""
        path, mark, query = request.path.removeprefix('/').partition('?')
        given, _, rest = path.partition('/')
        if not secrets.compare_digest(given.encode(errors='replace'), self.token.encode()):
            return (
                'the token is missing or wrong, or ik_viewer was restarted: open the URL that it printed in '
                'the terminal'
            )
        if why := self._refusal(request.headers.get_all('Origin'), request.headers.get_all('Host')):
            return why
        return dataclasses.replace(request, path=f'/{rest}{mark}{query}')

    def why_rejected(self, request: Request) -> str:
        """Return why the page that asks at ORIGIN gets no websocket, '' if it gets one."""
        origin = unquote(request.path.partition('?')[2])
        return self._refusal([origin], request.headers.get_all('Host'))

    def _refusal(self, origins: list[str], hosts: list[str]) -> str:
        """Return why a page may not use the server, '' if it may; warn once of each origin."""
        if self._is_own(origins, hosts):
            return ''
        names = ', '.join(map(quoted, origins))
        allowed = 'localhost' if self._loopback else f'its own host ({", ".join(map(quoted, hosts))})'
        why = (
            f'pages of other origins may not use ik_viewer: this page is at {names}, but only {allowed} is '
            'allowed. Proxies are not supported: open an SSH tunnel (ssh -L 8080:127.0.0.1:8080 ROBOT, with '
            'the port of ik_viewer) and then the URL that ik_viewer printed'
        )
        if names not in self._logged and len(self._logged) < MAX_LOGGED:
            self._logged.add(names)
            sent = ', '.join(map(quoted, hosts)) or 'none'
            self._warn(f'{why}. The host of the request was {sent}')
        return why

    def _is_own(self, origins: list[str], hosts: list[str]) -> bool:
        """Whether the page that makes a request came from this server; only browsers send an origin.

        A server on loopback accepts loopback names only, because of DNS rebinding.
        """
        if not origins:
            return True
        if len(origins) != 1 or len(hosts) != 1:
            return False
        try:
            origin, own = urlsplit(origins[0]), urlsplit(f'//{hosts[0]}')
            default = PORTS.get(origin.scheme)
            same_port = (origin.port or default) == (own.port or default)
        except ValueError:
            return False
        if default is None or not origin.hostname or not same_port:
            return False
        if self._loopback:
            return origin.hostname == LOCALHOST or _is_loopback_address(origin.hostname)
        return origin.hostname == own.hostname


@contextlib.contextmanager
def guarded(
    guard: Guard, listener: socket.socket, answer: Callable[[Request], Awaitable[Response | None]]
) -> Iterator[None]:
    """Put the guard before the websocket server that viser starts in this context: it has no option for that.

    The server listens on listener, whatever address it is given. answer: called with each accepted request
    first; viser gets those for which it returns None. At SOCKET it answers messages. No other server of this
    process may start in this context. Raises GuardError at its end if viser has started its server in another
    way.
    """
    serve, listen = websocket_server.serve, socket.socket.listen
    guards, others = 0, 0

    async def answer_messages(connection: ServerConnection) -> None:
        async for message in connection:
            response = await answer(Request(f'/{message!s}', Headers()))
            if response is None or response.body is None:
                return
            await connection.send(f'{response.status_code} {response.body.decode()}')

    def serve_guarded(handler: Any, *_: Any, process_request: Callable[..., Any] | None = None, **options: Any) -> Any:
        nonlocal guards
        guards += 1

        async def process(connection: ServerConnection, request: Request) -> Response | None:
            assert isinstance(connection, DatedConnection)
            connection.opened()
            admitted = guard.admitted(request)
            connection.answers = isinstance(admitted, Request) and admitted.path == SOCKET
            if isinstance(admitted, str):
                return connection.respond(HTTPStatus.FORBIDDEN, f'{admitted}\n')
            if connection.answers:
                return None
            if admitted.path.partition('?')[0] == ORIGIN and 'Upgrade' not in admitted.headers:
                return connection.respond(HTTPStatus.OK, guard.why_rejected(admitted))
            response = await answer(admitted)
            if response is None and process_request is not None:
                bare = dataclasses.replace(admitted, path=admitted.path.partition('?')[0])
                processed = process_request(connection, bare)
                response = await processed if inspect.isawaitable(processed) else processed
            return response

        async def handle(connection: ServerConnection) -> None:
            assert isinstance(connection, DatedConnection)
            pings = asyncio.create_task(connection.ping_steadily())
            try:
                await (answer_messages if connection.answers else handler)(connection)
            finally:
                pings.cancel()

        own = {
            'sock': listener,
            'process_request': process,
            'create_connection': DatedConnection,
            'max_size': LARGEST,
            'open_timeout': OPENING,
            'backlog': ACCEPTED,
        }
        given = {name: value for name, value in options.items() if name not in ('host', 'port')}
        return serve(handle, **{**given, **own})

    def listen_guarded(self: socket.socket, *_: int) -> None:
        nonlocal others
        others += self is not listener  # which listens already, with a longer queue than ACCEPTED

    websocket_server.serve = serve_guarded  # type: ignore[assignment, misc]
    socket.socket.listen = listen_guarded  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        websocket_server.serve = serve  # type: ignore[misc]
        socket.socket.listen = listen  # type: ignore[method-assign]
    if others or not guards:
        raise GuardError(
            'this version of viser starts its web server in another way, so access to it cannot be '
            'restricted and the page is not served: install an older version of viser'
        )
