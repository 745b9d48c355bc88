"""Progress: the requests that an arm pursues, one per tool, from their numbers to their arrival."""

from __future__ import annotations

import math
from dataclasses import replace

from ik_node.control.news import News
from ik_node.control.report import Level, Report
from ik_node.control.requests import Request
from ik_node.control.states import State
from ik_node.control.targets import Answer, arrival_at
from ik_node.solver.goal import Solution


class Progress:
    """Counts requests and reports what becomes of them.

    arrival: of a request whose first sample is still to come (time.perf_counter), else None.
    """

    def __init__(self, news: News) -> None:
        self._news = news
        self._number = 0
        self._at_the_end: dict[str, Report] = {}  # by tool, when the arm arrives
        self._began = self._share = math.nan
        self.arrival: float | None = None

    def begin(self, answer: Answer, request: Request, state: State, time: float) -> None:
        """Report the answer to a request; the arm, now in state, pursues it if there are joint targets.

        time [s]: of the last sample.
        """
        self._number += 1
        report = answer.report(state, request, self._number)
        self._news.add(report)
        if answer.joints is not None:
            for tool in answer.beside.keys() & self._at_the_end.keys():
                self._at_the_end[tool] = _judged(self._at_the_end[tool], answer.beside[tool])
            self._at_the_end[request.tool] = answer.arrived_report(report)
            self.arrival = request.arrival
            self._began = time

    def refuse(self, request: Request, reason: str, state: State) -> None:
        """Report why a request is refused."""
        self._number += 1
        message = f'{request.source} refused: {reason}'
        self._news.add(Report(Level.ERROR, message, 'refused', 'refused', state, request, self._number))

    def arrive(self) -> None:
        """Report that the arm has arrived, if it pursues requests."""
        if self._at_the_end:
            for report in self._at_the_end.values():
                self._news.add(report)
            self._at_the_end.clear()
            self._share = 1.0

    def share(self, time: float, remaining: float) -> float:
        """Return the share of the motion that is done at time [s], with remaining [s] left.

        1 after an arrival; NaN without a motion, and while its end is unknown.
        """
        if not self._at_the_end:
            return self._share
        passed = max(0.0, time - self._began) if math.isfinite(self._began) else 0.0
        return passed / (passed + remaining) if passed else 0.0

    def end(self, state: State, reason: str, level: Level = Level.WARN) -> None:
        """Pursue nothing any more; report the requests that are still pursued by the arm, now in state."""
        for report in self._at_the_end.values():
            if report.request is not None:
                message = f'{report.request.source} ended before the arm arrived: {reason}'
                self._news.add(replace(report, level=level, message=message, phase='stopped', state=state))
        self._at_the_end.clear()
        self.arrival = None
        self._share = math.nan


def _judged(report: Report, solution: Solution) -> Report:
    """Return the report of an arrival, now that a goal of another tool has led to another solution."""
    if report.solution is None:
        return report
    level = Level.OK if solution.solved else Level.WARN
    return replace(
        report,
        level=level,
        message=arrival_at(solution),
        status=solution.status.value,
        solution=solution,
    )
