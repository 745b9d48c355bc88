# SPDX-License-Identifier: Apache-2.0
"""Transport: what a port to a servo bus does, whatever protocol and library are behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from ik_node.errors import IkError


class Fault(Enum):
    """Why there is no answer; the value says it in words."""

    SILENT = 'no answer'
    CORRUPT = 'damaged answer'
    SHORT = 'answer of the wrong length'
    FOREIGN = 'answer from another servo'


@dataclass(frozen=True)
class Answer:
    """What a servo answered: data, and its error byte, which reports conditions and is not a failure."""

    data: bytes
    error: int = 0


Reply = Answer | Fault


class PortError(IkError):
    """The port cannot be opened, or is gone; the message says why and what helps."""


class Transport(Protocol):
    """A port to a servo bus, for one thread.

    Nothing is sent twice: who calls decides whether to read again. No late answer is taken for that to a
    later request; where that could not be told, a servo counts as silent for a while, and a write waits. All
    methods raise PortError once the port is gone, and InputError, before anything is sent, for what fits into
    no packet.
    """

    def ping(self, id: int) -> Reply:
        """Ask a servo whether it is there."""

    def read(self, id: int, address: int, size: int) -> Reply:
        """Read size bytes from an address on; an answer of any other size is Fault.SHORT."""

    def write(self, id: int, address: int, data: bytes) -> Reply:
        """Write data to an address, and wait for the acknowledgement."""

    def sync_read(self, ids: Sequence[int], address: int, size: int) -> dict[int, Reply]:
        """Read size bytes from an address of each servo; a reply per id, in this order."""

    def sync_write(self, address: int, data: Mapping[int, bytes]) -> None:
        """Write data of one size to an address of several servos, by id; no servo acknowledges that."""

    def close(self) -> None:
        """Close the port; every other method then raises PortError."""
