# SPDX-License-Identifier: Apache-2.0
"""Clock: the remaining time budget of a call that solves several goals."""

from __future__ import annotations

import time


class Clock:
    """Runs from its creation on. budget [s]: as given."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self._end = time.perf_counter() + budget

    @property
    def late(self) -> bool:
        """Whether the budget has ended."""
        return time.perf_counter() > self._end

    @property
    def left(self) -> float:
        """The remaining budget [s], greater than 0 as solvers require."""
        return max(self._end - time.perf_counter(), 1e-9)
