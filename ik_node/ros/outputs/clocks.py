# SPDX-License-Identifier: Apache-2.0
"""Clocks: whether measurements are stamped by the clock of this computer.

A joint_trajectory_controller starts a trajectory when its clock reaches the stamp, and stamps the measured
joints by the same clock.
"""

from __future__ import annotations

WINDOW = 5.0  # [s] in which the fastest measurement is used: on a busy computer many are late
ANOTHER = 60.0  # [s]: no message takes so long, and no clock that is set is so far off
AHEAD, BEHIND = 0.01, 0.1  # [s] tolerance of the clock difference, including the latency of a message


class Clocks:
    """Compares the stamps of measurements with the time at which they arrive.

    One thread notes them, any thread may ask: it reads one tuple, which is never changed.
    """

    def __init__(self) -> None:
        self._behind: tuple[tuple[float, float], ...] = ()  # arrivals and how old the stamps were [s]

    def heard(self, now: float, stamp: float | None) -> None:
        """Note that a measurement with a stamp [s] has arrived now [s]; None: without one."""
        behind = [one for one in self._behind if now - WINDOW <= one[0] <= now]
        if stamp is not None and abs(now - stamp) <= ANOTHER:
            while behind and behind[-1][1] >= now - stamp:
                behind.pop()  # slower messages carry no information
            behind.append((now, now - stamp))
        self._behind = tuple(behind)

    @property
    def agree(self) -> bool:
        """Whether both clocks show the same time, by the fastest message."""
        behind = self._behind
        return bool(behind) and -AHEAD <= behind[0][1] <= BEHIND

    @property
    def gap(self) -> str:
        """How they differ, in words."""
        known = self._behind
        if not known:
            return 'the measured joints have no stamps of this clock'
        behind = known[0][1]
        side = 'behind' if behind > 0.0 else 'ahead of'
        return f'the measured joints are stamped {abs(behind):.3g} s {side} this clock'
