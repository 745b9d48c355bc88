# SPDX-License-Identifier: Apache-2.0
"""Outstanding: answers that servos may still give to requests of the past.

An answer says which servo gave it and how long it is, but not to which request. So a request must ask for a
size that no outstanding answer of this servo has: the size then tells a late answer from the awaited one.
"""

from __future__ import annotations

from collections.abc import Iterable

LATEST = 0.3  # [s] after its request no answer comes any more
TWICE = 0.02  # [s] after a late answer in which it may come a second time


class Outstanding:
    """Answers that may still come, by id and size [bytes]; times are monotonic [s]."""

    def __init__(self) -> None:
        self._until: dict[tuple[int, int], float] = {}
        self._latest: dict[int, int] = {}  # size of the latest answer, by id

    def add(self, id: int, size: int, until: float) -> None:
        """Note that an answer may come until a time."""
        self._until[id, size] = max(until, self._until.get((id, size), until))

    def taken(self, id: int, size: int) -> None:
        """Note that the awaited answer came."""
        self._until.pop((id, size), None)
        self._latest[id] = size

    def came_late(self, id: int, size: int, now: float) -> bool:
        """Note that an answer came that was no longer awaited; return whether it was outstanding."""
        known = (id, size) in self._until
        if known:
            self._until[id, size] = min(now + TWICE, self._until[id, size])
        return known

    def has(self, id: int, size: int, now: float) -> bool:
        """Return whether such an answer may still come."""
        return self._until.get((id, size), now) > now

    def was_latest(self, id: int, size: int) -> bool:
        """Return whether the latest answer of a servo had this size."""
        return self._latest.get(id) == size

    def best(self, ids: Iterable[int], sizes: Iterable[int], now: float) -> int:
        """Return the size that is outstanding of the fewest servos.

        Of several it is one that the latest answers did not have: where two servos have the same id, the
        second answer must not be taken for that to the next request.
        """
        asked = list(ids)

        def doubts(size: int) -> tuple[int, int]:
            return (
                sum(self.has(id, size, now) for id in asked),
                sum(self.was_latest(id, size) for id in asked),
            )

        return min(sizes, key=doubts)

    def last(self) -> float:
        """Return when no answer can come any more."""
        return max(self._until.values(), default=0.0)

    def clear(self) -> None:
        """Forget all answers."""
        self._until.clear()
