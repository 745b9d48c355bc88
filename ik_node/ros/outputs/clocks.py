# SPDX-License-Identifier: Apache-2.0
"""Clocks: whether measurements are stamped by the clock of this computer.

A joint_trajectory_controller starts a trajectory when its clock reaches the stamp, and stamps the measured
joints by the same clock.
"""

from __future__ import annotations

from collections import deque

WINDOW = 5.0  # [s] in which the fastest measurement is used: on a busy computer many are late
ANOTHER = 60.0  # [s]: no message takes so long, and no clock that is set is so far off
AHEAD, BEHIND = 0.01, 0.1  # [s] tolerance of the clock difference, including the latency of a message


class Clocks:
    """Compares the stamps of measurements with the time at which they arrive."""

    def __init__(self) -> None:
        self._behind: deque[tuple[float, float]] = deque()  # arrivals and how old the stamps were [s]

    def heard(self, now: float, stamp: float | None) -> None:
        """Note that a measurement with a stamp [s] has arrived now [s]; None: without one."""
        while self._behind and not now - WINDOW <= self._behind[0][0] <= now:
            self._behind.popleft()
        if stamp is not None and abs(now - stamp) <= ANOTHER:
            while self._behind and self._behind[-1][1] >= now - stamp:
                self._behind.pop()  # slower messages carry no information
            self._behind.append((now, now - stamp))

    @property
    def agree(self) -> bool:
        """Whether both clocks show the same time, by the fastest message."""
        return bool(self._behind) and -AHEAD <= self._behind[0][1] <= BEHIND

    @property
    def gap(self) -> str:
        """How they differ, in words."""
        if not self._behind:
            return 'the measured joints have no stamps of this clock'
        behind = self._behind[0][1]
        side = 'behind' if behind > 0.0 else 'ahead of'
        return f'the measured joints are stamped {abs(behind):.3g} s {side} this clock'
