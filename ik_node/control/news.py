"""News: the reports of a change, delivered when the change is complete."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ik_node.control.report import Level, Report
from ik_node.control.states import State


class News:
    """Collects reports while the controller is locked; delivers them afterwards, oldest first."""

    def __init__(self, receive: Callable[[Report], None]) -> None:
        self._receive = receive
        self._lock = threading.Lock()
        self._reports: list[Report] = []
        self._waiting_for = ''

    def add(self, report: Report) -> None:
        """Add a report."""
        self._reports.append(report)

    def state(self, word: str, state: State, condition: tuple[Level, str]) -> None:
        """Add the report of a state; word: its name for programs."""
        self.add(Report(*condition, word, word, state))

    def waiting(self, state: State, condition: Callable[[], tuple[Level, str]]) -> None:
        """Add a report whenever the arm begins to wait, or waits for something else.

        condition: returns that of the arm; called only while the arm waits, since each sample comes here.
        """
        if state is not State.WAITING:
            self._waiting_for = ''
            return
        found = condition()
        if found[1] != self._waiting_for:
            self.state('waiting', state, found)
        self._waiting_for = found[1]

    def deliver(self) -> None:
        """Deliver what was added."""
        with self._lock:
            reports, self._reports = self._reports, []
        for report in reports:
            self._receive(report)
