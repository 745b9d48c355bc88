"""Who may use the page: over real sockets, as web pages, browsers and other programs would try."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import viser
from websockets.asyncio import server as websocket_server
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from ik_node.viewer.guard import Guard, guarded, is_loopback
from ik_node.viewer.server import page_url, start_server, stop_server

REFUSED, SERVED = 403, 101
PORT = 'PORT'  # stands for that of the server


@pytest.fixture(scope='module')
def local() -> Iterator[int]:
    """The port of a server on loopback."""
    server = start_server('127.0.0.1', 0)
    yield server.get_port()
    stop_server(server)


@pytest.fixture(scope='module')
def public() -> Iterator[tuple[int, str]]:
    """Port and token of a server that listens on every address."""
    guard = Guard('0.0.0.0')
    server = start_server('0.0.0.0', 0, guard)
    yield server.get_port(), guard.token
    stop_server(server)


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


def page(port: int, path: str = '/') -> tuple[int, str]:
    """Return the HTTP status and the text of a page."""
    try:
        with urllib.request.urlopen(f'http://127.0.0.1:{port}{path}', timeout=60.0) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    'origin',
    [
        'https://evil.example',
        'http://evil.example:PORT',
        'http://127.0.0.1.evil.example:PORT',
        'http://localhost.evil.example:PORT',
        'http://localhost:1',  # another server of this machine
        'http://localhost',
        'http://192.0.2.1:PORT',
        'ftp://localhost:PORT',
        'file://',
        'null',
        'http://localhost:PORT, https://evil.example',
        'http://localhost:99999',
        '',
    ],
)
def test_no_web_page_of_another_origin_gets_in(local: int, origin: str) -> None:
    assert handshake(local, origin.replace(PORT, str(local))) == REFUSED


def test_a_name_that_was_made_to_lead_here_does_not_help(local: int) -> None:
    assert handshake(local, f'http://evil.example:{local}', host='evil.example') == REFUSED


@pytest.mark.parametrize(
    'origin', ['http://127.0.0.1:PORT', 'http://localhost:PORT', 'http://[::1]:PORT', None]
)
def test_the_own_page_and_other_programs_are_served(local: int, origin: str | None) -> None:
    assert handshake(local, origin and origin.replace(PORT, str(local))) == SERVED
    assert page(local)[0] == 200


@pytest.mark.parametrize(
    'path', ['/', '/index.html', '/TOKEX', '/?token=TOKEN', '/x/TOKEN', '/%00', '/ü', '//TOKEN']
)
def test_without_the_token_other_hosts_serve_nothing(public: tuple[int, str], path: str) -> None:
    port, token = public
    path = path.replace('TOKEN', token).replace('TOKEX', f'{token}x').replace('ü', '%C3%BC')
    assert handshake(port, path=path) == REFUSED
    assert handshake(port, f'http://127.0.0.1:{port}', path) == REFUSED
    status, text = page(port, path)
    assert status == REFUSED
    assert 'token' in text
    assert token not in text


def test_with_the_token_page_and_websocket_are_served(public: tuple[int, str]) -> None:
    port, token = public
    for path in (f'/{token}', f'/{token}/', f'/{token}?websocket=ws://127.0.0.1:{port}/{token}'):
        status, text = page(port, path)
        assert status == 200
        assert '<html' in text
        assert handshake(port, path=path) == SERVED
        assert handshake(port, f'http://127.0.0.1:{port}', path) == SERVED
    assert handshake(port, f'http://robot.example:{port}', f'/{token}', host='robot.example') == SERVED
    assert page(port, f'/{token}/none.js')[0] == 404


@pytest.mark.parametrize('origin', ['https://evil.example', 'http://localhost:1', 'null'])
def test_the_token_alone_lets_no_page_of_another_origin_in(public: tuple[int, str], origin: str) -> None:
    port, token = public
    assert handshake(port, origin, f'/{token}') == REFUSED


@pytest.mark.parametrize(
    ('host', 'loopback'),
    [
        ('127.0.0.1', True),
        ('127.1.2.3', True),
        ('localhost', True),
        ('0.0.0.0', False),
        ('', False),
        ('::', False),
        ('192.0.2.1', False),
        ('no.such.host.invalid', False),
    ],
)
def test_every_start_has_a_token_of_its_own_but_on_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
    tokens = {Guard(host).token for _ in range(3)}
    assert tokens == {''} if loopback else len(tokens) == 3 and min(map(len, tokens)) >= 20


def test_the_url_leads_to_the_server() -> None:
    assert page_url('127.0.0.1', 8080, '') == 'http://127.0.0.1:8080/'
    assert page_url('::1', 8080, '') == 'http://[::1]:8080/'
    wild = urlsplit(page_url('0.0.0.0', 8080, 'abc'))
    assert (wild.port, wild.path) == (8080, '/abc/')
    assert wild.hostname not in ('0.0.0.0', None)


def test_a_server_that_the_guard_does_not_see_is_told() -> None:
    before = websocket_server.serve
    with pytest.raises(RuntimeError, match='access to it cannot be restricted'), guarded(Guard('127.0.0.1')):
        pass
    assert websocket_server.serve is before
