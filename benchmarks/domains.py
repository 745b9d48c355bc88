"""The ROS domain of a benchmark: its own, and not that of a test or another benchmark at the same time."""

from __future__ import annotations

import os
import random
import socket

_held: list[socket.socket] = []  # names of the domains that this process has


def own_domain() -> None:
    """Let this process and its children have a domain of their own, on this machine only.

    A domain that the environment gives stays. Tests hold the same names (test/domains.py).
    """
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    if 'ROS_DOMAIN_ID' in os.environ:
        return
    for domain in random.SystemRandom().sample(range(1, 102), 101):
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f'\0ik_node test in domain {domain}')
        except OSError:
            name.close()
            continue
        _held.append(name)
        os.environ['ROS_DOMAIN_ID'] = str(domain)
        return
    raise RuntimeError('all ROS domains are in use')
