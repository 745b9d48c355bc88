# SPDX-License-Identifier: Apache-2.0
"""SplitMix64 and random offsets within limits."""

from math import isfinite, pi

import numpy as np

from ..runtime.compiled import compiled
from .balls import fold_into_balls


@compiled
def next_random(state):
    """Advance state (1,) uint64 and return a float in [0, 1). SplitMix64 (Steele, Lea, Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def perturb(best, limits, temperature, state, q):
    """Write q (n,): best plus a uniform random offset of up to temperature times each joint's range.

    Offsets that leave the limits or a ball are folded back, so temperature 1 covers the whole range.
    """
    for i in range(best.shape[0]):
        low, high = limits[0, i], limits[1, i]
        offset = 2.0 * next_random(state) - 1.0
        if not isfinite(high - low):
            q[i] = best[i] + offset * temperature * pi
            continue
        value = best[i] + offset * temperature * (high - low)
        if value < low:
            value = min(2.0 * low - value, high)
        elif value > high:
            value = max(2.0 * high - value, low)
        q[i] = value
    if limits.shape[0] > 2:
        fold_into_balls(q, limits)
