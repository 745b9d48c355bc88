# SPDX-License-Identifier: Apache-2.0
"""steady(): the clock of durations and time budgets, as rclpy's Clock of STEADY_TIME."""

from __future__ import annotations

import time


class Steady:
    """Seconds since an arbitrary moment, never set back. read, sleep: of a simulation where there is one."""

    def __init__(self) -> None:
        self.read, self.sleep = time.monotonic, time.sleep

    def __call__(self) -> float:
        """Return the present time [s]."""
        return self.read()


steady = Steady()
