# SPDX-License-Identifier: Apache-2.0
"""A leader begins a thousand times from anywhere, and its cable is pulled a hundred times; prints the figures."""

from __future__ import annotations

import math

import numpy as np
from leader_harness import led, pulled, started


def test_a_thousand_starts_from_a_disagreement_without_a_step() -> None:
    steps = []
    for seed in range(20):
        with led() as hand:
            steps += started(hand, 50, seed)
    print(f'{len(steps)} starts, largest step {math.degrees(max(steps)):.2f} degrees')
    assert max(steps) < math.radians(1.0)


def test_the_cable_is_pulled_at_a_hundred_moments() -> None:
    with led() as hand:
        found = np.array(list(pulled(hand, 100, 7)))
    print(
        f'100 times at rest after {found[:, 0].max():.2f} s at most, largest step {math.degrees(found[:, 1].max()):.2f}'
    )
    assert found[:, 0].max() < 1.0
