# SPDX-License-Identifier: Apache-2.0
"""What is used of the inside of viser and websockets: each test names an entry and who needs it.

setup.py allows versions that do not exist yet. If one changes an entry, its test says which.
"""

from __future__ import annotations

import inspect
import socket
import urllib.error
import urllib.request
from importlib import import_module
from typing import Any

import pytest

GUARD = 'ik_node/viewer/guard.py'
SERVER, CONNECTION = 'websockets.asyncio.server:serve', 'websockets.asyncio.server:ServerConnection'

# entry, the parameters that are given to it or that it is given, and the file that uses it
ENTRIES = [
    (f'{SERVER}.__init__', 'self handler host port process_request kwargs', GUARD),
    (f'{CONNECTION}.respond', 'self status text', GUARD),
    ('websockets.http11:Request', 'path headers', GUARD),
]


def version_of(entry: str) -> str:
    package = import_module(entry.partition('.')[0])
    return f'{package.__name__} {package.__version__}'


def entry_of(name: str) -> Any:
    module, _, path = name.partition(':')
    found: Any = import_module(module)
    for part in path.split('.'):
        found = getattr(found, part, None)
    return found


@pytest.mark.parametrize(('name', 'wanted', 'user'), ENTRIES, ids=[name for name, *_ in ENTRIES])
def test_an_entry_is_there_and_takes_what_it_is_given(name: str, wanted: str, user: str) -> None:
    pytest.importorskip('websockets')
    found = entry_of(name)
    assert callable(found), f'{version_of(name)} has no {name}, which {user} needs'
    parameters = list(inspect.signature(found).parameters)
    parameters = [one for one in parameters if one in wanted.split()]  # a few of many
    assert parameters == wanted.split(), (
        f'{name} of {version_of(name)} takes {inspect.signature(found)}, {user} expects {wanted}'
    )


def test_viser_starts_its_server_through_the_name_that_is_replaced() -> None:
    pytest.importorskip('viser')
    from ik_node.viewer.guard import Guard
    from ik_node.viewer.server import start_server, stop_server

    serve, listen = entry_of(SERVER), socket.socket.listen
    guard = Guard('127.0.0.1')
    server = start_server('127.0.0.1', 0, guard)  # raises GuardError with a sentence if viser does not
    try:
        url = f'http://127.0.0.1:{server.get_port()}'
        with urllib.request.urlopen(f'{url}/{guard.token}/', timeout=30) as page:
            assert page.status == 200
        with pytest.raises(urllib.error.HTTPError, match='403'):
            urllib.request.urlopen(url, timeout=30)
    finally:
        stop_server(server)
    assert entry_of(SERVER) is serve
    assert socket.socket.listen is listen
