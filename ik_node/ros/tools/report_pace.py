# SPDX-License-Identifier: Apache-2.0
"""ReportPace: publishes reports at once, but in a stream of solved goals the newest at 10 Hz."""

from __future__ import annotations

from collections.abc import Callable

from ik_node.control.locks import OrderedLock, Rank
from ik_node.control.state.report import Level, Report
from ik_node.steady import steady

PERIOD = 0.1  # [s] from one report on a stream of goals to the next


class ReportPace:
    """The reports on one tool, in order.

    Only "solved: moving to the goal" is delayed, within PERIOD of another one: until then another such report
    replaces it, or any other report follows it. Thread-safe.
    """

    def __init__(self, publish: Callable[[Report], None]) -> None:
        self._publish = publish
        self._lock = OrderedLock(Rank.REPORTS)
        self._held: Report | None = None
        self._due = 0.0  # when the next report on a stream is (steady)

    def add(self, report: Report) -> None:
        """Publish a report, or hold it back."""
        repeats = report.phase == 'moving' and report.status == 'solved' and report.level is Level.OK
        with self._lock:
            held, self._held = self._held, None
            if repeats and steady() < self._due:
                self._held = report
                return
            if held is not None and not repeats:
                self._publish(held)
            self._publish(report)
            self._due = steady() + PERIOD if repeats else 0.0

    def publish_due(self) -> None:
        """Publish a delayed report that is due; call with every setpoint."""
        if self._held is None:
            return
        with self._lock:
            if self._held is not None and steady() >= self._due:
                held, self._held = self._held, None
                self._publish(held)
                self._due = steady() + PERIOD
