# SPDX-License-Identifier: Apache-2.0
"""ReportQueue: the reports of a change, delivered when the change is complete."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ik_node.control.locks import OrderedLock, Rank
from ik_node.control.state.report import Level, Report
from ik_node.control.state.states import State


class ReportQueue:
    """Collects reports while the controller is locked; delivers them afterwards, oldest first.

    One thread at a time delivers, also what others add meanwhile: so no report overtakes another.
    """

    def __init__(self, receive: Callable[[Report], None]) -> None:
        self._receive = receive
        self._lock = OrderedLock(Rank.NEWS)
        self._reports: deque[Report] = deque()
        self._delivering = False
        self._waiting_for = ''

    def add(self, report: Report) -> None:
        """Add a report."""
        with self._lock:
            self._reports.append(report)

    def state(self, word: str, state: State, condition: tuple[Level, str]) -> None:
        """Add the report of a state; word: its name for programs."""
        self.add(Report(*condition, word, word, state))

    def waiting(self, state: State, condition: Callable[[], tuple[Level, str]]) -> None:
        """Add a report whenever the arm begins to wait, or waits for something else.

        condition: returns that of the arm; called only while the arm waits, since each setpoint comes here.
        """
        if state is not State.WAITING:
            self._waiting_for = ''
            return
        found = condition()
        if found[1] != self._waiting_for:
            self.state('waiting', state, found)
        self._waiting_for = found[1]

    def deliver(self) -> None:
        """Deliver what was added, unless another thread does, or this one further up; holding no lock.

        An exception of the receiver is raised once all reports are delivered.
        """
        failed: Exception | None = None
        while (report := self._next()) is not None:
            try:
                self._receive(report)
            except Exception as error:  # later reports count all the same
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
