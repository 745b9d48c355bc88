# SPDX-License-Identifier: Apache-2.0
"""AtRest: callbacks for the time when the arm rests."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class AtRest:
    """Stores callbacks until the arm rests; thread-safe."""

    def __init__(self, resting: Callable[[], bool]) -> None:
        self._resting = resting
        self._waiting: deque[Callable[[], None]] = deque()

    def then(self, act: Callable[[], None]) -> None:
        """Call act once the arm rests: now if it does already, else in the thread of look."""
        self._waiting.append(act)
        self.look()  # again: the arm may have come to rest before act was stored

    def look(self) -> None:
        """Call the callbacks if the arm rests; for the thread that moves it, after every setpoint."""
        while self._waiting and self._resting():
            try:
                act = self._waiting.popleft()
            except IndexError:  # another thread has taken it
                return
            act()
