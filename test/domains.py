"""ROS domains for tests, so that no two of them hear each other."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from benchmarks.domains import free_domain

if TYPE_CHECKING:
    import socket

_held: deque[socket.socket] = deque(maxlen=15)  # names of domains that this process has


def new_domain() -> int:
    """Return a ROS domain that the last tests did not use, and no other run of them at the same time."""
    domain, name = free_domain()
    _held.append(name)
    return domain
