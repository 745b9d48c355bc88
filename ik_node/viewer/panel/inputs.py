# SPDX-License-Identifier: Apache-2.0
"""Inputs: a queue of user inputs from the threads of viser to the node, in order; old ones do not count."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import viser

from ik_node.steady import steady
from ik_node.viewer.input_freshness import OLDEST, fresh

T = TypeVar('T')
V = TypeVar('V')
P = ParamSpec('P')
LATE = 'Ignored', f'Your input arrived more than {OLDEST:g} s late: the connection is slow. Repeat it.'
SHOWN = 5.0  # [s] of a notification
_told_late: WeakKeyDictionary[viser.ClientHandle, float] = WeakKeyDictionary()  # when each browser was told


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


def by_user(act: Callable[P, bool | None]) -> Callable[P, Coroutine[Any, Any, None]]:
    """Return a callback for viser that calls act if a user caused the event, which is its last argument.

    viser calls it on its own threads. What this program changes has no client. act: returns False if the
    input is too late to count; the browser says so.
    """

    @wraps(act)
    async def called(*arguments: P.args, **named: P.kwargs) -> None:
        event: Any = arguments[-1]
        if event.client_id is not None and act(*arguments, **named) is False:
            _say_late(event.client)

    return called


def _say_late(client: viser.ClientHandle) -> None:
    now = steady()
    if now - _told_late.get(client, -math.inf) > SHOWN:  # once for all steps of a slider
        _told_late[client] = now
        client.add_notification(*LATE, auto_close_seconds=SHOWN, color='yellow')


def merged(inputs: Iterable[Mapping[str, V]]) -> dict[str, V]:
    """Return values by name: of each name the last one."""
    return {name: value for one in inputs for name, value in one.items()}
