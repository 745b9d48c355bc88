# SPDX-License-Identifier: Apache-2.0
"""Remarks: what a node logs about messages and attempts is said once, and again only when it changes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

NUMBER = re.compile(r'(?<![\w"])\d[\d.]*(e[+-]?\d+)?')
OVER = 10.0  # [s] without it, after which something has ended: then it is said again
APART = 2.0  # [s] from one line to the next


class Remarks:
    """Which sentences are new; those that differ only in numbers say the same."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard: dict[str, float] = {}  # when each sentence that was said came last [s]
        self._said = float('-inf')

    def new(self, sentence: str) -> bool:
        """Return whether to say a sentence."""
        now, kind = self._clock(), NUMBER.sub('', sentence)
        heard = {one: at for one, at in self._heard.items() if now - at < OVER}
        new = kind not in heard and now - self._said >= APART
        if new:
            self._said = now
        if new or kind in heard:
            heard[kind] = now
        self._heard = heard
        return new
