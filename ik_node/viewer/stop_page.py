# SPDX-License-Identifier: Apache-2.0
"""The page around that of viser: a stop button that stays in sight, and the address of what is shown."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from importlib.resources import files

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

PAGE, STOP, ALIVE, OPEN = '/', '/stop', '/alive', '/open'


def answering(
    stop: Callable[[], object],
    opened: Callable[[str], object] = lambda _: None,
    link: Callable[[], str] = lambda: '',
) -> Callable[[Request], Response | None]:
    """Return what answers the requests for this page, and None for those for viser.

    All are called on the thread of the server. stop: the button is pressed. opened: is given the link with
    which the page was opened. link: returns the link to what is shown now.
    """
    html = files('ik_node.viewer').joinpath('stop_page.html').read_bytes()

    def answer(request: Request) -> Response | None:
        path, _, query = request.path.partition('?')
        if 'Upgrade' in request.headers or path not in (PAGE, STOP, ALIVE, OPEN):
            return None
        if path == STOP:
            stop()
        elif path == OPEN:
            opened(query)
        body = html if path == PAGE else link().encode() if path == ALIVE else b''
        kind = 'text/html; charset=utf-8' if path == PAGE else 'text/plain; charset=utf-8'
        headers = {'Content-Type': kind, 'Content-Length': str(len(body)), 'Cache-Control': 'no-store'}
        return Response(HTTPStatus.OK, HTTPStatus.OK.phrase, Headers(headers), body)

    return answer
