# SPDX-License-Identifier: Apache-2.0
"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_for(
    condition: Callable[[], Any],
    what: str,
    timeout: float,
    *,
    every: float = 0.01,
    alive: Callable[[], bool] = lambda: True,
    context: Callable[[], Any] = lambda: '',
) -> Any:
    """Return what condition returns once that is true.

    Fail after timeout [s], or if condition is false though nothing is alive any more that could change it;
    context says what is known by then.
    """
    end = time.monotonic() + timeout
    while True:
        may_change = time.monotonic() < end and alive()
        found = condition()
        if found:
            return found
        assert may_change, f'waited for {what}, at most {timeout} s: {context()}'
        time.sleep(every)
