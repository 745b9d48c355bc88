"""Following: the following error, measured against commanded joint positions."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array

TURN = 2.0 * np.pi


class Following:
    """Compares measured joints with the commands of the last moments, so that a lag does not count."""

    def __init__(self, continuous: NDArray[np.bool_]) -> None:
        """continuous: (n,), joints that are measured up to whole turns."""
        self._continuous = continuous
        self._commands: deque[tuple[float, Array]] = deque()

    def commanded(self, time: float, position: Array, delay: float) -> None:
        """Store that position (n,) was published at time [s]; older commands than delay [s] are dropped."""
        self._commands.append((time, position.copy()))
        # One older command stays: it was valid when the window began.
        while len(self._commands) > 1 and not time - delay <= self._commands[1][0] <= time:
            self._commands.popleft()

    def errors(self, measured: Array) -> Array:
        """Return the distance of measured (n,) from all commands of the window, 0 before the first one."""
        if not self._commands:
            return np.zeros(measured.shape)
        commands = np.array([position for _, position in self._commands])
        turns = np.where(self._continuous, TURN * np.round((commands[-1] - measured) / TURN), 0.0)
        near = measured + turns
        return np.maximum(np.maximum(commands.min(axis=0) - near, near - commands.max(axis=0)), 0.0)

    def distances(self, places: Array, measured: Array) -> Array:
        """Return the distances (n,) of measured from places (n,)."""
        gap = measured - places
        return np.abs(gap - np.where(self._continuous, TURN * np.round(gap / TURN), 0.0))

    def restart(self) -> None:
        """Forget all commands: the arm was placed anew."""
        self._commands.clear()
