# SPDX-License-Identifier: Apache-2.0
"""ROS domains for tests and measurements, so that no two of them hear each other."""

from __future__ import annotations

import os
import random
from collections import deque
from typing import TYPE_CHECKING

from ik_node.ros.sessions import DOMAINS, take_domain

if TYPE_CHECKING:
    import socket

WORKERS = int(os.environ.get('PYTEST_XDIST_WORKER_COUNT', '1'))
# names of domains that this process has: more than the tests of one file use, whose fixture keeps one
_held: deque[socket.socket] = deque(maxlen=80 // WORKERS)


def new_domain() -> int:
    """Return a ROS domain that no other process has, and that this one did not take of late.

    Call it in a fixture or a test: a domain that is taken on import is free again before its tests run.
    """
    taken = take_domain(random.SystemRandom().sample(DOMAINS, len(DOMAINS)))
    if taken is None:
        raise RuntimeError('all ROS domains are in use')
    domain, name = taken
    _held.append(name)
    return domain


def own_domain() -> None:
    """Let this process and its children have a domain of their own, on this machine only.

    A domain that the environment gives stays.
    """
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    if 'ROS_DOMAIN_ID' not in os.environ:
        os.environ['ROS_DOMAIN_ID'] = str(new_domain())
