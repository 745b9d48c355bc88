# SPDX-License-Identifier: Apache-2.0
"""Clock: the remaining time budget of a call that solves several goals."""

from __future__ import annotations

from ik_node.steady import steady


class Clock:
    """Runs from its creation on. budget [s]: as given."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self._end = steady() + budget

    @property
    def late(self) -> bool:
        """Whether the budget has ended."""
        return steady() > self._end

    @property
    def left(self) -> float:
        """The remaining budget [s], greater than 0 as solvers require."""
        return max(self._end - steady(), 1e-9)
