# SPDX-License-Identifier: Apache-2.0
"""The page around that of viser: a stop button that stays in sight, whatever is open or closed inside."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from importlib.resources import files

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

PAGE, STOP, ALIVE = '/', '/stop', '/alive'


def answering(stop: Callable[[], None]) -> Callable[[Request], Response | None]:
    """Return what answers the requests for this page, and None for those for viser.

    stop: called when the button is pressed, on the thread of the server.
    """
    html = files('ik_node.viewer').joinpath('page.html').read_bytes()

    def answer(request: Request) -> Response | None:
        path = request.path.partition('?')[0]
        if 'Upgrade' in request.headers or path not in (PAGE, STOP, ALIVE):
            return None
        if path == STOP:
            stop()
        body, kind = (html, 'text/html; charset=utf-8') if path == PAGE else (b'', 'text/plain')
        headers = {'Content-Type': kind, 'Content-Length': str(len(body)), 'Cache-Control': 'no-store'}
        return Response(HTTPStatus.OK, HTTPStatus.OK.phrase, Headers(headers), body)

    return answer
