# SPDX-License-Identifier: Apache-2.0
"""Live: what the servos measure, again and again."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ik_node.console import say
from ik_node.servos.bus.transport import Fault, Transport
from ik_node.servos.check.findings import Reading, ServoFinding, measure
from ik_node.servos.check.page import reading_table
from ik_node.steady import steady

PERIOD = 0.1  # [s] from one table to the next in a terminal
PERIOD_OF_LOG = 1.0  # [s] elsewhere
PAUSE = 0.02  # [s] from one reading to the next
UP, CLEAR = '\x1b[{}A', '\x1b[J'  # cursor up by lines; clear from there


class Screen:
    """Shows lines in place of those before in a terminal, now and then one below the other elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._due, self._count = steady(), 0

    def show(self, lines: Sequence[str]) -> None:
        """Show lines, unless others were shown just before."""
        if steady() < self._due:
            return
        self._due = steady() + (PERIOD if self._terminal else PERIOD_OF_LOG)
        back = UP.format(self._count) + CLEAR if self._terminal and self._count else ''
        self._count = len(lines)
        say(back + '\n'.join(lines))


def live(transport: Transport, findings: Sequence[ServoFinding]) -> int:
    """Show a table of the servos until Ctrl-C. Raises PortError."""
    say('\nMove the arm by hand; Ctrl-C ends this.')
    seen: dict[str, tuple[int, int]] = {}
    screen = Screen()
    try:
        while True:
            readings = measure(transport, findings)
            _note(seen, readings)
            screen.show(reading_table(findings, readings, seen))
            steady.sleep(PAUSE)
    except KeyboardInterrupt:
        return 0


def _note(seen: dict[str, tuple[int, int]], readings: dict[str, Reading | Fault]) -> None:
    """Extend what was seen by readings."""
    for name, reading in readings.items():
        if isinstance(reading, Reading):
            low, high = seen.get(name, (reading.tick, reading.tick))
            seen[name] = min(low, reading.tick), max(high, reading.tick)
