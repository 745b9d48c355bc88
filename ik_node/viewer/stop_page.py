# SPDX-License-Identifier: Apache-2.0
"""The page around that of viser: a stop button that stays in sight, and the address of what is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from importlib.resources import files

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

PAGE, STOP, ALIVE, OPEN = '/', '/stop', '/alive', '/open'


def answering(
    stop: Callable[[], Awaitable[str]],
    opened: Callable[[str], object] = lambda _: None,
    link: Callable[[], str] = lambda: '',
) -> Callable[[Request], Awaitable[Response | None]]:
    """Return what answers the requests for this page, and None for those for viser.

    All are called on the thread of the server. stop: the button is pressed; returns why the arm may not have
    stopped, '' once ik_node has taken the stop. opened: is given the link with
    which the page was opened. link: returns the link to what is shown now.
    """
    html = files('ik_node.viewer').joinpath('stop_page.html').read_bytes()

    async def answer(request: Request) -> Response | None:
        path, _, query = request.path.partition('?')
        if 'Upgrade' in request.headers or path not in (PAGE, STOP, ALIVE, OPEN):
            return None
        problem = ''
        if path == STOP:
            problem = await stop()
        elif path == OPEN:
            opened(query)
        body = html if path == PAGE else link().encode() if path == ALIVE else problem.encode()
        kind = 'text/html; charset=utf-8' if path == PAGE else 'text/plain; charset=utf-8'
        headers = {'Content-Type': kind, 'Content-Length': str(len(body)), 'Cache-Control': 'no-store'}
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        return Response(status, status.phrase, Headers(headers), body)

    return answer
