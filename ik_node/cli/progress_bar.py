# SPDX-License-Identifier: Apache-2.0
"""ProgressBar: of a long command; a bar in a terminal, a line every few seconds in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from ik_node.console import say

LINE_EVERY = 10.0  # s


class ProgressBar:
    """Counts up to total and shows it on stderr, with the rate and the time that is left.

    total: None where it is not known before. about: it is an estimate.
    """

    def __init__(self, total: int | None, unit: str, *, about: bool = False) -> None:
        from tqdm import tqdm

        self._bar = tqdm(total=total, unit=f' {unit}', disable=None)
        self._total, self._unit, self._about, self._done = total, unit, about, 0
        self._start = self._next = self._last = time.monotonic()
        self._done_before = 0  # at the last line

    def add(self, count: int) -> None:
        """Add to the count."""
        self._bar.update(count)
        self._done += count
        now = time.monotonic()
        if self._bar.disable and (now >= self._next or self._done == self._total):
            self._next = now + LINE_EVERY
            say(self._line(now), sys.stderr)
            self._last, self._done_before = now, self._done

    def _line(self, now: float) -> str:
        # Since the last line: a run that continues another finds much done at its start.
        rate = (self._done - self._done_before) / max(now - self._last, 1e-9)
        said = f'{now - self._start:.0f} s passed, {rate:.{0 if rate >= 10.0 else 2}f} {self._unit}/s'
        if self._total is None or self._done > self._total:
            return f'{self._done} {self._unit}, {said}'
        total = f'{"about " * self._about}{self._total}'
        left = (self._total - self._done) / max(rate, 1e-9)
        return f'{100 * self._done // self._total} % of {total} {self._unit}, {said}, {left:.0f} s left'

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.close()
