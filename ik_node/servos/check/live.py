# SPDX-License-Identifier: Apache-2.0
"""Live: what the servos measure, again and again."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from ik_node.console import say
from ik_node.servos.bus.transport import Fault, Transport
from ik_node.servos.check.findings import Reading, ServoFinding, measure
from ik_node.servos.check.page import reading_table

PERIOD = 0.1  # [s] from one table to the next in a terminal
PERIOD_OF_LOG = 1.0  # [s] elsewhere
PAUSE = 0.02  # [s] from one reading to the next
UP, CLEAR = '\x1b[{}A', '\x1b[J'  # cursor up by lines; clear from there


def live(transport: Transport, findings: Sequence[ServoFinding]) -> int:
    """Show a table of the servos until Ctrl-C. Raises PortError."""
    say('\nMove the arm by hand; Ctrl-C ends this.')
    seen: dict[str, tuple[int, int]] = {}
    terminal = sys.stdout.isatty()
    lines: list[str] = []
    readings: dict[str, Reading | Fault] = {}
    try:
        while True:
            due = time.monotonic() + (PERIOD if terminal else PERIOD_OF_LOG)
            while time.monotonic() < due:
                readings = measure(transport, findings)
                _note(seen, readings)
                time.sleep(PAUSE)
            back = UP.format(len(lines)) + CLEAR if terminal and lines else ''
            lines = reading_table(findings, readings, seen)
            say(back + '\n'.join(lines))
    except KeyboardInterrupt:
        return 0


def _note(seen: dict[str, tuple[int, int]], readings: dict[str, Reading | Fault]) -> None:
    """Extend what was seen by readings."""
    for name, reading in readings.items():
        if isinstance(reading, Reading):
            low, high = seen.get(name, (reading.tick, reading.tick))
            seen[name] = min(low, reading.tick), max(high, reading.tick)
