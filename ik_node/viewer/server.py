# SPDX-License-Identifier: Apache-2.0
"""The web server behind the page."""

from __future__ import annotations

import contextlib
import io
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator

import viser
from websockets.http11 import Request, Response

from ik_node.errors import IkError
from ik_node.viewer.guard import Guard, guarded
from ik_node.viewer.page_messages import check_messages, close_tunnel
from ik_node.viewer.wakeups import set_events_in_their_thread

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
        raise _rejection(host, port, error.strerror or str(error)) from None
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


def _rejection(host: str, port: int, why: str) -> ServerError:
    return ServerError(
        f'cannot listen on {host}:{port}: {why.lower()}; choose another one with -p port:=NUMBER'
    )


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
