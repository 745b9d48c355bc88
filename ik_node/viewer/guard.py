"""Access control: no web pages of other origins, and from other machines only with the token.

A browser opens websockets to loopback for any page, so listening on loopback alone keeps no page out;
checking the Origin of a websocket does, since a page cannot forge it. The token is in the path of the page
URL, where viser's page also opens its websocket.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import secrets
import socket
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio import server as websocket_server
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

PORTS = {'http': 80, 'https': 443}  # of an origin that names none
TOKEN_BYTES = 16
LOCALHOST = 'localhost'


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


class Guard:
    """Decides on every request to the server: pages and websocket handshakes.

    host: the address that the server listens on. token: required at the start of the path; empty on loopback,
    where none is needed.
    """

    def __init__(self, host: str) -> None:
        self.token = '' if is_loopback(host) else secrets.token_urlsafe(TOKEN_BYTES)

    def admitted(self, request: Request) -> Request | str:
        """Return the request for the server behind, or why it is refused."""
        path = request.path
        if self.token:
            given, _, rest = path.removeprefix('/').partition('?')[0].partition('/')
            if not secrets.compare_digest(given.encode(errors='replace'), self.token.encode()):
                return 'the token is missing or wrong: open the URL that ik_viewer printed'
            path = f'/{rest}'
        if not self._is_own(request.headers.get_all('Origin'), request.headers.get_all('Host')):
            return 'pages of other origins may not use ik_viewer'
        return dataclasses.replace(request, path=path)

    def _is_own(self, origins: list[str], hosts: list[str]) -> bool:
        """Whether the page that makes a request came from this server; only browsers send an origin.

        On loopback only loopback names are accepted: another name may have been pointed here by DNS.
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
        if self.token:
            return origin.hostname == own.hostname
        return origin.hostname == LOCALHOST or _is_loopback_address(origin.hostname)


@contextlib.contextmanager
def guarded(guard: Guard) -> Iterator[None]:
    """Put the guard before every websocket server started in this context: viser has no option for it.

    Raises RuntimeError if none was started, so that nothing is ever served without the guard.
    """
    original = websocket_server.serve
    guards = 0

    def serve(*args: Any, process_request: Callable[..., Any] | None = None, **options: Any) -> Any:
        nonlocal guards
        guards += 1

        def process(connection: ServerConnection, request: Request) -> Response | None:
            admitted = guard.admitted(request)
            if isinstance(admitted, str):
                return connection.respond(HTTPStatus.FORBIDDEN, f'{admitted}\n')
            response: Response | None = process_request(connection, admitted) if process_request else None
            return response

        return original(*args, process_request=process, **options)

    websocket_server.serve = serve  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        websocket_server.serve = original  # type: ignore[misc]
    if not guards:
        raise RuntimeError(
            'this version of viser starts its web server in another way, so access to it cannot be restricted'
        )
