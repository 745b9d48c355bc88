# SPDX-License-Identifier: Apache-2.0
"""Where a hand is between and after its poses."""

from __future__ import annotations

import numpy as np
import pytest

from ik_node.control.teleop.pose_smoother import PoseSmoother

PERIOD = 0.02
TIMES = PERIOD * np.arange(20)


def place(time: float) -> np.ndarray:
    """A calm motion with some acceleration."""
    return np.array([0.2 * time, 0.1 - 0.3 * time, 0.1 * time**2])


def moved(noise: float = 0.0, late: float = 0.0, stamped: bool = True) -> PoseSmoother:
    rng, motion = np.random.default_rng(0), PoseSmoother()
    for time in TIMES.tolist():
        motion.add(place(time) + noise * rng.normal(size=3), time + late, time if stamped else None)
    return motion


@pytest.mark.parametrize('stamped', [True, False])
def test_a_motion_is_carried_on_between_poses(stamped):
    motion = moved(stamped=stamped)
    for ahead in (0.0, 0.01, 0.03):
        assert motion.at(TIMES[-1] + ahead) == pytest.approx(place(TIMES[-1] + ahead), abs=1e-4)


def test_a_stamp_makes_up_for_a_short_delay_only():
    time = TIMES[-1] + 0.01
    assert moved(late=0.01).at(time) == pytest.approx(place(time), abs=1e-4)
    assert moved(late=0.2).at(time + 0.2) == pytest.approx(place(time), abs=1e-4)


def test_noise_is_averaged():
    time = TIMES[-1] + 0.01
    errors = np.abs(moved(noise=1e-3).at(time) - place(time))
    assert errors.max() < 2e-3
    speed = (moved(noise=1e-3).at(time) - moved(noise=1e-3).at(time - 0.01)) / 0.01
    assert speed == pytest.approx([0.2, -0.3, 0.08], abs=0.05)


def test_the_noise_of_few_poses_is_no_motion():
    rng, motion = np.random.default_rng(1), PoseSmoother()
    for k in range(4):
        motion.add(4e-4 * rng.normal(size=3), PERIOD * k, PERIOD * k)
    assert np.abs(motion.at(0.1) - motion.at(0.06)).max() < 1e-3


@pytest.mark.parametrize('stamped', [True, False])
@pytest.mark.parametrize(('leap', 'gap'), [(0.1, PERIOD), (0.0, 0.3)])
def test_after_a_leap_or_a_gap_the_hand_starts_at_rest_elsewhere(leap, gap, stamped):
    motion, time = moved(stamped=stamped), TIMES[-1] + gap
    there = place(time) + leap
    motion.add(there, time, time if stamped else None)
    assert motion.at(time + 0.02) == pytest.approx(there, abs=1e-9)


def test_a_silent_hand_is_carried_on_for_a_moment_only():
    motion = moved()
    np.testing.assert_array_equal(motion.at(TIMES[-1] + 0.2), motion.at(TIMES[-1] + 5.0))
    motion.clear()
    assert not motion.known
