# SPDX-License-Identifier: Apache-2.0
"""ReportQueue: the reports of a change, delivered when the change is complete."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ik_node.control.locks import OrderedLock, Rank
from ik_node.control.state.report import Level, Report
from ik_node.control.state.states import State


class ReportQueue:
    """Collects reports while the controller is locked and delivers them afterwards, in order.

    Only one thread delivers at a time, including reports that others add concurrently, so the order is kept.
    """

    def __init__(self, receive: Callable[[Report], None]) -> None:
        self._receive = receive
        self._lock = OrderedLock(Rank.REPORT_QUEUE)
        self._reports: deque[Report] = deque()
        self._delivering = False
        self._waiting_for = ''

    def add(self, report: Report) -> None:
        """Add a report."""
        with self._lock:
            self._reports.append(report)

    def state(self, word: str, state: State, condition: tuple[Level, str], logged: bool = True) -> None:
        """Add the report of a state; word: its name as data. logged: as in Report."""
        self.add(Report(*condition, word, word, state, logged=logged))

    def waiting(self, state: State, condition: Callable[[], tuple[Level, str]]) -> None:
        """Add a report when the arm starts to wait, or waits for something else.

        condition: returns the condition of the arm; called only while the arm waits.
        """
        if state is not State.WAITING:
            self._waiting_for = ''
            return
        found = condition()
        if found[1] != self._waiting_for:
            self.state('waiting', state, found)
        self._waiting_for = found[1]

    def deliver(self) -> None:
        """Deliver all reports, unless another thread, or a caller in this one, is doing so. Holds no lock.

        An exception of the receiver is raised once all reports are delivered.
        """
        failed: Exception | None = None
        while (report := self._next()) is not None:
            try:
                self._receive(report)
            except Exception as error:  # continue with later reports
                failed = failed or error
            finally:
                with self._lock:
                    self._delivering = False
        if failed is not None:
            raise failed

    def _next(self) -> Report | None:
        with self._lock:
            if self._delivering or not self._reports:
                return None
            self._delivering = True
            return self._reports.popleft()
