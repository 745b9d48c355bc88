# SPDX-License-Identifier: Apache-2.0
"""Patience: how long a node may take, without the time for which this machine gave it no processor."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from faults.record import now

NS = 1e-9  # [s]


def waited(pid: int) -> dict[str, float]:
    """Return for how long [s] each thread of a process has waited for a processor, by its number."""
    found = {}
    for task in Path(f'/proc/{pid}/task').glob('*/schedstat'):
        with contextlib.suppress(OSError, IndexError):  # it has just ended
            found[task.parent.name] = NS * int(task.read_text().split()[1])
    return found


class Patience:
    """A time [s] from now on for a node and this process, which hears it.

    The thread that waits longest for a processor counts. One that waits for anything else, such as a lock,
    uses the time up.
    """

    def __init__(self, node: int, seconds: float) -> None:
        self._begin, self._seconds = now(), seconds
        self._before = {pid: waited(pid) for pid in (node, os.getpid())}

    @property
    def over(self) -> bool:
        """Whether the time is used up."""
        passed = now() - self._begin
        return passed > self._seconds and passed - self._starved() > self._seconds

    def _starved(self) -> float:
        found = ((task, t, before) for pid, before in self._before.items() for task, t in waited(pid).items())
        return max((t - before.get(task, 0.0) for task, t, before in found), default=0.0)
