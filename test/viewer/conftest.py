# SPDX-License-Identifier: Apache-2.0
"""A web server, for tests of its parts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import viser

from ik_node.viewer.guard import Guard
from ik_node.viewer.server import start_server, stop_server


@pytest.fixture(scope='module')
def server() -> Iterator[viser.ViserServer]:
    server = start_server('127.0.0.1', 0, Guard('127.0.0.1'))
    yield server
    stop_server(server)
