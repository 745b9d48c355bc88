# SPDX-License-Identifier: Apache-2.0
"""Who may use the page: over real sockets, as web pages, browsers and other programs would try."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
import viser
from websockets.asyncio import server as websocket_server
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from ik_node.errors import IkError
from ik_node.viewer import guard
from ik_node.viewer.guard import Guard, is_loopback
from ik_node.viewer.server import answering, page_url, start_server, stop_server

REJECTED, SERVED = 403, 101
PORT = 'PORT'  # stands for that of the server


@contextmanager
def served(host: str = '127.0.0.1', answer: Any = None, warn: Any = lambda _: None) -> Iterator[tuple[int, Guard]]:
    guard = Guard(host, warn)
    server = start_server(host, 0, guard, *(answer,) * (answer is not None))
    try:
        yield server.get_port(), guard
    finally:
        stop_server(server)


@pytest.fixture(scope='module')
def local() -> Iterator[tuple[int, str]]:
    """Port and token of a server on loopback."""
    with served('127.0.0.1') as (port, guard):
        yield port, guard.token


@pytest.fixture(scope='module')
def public() -> Iterator[tuple[int, str]]:
    """Port and token of a server that listens on every address."""
    with served('0.0.0.0') as (port, guard):
        yield port, guard.token


@pytest.fixture(params=['127.0.0.1', '0.0.0.0'])
def either(request: pytest.FixtureRequest, local: tuple[int, str], public: tuple[int, str]) -> tuple[int, str]:
    """Port and token of each of both."""
    return local if request.param == '127.0.0.1' else public


@pytest.mark.slow
def test_a_page_behind_a_proxy_is_told_why_and_the_log_once() -> None:
    told: list[str] = []
    with served(warn=told.append) as (port, guard):
        for _ in range(2):
            status, why = page(port, f'/{guard.token}/origin?http%3A%2F%2Frobot.example')
            assert status == 200
            assert 'http://robot.example' in why
            assert 'ssh -L' in why
        assert [said.startswith(why) for said in told] == [True]
        assert page(port, f'/{guard.token}/origin?http%3A%2F%2Flocalhost%3A{port}') == (200, '')
        assert page(port, '/origin?http%3A%2F%2Frobot.example')[0] == REJECTED
        for k in range(20):
            page(port, f'/{guard.token}/origin?http://x{k}.example')
        assert len(told) == 10


def test_the_stop_button_needs_the_token_too() -> None:
    stops: list[int] = []
    problems = ['', 'ik_node does not answer', 'ik_node is not running', '']

    async def stop() -> str:
        stops.append(1)
        return problems[len(stops) - 1]

    with served(answer=answering(stop, lambda _: '', lambda _: '')) as (port, guard):
        for path in ('/stop', '/wrong/stop', f'/{guard.token}x/stop', '/alive'):
            assert page(port, path)[0] == REJECTED
        assert page(port, f'/{guard.token}/stop', Origin='https://evil.example')[0] == REJECTED
        assert handshake(port, path='/socket') == REJECTED
        assert handshake(port, 'https://evil.example', f'/{guard.token}/socket') == REJECTED
        assert not stops
        assert page(port, f'/{guard.token}/alive') == (200, '')
        assert not stops
        assert page(port, f'/{guard.token}/stop') == (200, '')
        assert len(stops) == 1
        assert page(port, f'/{guard.token}/stop') == (503, problems[1])  # not OK: it was not taken
        socket_path = f'ws://127.0.0.1:{port}/{guard.token}/socket'
        with connect(socket_path) as kept, connect(socket_path) as other:
            for number, said in enumerate(('503 ik_node is not running', '200 '), start=3):
                kept.send('stop')
                assert kept.recv(timeout=60.0) == said
                assert len(stops) == number
            other.send(b'stop')
            with pytest.raises(ConnectionClosed):
                other.recv(timeout=60.0)
        assert '<iframe' in page(port, f'/{guard.token}/')[1]
        assert '<link rel="icon" href="data:' in page(port, f'/{guard.token}/')[1]  # no browser asks for one
        assert 'ik_viewer was restarted' in page(port, '/of_an_earlier_start/alive')[1]
        assert 'viser' in page(port, f'/{guard.token}/index.html')[1].lower()


def handshake(port: int, origin: str | None = None, path: str = '/', host: str = '') -> int:
    """Return the HTTP status that a websocket of a page of that origin gets; host: its Host header."""
    uri = f'ws://{host or "127.0.0.1"}:{port}{path}'
    options = {'subprotocols': [f'viser-v{viser.__version__}'], 'origin': origin, 'max_size': None}
    try:
        with connect(uri, sock=socket.create_connection(('127.0.0.1', port)), **options) as connection:
            assert connection.recv(timeout=60.0)  # a first message: the handshake alone would prove little
            return SERVED
    except InvalidStatus as error:
        return error.response.status_code


def page(port: int, path: str = '/', host: str = '127.0.0.1', **headers: str) -> tuple[int, str]:
    """Return the HTTP status and the text of a page; host: its Host header."""
    headers['Host'] = f'{host}:{port}'
    request = urllib.request.Request(f'http://127.0.0.1:{port}{path}', headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60.0) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    'origin',
    [
        'https://evil.example',
        'http://127.0.0.1.evil.example:PORT',
        'http://localhost:1',  # another server of this machine
        'http://localhost',
        'ftp://localhost:PORT',
        'null',
        'http://localhost:PORT, https://evil.example',
        'http://localhost:99999',
        '',
    ],
)
def test_no_web_page_of_another_origin_gets_in(local: tuple[int, str], origin: str) -> None:
    port, token = local
    assert handshake(port, origin.replace(PORT, str(port)), f'/{token}') == REJECTED


def test_a_name_that_was_made_to_lead_here_does_not_help(local: tuple[int, str]) -> None:
    port, token = local
    assert handshake(port, f'http://evil.example:{port}', f'/{token}', host='evil.example') == REJECTED
    assert page(port, host='evil.example')[0] == REJECTED


def test_the_own_page_and_programs_with_the_token_are_served(local: tuple[int, str]) -> None:
    port, token = local
    for host in ('127.0.0.1', 'localhost', '[::1]'):
        assert handshake(port, f'http://{host}:{port}', f'/{token}') == SERVED
    assert handshake(port, None, f'/{token}') == SERVED
    assert page(port, f'/{token}/')[0] == 200


def test_without_the_token_nothing_is_served(either: tuple[int, str]) -> None:
    port, token = either
    for path in ('/', '/index.html', f'/{token}x', f'/?token={token}', f'/x/{token}', '/%00', f'//{token}'):
        assert handshake(port, path=path) == REJECTED
        assert handshake(port, f'http://127.0.0.1:{port}', path) == REJECTED
        status, text = page(port, path)
        assert status == REJECTED
        assert 'token' in text
        assert token not in text


def test_with_the_token_page_and_websocket_are_served(either: tuple[int, str]) -> None:
    port, token = either
    for path in (f'/{token}', f'/{token}/', f'/{token}?websocket=ws://127.0.0.1:{port}/{token}'):
        status, text = page(port, path)
        assert status == 200
        assert '<html' in text
        assert handshake(port, path=path) == SERVED
        assert handshake(port, f'http://127.0.0.1:{port}', path) == SERVED
    assert page(port, f'/{token}/none.js')[0] == 404


def test_a_machine_may_be_reached_by_any_name_but_only_from_its_own_page(public: tuple[int, str]) -> None:
    port, token = public
    assert handshake(port, f'http://robot.example:{port}', f'/{token}', host='robot.example') == SERVED
    for origin in ('https://evil.example', 'http://localhost:1', 'null'):
        assert handshake(port, origin, f'/{token}') == REJECTED


@pytest.mark.parametrize(
    ('loopback', 'hosts'),
    [
        (True, ('127.0.0.1', '127.1.2.3', 'localhost')),
        (False, ('0.0.0.0', '', '::', '192.0.2.1', 'no.such.host.invalid')),
    ],
)
def test_every_start_has_a_token_of_its_own(loopback: bool, hosts: tuple[str, ...]) -> None:
    assert [is_loopback(host) for host in hosts] == [loopback] * len(hosts)
    tokens = {Guard(host).token for host in hosts for _ in range(3)}
    assert len(tokens) == 3 * len(hosts)
    assert min(map(len, tokens)) >= 20


def test_the_url_leads_to_the_server() -> None:
    assert page_url('127.0.0.1', 8080, 'abc') == 'http://127.0.0.1:8080/abc/'
    assert page_url('::1', 8080, 'abc') == 'http://[::1]:8080/abc/'
    wild = urlsplit(page_url('0.0.0.0', 8080, 'abc'))
    assert (wild.port, wild.path) == (8080, '/abc/')
    assert wild.hostname not in ('0.0.0.0', None)


class OtherViser:
    """A viser that starts its web server in another way."""

    def __init__(self, host: str, _: int, **__: object) -> None:
        self.reached: list[bool] = []
        self.stopped = False
        self.serve(host)
        others.append(self)

    def listening(self, server: socket.socket) -> None:
        """Note whether anybody reaches a socket that was meant to listen."""
        with socket.socket() as probe:
            self.reached.append(probe.connect_ex(server.getsockname()) == 0)

    def serve(self, host: str) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self.stopped = True


others: list[OtherViser] = []


class WithAsyncio(OtherViser):
    def serve(self, host: str) -> None:
        async def main() -> None:
            server = await asyncio.start_server(lambda *_: None, host, 0)
            self.listening(server.sockets[0])
            server.close()

        thread = threading.Thread(target=asyncio.run, args=[main()])
        thread.start()
        thread.join()


class BesideWebsockets(OtherViser):
    """A websocket server as today's, and a server of files beside it."""

    def serve(self, host: str) -> None:
        async def main() -> None:
            async with websocket_server.serve(lambda _: None, host, 8080):
                with socket.socket() as files:
                    files.bind((host, 0))
                    files.listen()
                    self.listening(files)

        thread = threading.Thread(target=asyncio.run, args=[main()])
        thread.start()
        thread.join()


