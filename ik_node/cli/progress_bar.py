# SPDX-License-Identifier: Apache-2.0
"""ProgressBar: of a long command; a bar in a terminal, a line every few seconds in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from ik_node.console import say

LINE_EVERY = 10.0  # s


class ProgressBar:
    """Counts up to total and shows it on stderr; total: None where it is not known before."""

    def __init__(self, total: int | None, unit: str) -> None:
        from tqdm import tqdm

        self._bar = tqdm(total=total, unit=f' {unit}', disable=None)
        self._total, self._unit, self._done = total, unit, 0
        self._start = self._next = time.monotonic()

    def add(self, count: int) -> None:
        """Add to the count."""
        self._bar.update(count)
        self._done += count
        now = time.monotonic()
        if self._bar.disable and (now >= self._next or self._done == self._total):
            self._next = now + LINE_EVERY
            elapsed = now - self._start
            if self._total is None:
                say(f'{self._done} {self._unit}, {elapsed:.0f} s passed', sys.stderr)
                return
            left = elapsed * (self._total / self._done - 1.0)
            share = f'{100 * self._done // self._total} % of {self._total} {self._unit}'
            say(f'{share}, {elapsed:.0f} s passed, {left:.0f} s left', sys.stderr)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.close()
