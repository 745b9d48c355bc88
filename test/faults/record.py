# SPDX-License-Identifier: Apache-2.0
"""Record: everything that the node publishes and that it is sent, with the time by one steady clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Seen:
    """A sample, by joint name. when: sent, on the steady clock [s]; time: its stamp, None without one."""

    when: float
    topic: str
    time: float | None
    names: Sequence[str]
    positions: Sequence[float]
    velocities: Sequence[float] | None


@dataclass(frozen=True, eq=False)
class SeenTrajectory:
    """A trajectory. when: sent, on the steady clock [s]; clock: that of its controller, never set back.

    begins: when its times are 0, on the clock of its controller [s].
    """

    when: float
    topic: str
    clock: float
    begins: float
    names: Sequence[str]
    times: Sequence[float]
    positions: Sequence[Sequence[float]]
    velocities: Sequence[Sequence[float]]
    accelerations: Sequence[Sequence[float]]

    def brief(self, i: int) -> str:
        """Return the first and last points of a joint in words."""
        points = [f'{t:.3f} s: {p[i]:.6g}' for t, p in zip(self.times, self.positions, strict=True)]
        return f'({", ".join([*points[:2], "...", *points[-1:]])})'


@dataclass(frozen=True)
class Status:
    """A report of the node, or its condition in /diagnostics: state is the key of that name."""

    when: float
    message: str
    state: str
    about: str = ''  # the topic of a goal
    number: int = 0
    level: int = 0
    tool: str = ''


@dataclass
class Record:
    """Grows only; the positions in the lists serve as marks."""

    samples: list[Seen | SeenTrajectory] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    diagnostics: list[Status] = field(default_factory=list)
    states: list[tuple[float, str, int]] = field(default_factory=list)  # tool and code of ~/goal_state
    measured: list[tuple[float, dict[str, float]]] = field(default_factory=list)
    lives: list[float] = field(default_factory=list)  # when a node was started
    descriptions: list[float] = field(default_factory=list)  # when a robot was described
    stalls: list[tuple[float, float]] = field(default_factory=list)  # ends [s] and durations of periods
    lock: Any = field(default_factory=threading.Lock)

    def recent_measurements(self, joint: str, until: float, since: float) -> list[float]:
        """Return all positions of a joint that were sent between two times."""
        found = []
        for when, values in reversed(self.measured):
            if when < since:
                break
            if when <= until and joint in values:
                found.append(values[joint])
        return found

    def longest_stall(self, since: float) -> float:
        """Return the longest period [s] of an action controller that ended after a time, 0 without one.

        These controllers share the processor with all else. They receive late what was sent in time.
        """
        longest = 0.0
        for when, period in reversed(self.stalls):
            if when < since:
                break
            longest = max(longest, period)
        return longest


def now() -> float:
    """Return the time of the steady clock [s]."""
    return time.monotonic()