@pytest.mark.parametrize('kind', [WithAsyncio, BesideWebsockets])
def test_a_server_that_the_guard_does_not_see_never_listens(
    kind: type[OtherViser], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve, listen = websocket_server.serve, socket.socket.listen
    monkeypatch.setattr(viser, 'ViserServer', kind)
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    with pytest.raises(IkError, match='access to it cannot be restricted and the page is not served'):
        start_server('127.0.0.1', port, Guard('127.0.0.1'))
    other = others.pop()
    assert other.reached == [False]
    assert other.stopped
    assert websocket_server.serve is serve
    assert socket.socket.listen is listen
    with socket.socket() as probe:
        assert probe.connect_ex(('127.0.0.1', port)) != 0


def test_a_viser_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(OtherViser):
        def serve(self, host: str) -> None:
            raise KeyError(host)

    serve, listen = websocket_server.serve, socket.socket.listen
    monkeypatch.setattr(viser, 'ViserServer', Broken)
    with pytest.raises(KeyError):
        start_server('127.0.0.1', 0, Guard('127.0.0.1'))
    assert websocket_server.serve is serve
    assert socket.socket.listen is listen


def test_idle_connections_keep_no_request_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, 'MAX_OPENING', 8)

    async def stop() -> str:
        return ''

    with contextlib.ExitStack() as stack:
        port, served_guard = stack.enter_context(served(answer=answering(stop, lambda _: '', lambda _: '')))
        token = served_guard.token
        kept = stack.enter_context(connect(f'ws://127.0.0.1:{port}/{token}/socket'))
        idle = [stack.enter_context(socket.create_connection(('127.0.0.1', port), timeout=60.0)) for _ in range(40)]
        assert page(port, f'/{token}/')[0] == 200
        with contextlib.suppress(ConnectionResetError):
            assert idle[0].recv(1) == b''  # the oldest was closed
        assert handshake(port, path=f'/{token}') == SERVED
        kept.send('stop')
        assert kept.recv(timeout=60.0) == '200 '
