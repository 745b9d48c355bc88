# SPDX-License-Identifier: Apache-2.0
"""Inputs: a queue of user inputs from the threads of viser to the node, in order; old ones do not count."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from ik_node.viewer.freshness import fresh

T = TypeVar('T')
V = TypeVar('V')


class Inputs(Generic[T]):
    """A queue for one consumer; inputs added concurrently are returned now or by the next call."""

    def __init__(self) -> None:
        self._queue: deque[T] = deque()

    def add(self, item: T, stops: bool = False) -> bool:
        """Add an input, unless it arrives too late to act upon; return whether it was added.

        stops: it only stops the arm, and is never too late.
        """
        if not (stops or fresh()):
            return False
        self._queue.append(item)
        return True

    def waiting(self) -> list[T]:
        """Return the inputs that have not been taken, oldest first."""
        return list(self._queue)

    def take(self) -> list[T]:
        """Return the inputs since the last call, oldest first."""
        taken = []
        while self._queue:
            taken.append(self._queue.popleft())
        return taken


def merged(inputs: Iterable[Mapping[str, V]]) -> dict[str, V]:
    """Return values by name: of each name the last one."""
    return {name: value for one in inputs for name, value in one.items()}
