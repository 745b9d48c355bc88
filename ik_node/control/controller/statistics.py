# SPDX-License-Identifier: Apache-2.0
"""Statistics: counters and times for /diagnostics."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ik_node.control.locks import OrderedLock, Rank

S_PER_NS = 1e-9


class Statistics:
    """Counts requests and times setpoints; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = OrderedLock(Rank.STATISTICS)
        self._totals: Counter[str] = Counter()
        self._ticks: list[int] = []
        self._solve_times: list[float] = []
        self._latencies: list[float] = []

    def count(self, what: str, number: int = 1) -> None:
        """Add to a total: taken, rejected or superseded."""
        with self._lock:
            self._totals[what] += number

    def tick(self, now: int) -> None:
        """Note that a setpoint was published at now [ns]."""
        with self._lock:
            self._ticks.append(now)

    def solved_in(self, seconds: float) -> None:
        """Note how long a solve took."""
        with self._lock:
            self._solve_times.append(seconds)

    def moved_after(self, seconds: float) -> None:
        """Note the latency from the arrival of a goal to the first setpoint that moves to it."""
        with self._lock:
            self._latencies.append(seconds)

    def summary(self, period: float) -> dict[str, str]:
        """Return all values as text, and reset the times. period [s]: the nominal one of setpoints."""
        with self._lock:
            totals = dict(self._totals)
            ticks, self._ticks = np.array(self._ticks), self._ticks[-1:]
            solve_times, self._solve_times = self._solve_times, []
            latencies, self._latencies = self._latencies, []
        gaps = np.diff(ticks) * S_PER_NS
        values = {f'goals {what}': str(totals.get(what, 0)) for what in ('taken', 'rejected', 'superseded')}
        if gaps.size:
            jitter = np.abs(gaps - period)
            values['publish rate [Hz]'] = f'{1.0 / max(gaps.mean(), 1e-9):.2f}'
            values['publish jitter p99 [ms]'] = f'{1e3 * np.quantile(jitter, 0.99):.3f}'
        for name, times in (('solve time', solve_times), ('goal to first setpoint', latencies)):
            if times:
                values[f'{name} median [ms]'] = f'{1e3 * float(np.median(times)):.3f}'
                values[f'{name} max [ms]'] = f'{1e3 * max(times):.3f}'
        return values
