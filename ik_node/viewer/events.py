# SPDX-License-Identifier: Apache-2.0
"""Events: what other threads hand to the node, in one queue; Worker: a thread that computes for the page."""

from __future__ import annotations

import math
import threading
import traceback
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import viser

from ik_node.steady import steady

from .guard import OLDEST, fresh

LATE = 'Ignored', f'Your input arrived more than {OLDEST:g} s late: the connection is slow. Repeat it.'
SHOWN = 5.0  # [s] of a notification


class Event(NamedTuple):
    """What a user did at a control: its new value, and the browser of the user."""

    value: Any
    client: viser.ClientHandle | None


class Events:
    """A queue of calls with one consumer, the executor of the node.

    Callbacks of viser and other threads only add to it; what they change is touched by the consumer alone.
    """

    def __init__(self) -> None:
        self._queue: deque[tuple[Any, Callable[[], object]]] = deque()
        self._notified: WeakKeyDictionary[viser.ClientHandle, float] = WeakKeyDictionary()

    def post(self, act: Callable[[], object], source: Any = None) -> None:
        """Have the consumer call act. source: the control that caused it."""
        self._queue.append((source, act))

    def listen(
        self, register: Callable[..., object], act: Callable[[Event], object], always: Collection[Any] = ()
    ) -> None:
        """Have the consumer call act with what users do at a control.

        register: on_click, on_update or on_upload of the control. always: values that count however late they
        arrive, because they only stop the arm; True is the value of a button.
        """

        async def called(event: viser.GuiEvent[Any]) -> None:
            value = event.target.value
            self.post_input(event, partial(act, Event(value, event.client)), value in always)

        register(called)

    def post_input(self, event: Any, act: Callable[[], object], always: bool = False) -> bool:
        """Have the consumer call act for an event of viser, in whose callback this is called.

        Not if this program caused the event, nor if a user did and it arrives too late to act upon: then
        return False and notify the user.
        """
        if event.client_id is None:
            return True
        if always or fresh():
            self.post(act, event.target)
            return True
        now = steady()
        if now - self._notified.get(event.client, -math.inf) > SHOWN:  # once for all steps of a slider
            self._notified[event.client] = now
            event.client.add_notification(*LATE, auto_close_seconds=SHOWN, color='yellow')
        return False

    def pending(self, *controls: Any) -> bool:
        """Return whether the queue has inputs at any of these controls: they must not be overwritten."""
        return any(source is control for source, _ in list(self._queue) for control in controls)

    def process(self) -> None:
        """Make all calls, oldest first; for the consumer."""
        while self._queue:
            self._queue.popleft()[1]()


T = TypeVar('T')


class Worker(Generic[T]):
    """A thread that runs one computation at a time and sleeps without any.

    name: of the thread. failed: the result of a computation that raised an exception, which is printed; such
    a computation has no result if failed is None.
    """

    def __init__(self, events: Events, name: str, failed: T | None = None) -> None:
        self._events, self._failed = events, failed
        self._changed = threading.Condition()
        self._waiting: tuple[Callable[[], T | None], Callable[[T], object]] | None = None
        self._closed = False
        self._drops = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], T | None], done: Callable[[T], object]) -> None:
        """Compute work() once the present computation has ended; the consumer of events calls done with it.

        It replaces a computation that waits. One that returns None has no result.
        """
        with self._changed:
            self._waiting = work, done
            self._changed.notify()

    def drop(self) -> None:
        """Forget what waits, and the results of what runs or has ended."""
        with self._changed:
            self._waiting = None
            self._drops += 1

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._waiting is not None)
                if self._closed or self._waiting is None:
                    return
                (work, done), self._waiting = self._waiting, None
                drops = self._drops
            try:
                result: T | None = work()
            except Exception:  # must not end the thread: the next computation may succeed
                traceback.print_exc()
                result = self._failed
            if result is not None:
                self._events.post(partial(self._deliver, done, result, drops))

    def _deliver(self, done: Callable[[T], object], result: T, drops: int) -> None:
        if drops == self._drops:
            done(result)

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed, self._waiting = True, None
            self._changed.notify()
        self._thread.join(timeout=2.0)
