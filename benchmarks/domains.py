# SPDX-License-Identifier: Apache-2.0
"""ROS domains of benchmarks and tests: of their own, and of nobody else at the same time."""

from __future__ import annotations

import os
import random
import socket

from ik_node.ros.sessions import DOMAINS, take_domain

_held: list[socket.socket] = []  # names of the domains that this process has


def own_domain() -> None:
    """Let this process and its children have a domain of their own, on this machine only.

    A domain that the environment gives stays.
    """
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    if 'ROS_DOMAIN_ID' not in os.environ:
        domain, name = free_domain()
        _held.append(name)
        os.environ['ROS_DOMAIN_ID'] = str(domain)


def free_domain() -> tuple[int, socket.socket]:
    """Return a domain that no other process has, and the socket that keeps it."""
    taken = take_domain(random.SystemRandom().sample(DOMAINS, len(DOMAINS)))
    if taken is None:
        raise RuntimeError('all ROS domains are in use')
    return taken
