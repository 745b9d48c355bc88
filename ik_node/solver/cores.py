# SPDX-License-Identifier: Apache-2.0
"""The number of usable cores."""

from __future__ import annotations

import math
import os
from pathlib import Path

QUOTA = Path('/sys/fs/cgroup/cpu.max')  # of a container: microseconds of processor time per period, or max


def usable_cores() -> int:
    """Return how many cores this process may use: by its affinity and by the quota of its control group."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux has it
        allowed = os.cpu_count() or 1
    try:
        quota, period = map(int, QUOTA.read_text().split())
    except (OSError, ValueError):
        return allowed
    return min(allowed, max(1, math.ceil(quota / period)))
