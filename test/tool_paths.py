# SPDX-License-Identifier: Apache-2.0
"""Arms, and paths of their tools, for the tests of tracking and of paths."""

from __future__ import annotations

import numpy as np
from made_arms import make_arm

from ik_node import Arm


def smooth_path(arm: Arm, seed: int, count: int) -> np.ndarray:
    """A joint path (count, n) within the limits, each joint the sum of two waves."""
    rng = np.random.default_rng(seed)
    low, high = np.where(arm.continuous, -np.pi, arm.lower), np.where(arm.continuous, np.pi, arm.upper)
    phase, rate = rng.uniform(0, 2 * np.pi, (2, arm.n)), rng.uniform(0.006, 0.012, (2, arm.n))
    waves = [np.sin(phase[k] + np.arange(count)[:, None] * rate[k]) for k in range(2)]
    return (low + high) / 2 + np.mean(waves, axis=0) * (high - low) / 2 * rng.uniform(0.3, 1, arm.n)


def tool_path(arm: Arm, joint_path):
    """Positions (N, 3) and directions (N, 3) along a joint path."""
    pairs = [arm.fk(q) for q in joint_path]
    return np.array([p for p, _ in pairs]), np.array([d for _, d in pairs])


AXES_OF_ARM = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
OFFSETS = [(0, 0, 0.1), (0.03, 0, 0.1), (0, 0, 0.3), (0.25, 0, 0), (0.1, 0, 0)]
TOOL = {'tool_axis': (0, 0.6, 0.8), 'tool_point': (0.05, 0, 0.02)}


def plain_arm(limits, kinds=None) -> Arm:
    """An arm with three parallel axes and a truly free direction."""
    return make_arm(AXES_OF_ARM, OFFSETS, limits, kinds, **TOOL)


def limits_of(value=3.0) -> np.ndarray:
    return np.full((5, 2), (-value, value))
