# SPDX-License-Identifier: Apache-2.0
"""ROS domains for tests, so that no two of them hear each other."""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from benchmarks.domains import free_domain

if TYPE_CHECKING:
    import socket

WORKERS = int(os.environ.get('PYTEST_XDIST_WORKER_COUNT', '1'))
# names of domains that this process has: more than the tests of one file use, whose fixture keeps one
_held: deque[socket.socket] = deque(maxlen=80 // WORKERS)


def new_domain() -> int:
    """Return a ROS domain that no other process has, and that this one did not take of late.

    Call it in a fixture or a test: a domain that is taken on import is free again before its tests run.
    """
    domain, name = free_domain()
    _held.append(name)
    return domain
