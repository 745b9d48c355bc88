"""Progress: the request that an arm pursues, from its number to its arrival."""

from __future__ import annotations

from ik_node.control.news import News
from ik_node.control.report import Level, Report
from ik_node.control.requests import Request
from ik_node.control.states import State
from ik_node.control.targets import Answer


class Progress:
    """Counts requests and reports what becomes of them.

    arrival: of a request whose first sample is still to come (time.perf_counter), else None.
    """

    def __init__(self, news: News) -> None:
        self._news = news
        self._number = 0
        self._at_the_end: Report | None = None  # when the arm arrives
        self.arrival: float | None = None

    def begin(self, answer: Answer, request: Request, state: State) -> None:
        """Report the answer to a request; the arm, now in state, pursues it if there are joint targets."""
        self._number += 1
        report = answer.report(state, request, self._number)
        self._news.add(report)
        if answer.joints is not None:
            self._at_the_end = answer.arrived_report(report)
            self.arrival = request.arrival

    def refuse(self, request: Request, reason: str, state: State) -> None:
        """Report why a request is refused."""
        self._number += 1
        message = f'{request.source} refused: {reason}'
        self._news.add(Report(Level.ERROR, message, 'refused', 'refused', state, request, self._number))

    def arrive(self) -> None:
        """Report that the arm has arrived, if it pursues a request."""
        if self._at_the_end is not None:
            self._news.add(self._at_the_end)
            self._at_the_end = None

    def end(self) -> None:
        """Pursue nothing any more."""
        self._at_the_end = self.arrival = None
