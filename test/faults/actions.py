# SPDX-License-Identifier: Apache-2.0
"""Actions: what happens at a time of a run; everything random in them was drawn beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from faults.arena import Arena


@dataclass(frozen=True, eq=False)
class Action:
    """Do something at a time of the run [s]."""

    at: float
    do: Callable[[Arena], object]


@dataclass(frozen=True)
class Draw:
    """What activities and faults are drawn from: the setup's arena is not running then.

    length: of the run [s]. arena: to look up the robot, not to act.
    """

    rng: np.random.Generator
    length: float
    arena: Arena

    def time(self) -> float:
        """Return a time of the run [s]."""
        return float(self.rng.uniform(0.0, self.length))

    def span(self, least: float = 0.05, most: float = 0.6) -> tuple[float, float]:
        """Return the beginning and the end of a while [s]."""
        begin = float(self.rng.uniform(0.0, 0.7 * self.length))
        return begin, begin + float(self.rng.uniform(least, most))

    def times(self, rate: float, begin: float = 0.0, end: float | None = None) -> list[float]:
        """Return times at a rate [Hz]."""
        return np.arange(begin, self.length if end is None else end, 1.0 / rate).tolist()


Plan = list[Action]
