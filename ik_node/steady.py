# SPDX-License-Identifier: Apache-2.0
"""steady(): the clock by which nodes and the page measure durations, as rclpy's Clock of STEADY_TIME."""

from __future__ import annotations

import time


class Steady:
    """Seconds since an arbitrary moment, never set back. read: their source; a simulation has another one."""

    def __init__(self) -> None:
        self.read = time.monotonic

    def __call__(self) -> float:
        """Return the present time [s]."""
        return self.read()


steady = Steady()
