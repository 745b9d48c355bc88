# SPDX-License-Identifier: Apache-2.0
"""When the messages of a stream were made, from their stamps or from when they arrived."""

from __future__ import annotations

import statistics

import numpy as np

from ik_node.checks import Array

LEAST = 4  # messages from which a rate is known
PROMPT = 0.03  # [s] largest delay between stamp and arrival that is compensated


def plausible_stamps(stamps: Array, received: Array) -> Array:
    """Return stamps (k,), moved by one duration to the arrivals (k,) if they are in the future or too old."""
    late = float((received - stamps).min())
    return stamps if 0.0 <= late <= PROMPT else stamps + late


def regularised_stamps(times: Array) -> tuple[Array, bool]:
    """Return times of arrival (k,) without jitter, and True, if the rate is constant; else (times, False).

    Fits a line through the times by their numbers, of which some may be missing.
    """
    gaps = np.diff(times)
    interval = statistics.median(gaps.tolist()) if gaps.size >= LEAST - 1 else 0.0
    if interval <= 0.0:
        return times, False
    steps = np.round(gaps / interval)
    if steps.sum() == gaps.size:
        steps[:] = 1.0  # if two arrived together, the next one is later by the same time
    numbers = np.append(0.0, np.cumsum(steps))
    slope, begin = np.polyfit(numbers, times, 1)
    line = begin + slope * numbers
    even = (steps >= 1.0).all() and np.abs(times - line).max() < interval / 2.0
    return (line, True) if even else (times, False)
