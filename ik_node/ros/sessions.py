# SPDX-License-Identifier: Apache-2.0
"""Sessions of ik_demo: a ROS domain for each, and how other programs find it.

A session has its domain by a name of the abstract namespace of Unix sockets. That has the scope of the
traffic: every user and container that shares the network of this machine. The kernel frees the name when the
last program of the session has ended, however it ends. The socket listens, so the kernel tells others which
process and user it belongs to.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ik_node.console import say
from ik_node.errors import InputError, escaped

DOMAIN = 'ROS_DOMAIN_ID'
SESSION = 'IK_NODE_SESSION'  # environment variable of the programs that were started together: a random word
DOMAINS = range(101, 0, -1)  # above are the ports that Linux gives to anybody; 0 is that of everybody
CALLS = 64  # calls of others that may wait
USER = struct.Struct('3i')  # process, user and group id of a peer


@dataclass(frozen=True)
class Session:
    """A running session. process: that started it, 0 if unknown here. user: its id."""

    domain: int
    process: int
    user: int

    def __str__(self) -> str:
        command = ''
        with suppress(OSError):
            words = Path(f'/proc/{self.process}/cmdline').read_bytes().decode(errors='replace').split('\0')
            command = escaped(' '.join(word.rpartition('/')[2] for word in words if word))
        who = f'{command} (process {self.process})' if command else 'programs whose ik_demo has ended'
        return f'{DOMAIN}={self.domain}: {who}'


def take_domain(domains: Iterable[int] = DOMAINS) -> tuple[int, socket.socket] | None:
    """Return the first of domains that no session has, and the socket that keeps it; None without any."""
    for domain in domains:
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(_name(domain))
        except OSError as error:
            name.close()
            if error.errno != errno.EADDRINUSE:  # such as a system without this namespace
                return None
            continue
        name.setblocking(False)
        return domain, name
    return None


def hang_up(name: socket.socket) -> None:
    """End the calls of programs that have looked for the session of name."""
    with suppress(OSError):  # no more calls
        while True:
            name.accept()[0].close()


def sessions() -> list[Session]:
    """Return the running sessions of this user."""
    return [one for domain in DOMAINS if (one := session_in(domain)) and one.user == os.getuid()]


def session_in(domain: int) -> Session | None:
    """Return the session that has a domain, of any user."""
    with socket.socket(socket.AF_UNIX) as call:
        call.setblocking(False)
        try:
            call.connect(_name(domain))
            process, user, _ = USER.unpack(call.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, USER.size))
        except OSError:
            return None
    return Session(domain, process, user)


def join(program: str) -> None:
    """Let a program of a terminal join the session that runs; it stays where ROS_DOMAIN_ID is set.

    Raises InputError if there are several.
    """
    if os.environ.get(DOMAIN):
        return
    found = sessions()
    if len(found) > 1:
        listed = '; '.join(map(str, found))
        raise InputError(f'several arms are running: choose one, such as by {DOMAIN}={found[0].domain}. {listed}')
    if found:
        os.environ[DOMAIN] = str(found[0].domain)
        os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
        say(f'{program}: uses the arm of {found[0]}; {DOMAIN}=0 chooses one that ik_demo did not start')


def _name(domain: int) -> str:
    return f'\0ik_node in ROS domain {domain}'
