# SPDX-License-Identifier: Apache-2.0
"""Rest: calls back once the arm rests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Rest:
    """Keeps what waits for the arm to rest, in any thread."""

    def __init__(self, resting: Callable[[], bool]) -> None:
        self._resting = resting
        self._waiting: deque[Callable[[], None]] = deque()

    def then(self, act: Callable[[], None]) -> None:
        """Call act once, as soon as the arm rests: here if it does already, else in the thread of look."""
        self._waiting.append(act)
        self.look()  # only now: a setpoint may have brought it to rest before act was noted

    def look(self) -> None:
        """Call what waits if the arm rests; for the thread that moves it, after every setpoint."""
        while self._waiting and self._resting():
            try:
                act = self._waiting.popleft()
            except IndexError:  # another thread has taken it
                return
            act()
