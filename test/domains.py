"""ROS domains for tests, so that no two of them hear each other."""

from __future__ import annotations

import random
import socket
from collections import deque

_held: deque[socket.socket] = deque(maxlen=15)  # names of domains that this process has


def new_domain() -> int:
    """Return a ROS domain that the last tests did not use, and no other run of them at the same time."""
    for domain in random.sample(range(1, 102), 101):  # above are the ports that Linux gives to anybody
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f'\0ik_node test in domain {domain}')
        except OSError:
            name.close()
            continue
        _held.append(name)
        return domain
    raise AssertionError('all ROS domains are in use')
