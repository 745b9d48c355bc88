# SPDX-License-Identifier: Apache-2.0
"""Goal streams: where a moving goal is at any time, by the goals so far."""

from __future__ import annotations

import numpy as np
import pytest

from ik_node.control.motion.goal_stream import BRIDGED, RETURN, GoalStream
from ik_node.control.motion.stamps import regularised_stamps

STEP = 0.02  # [s] between goals
FASTEST = np.array([2.0, 2.0])


def parabola(time: float) -> np.ndarray:
    return np.array([0.3 * time + 0.5 * time**2, -0.2 * time])


def stream(times: np.ndarray, *, stamped: bool = True, late: float = 0.002) -> GoalStream:
    goals = GoalStream(FASTEST)
    for time in times:
        goals.add(parabola(time), time + late, time if stamped else None)
    return goals


@pytest.mark.parametrize('stamped', [True, False])
def test_a_stream_tells_position_velocity_and_acceleration(stamped):
    goals = stream(np.arange(12) * STEP, stamped=stamped, late=0.0)
    found = goals.at(0.24)
    assert found is not None
    assert found.position == pytest.approx(parabola(0.24))
    assert found.velocity == pytest.approx([0.54, -0.2])
    assert found.acceleration == pytest.approx([1.0, 0.0])


def test_noise_is_evened_out_by_least_squares():
    rng, goals = np.random.default_rng(4), GoalStream(FASTEST)
    times = np.arange(4) * STEP + rng.uniform(-0.002, 0.002, 4)
    places = np.array([parabola(time) for time in times]) + rng.normal(0.0, 0.01, (4, 2))
    for time, place in zip(times, places, strict=True):
        goals.add(place, time, time)
    found = goals.at(times[-1] + 0.01)
    assert found is not None
    for i in range(2):
        fitted = np.poly1d(np.polyfit(times, places[:, i], 2))
        wanted = [
            fitted.deriv(order)(times[-1] + 0.01) if order else fitted(times[-1] + 0.01) for order in range(3)
        ]
        np.testing.assert_allclose([row[i] for row in found], wanted, rtol=1e-7)


def test_goals_that_come_at_the_same_time_tell_no_motion():
    """One burst after a pause, without stamps: nothing says how fast they follow each other."""
    goals = GoalStream(FASTEST)
    for time in [0.0, *(0.1 + 1e-9 * np.arange(3))]:
        goals.add(parabola(time), time, None)
    assert goals.at(0.1 + 3e-9) is None


def test_a_stream_that_has_ended_or_stands_still_has_no_velocity():
    goals = stream(np.arange(6) * STEP)
    assert goals.at(0.1 + 2.4 * STEP) is not None
    assert goals.at(0.1 + BRIDGED * STEP + RETURN + 0.001) is None
    still = GoalStream(FASTEST)
    for time in np.arange(6) * STEP:
        still.add(parabola(1.0), time, time)
    assert still.at(0.1) is None


def test_a_slow_stream_is_a_row_of_places():
    assert stream(np.arange(6) * 0.2).at(1.0) is None


def test_too_few_goals_tell_no_velocity():
    assert GoalStream(FASTEST).at(0.0) is None
    assert stream(np.arange(3) * STEP).at(0.05) is None


def test_a_jump_begins_a_new_stream():
    goals = stream(np.arange(6) * STEP)
    goals.add(parabola(0.12) + 0.5, 0.12, 0.12)
    assert goals.at(0.13) is None


@pytest.mark.parametrize('stamp', [0.1, 0.05])
def test_a_goal_that_comes_twice_or_after_a_newer_one_does_not_disturb_the_stream(stamp):
    goals = stream(np.arange(6) * STEP)
    before = goals.at(0.11)
    goals.add(parabola(stamp), 0.106, stamp)
    assert before is not None
    np.testing.assert_array_equal(goals.at(0.11), before)


def test_older_stamps_begin_a_new_stream_when_no_newer_ones_come():
    """The clock of the sender was set back."""
    goals = stream(np.arange(6) * STEP)
    for time in 0.7 + np.arange(6) * STEP:
        goals.add(parabola(time), time, time - 10.0)
    found = goals.at(0.81)
    assert found is not None
    assert found.position == pytest.approx(parabola(0.81), abs=1e-6)


def test_ten_goals_per_second_with_jitter_are_followed():
    goals = GoalStream(FASTEST)
    for k, time in enumerate(0.1 * np.arange(6) + 0.01 * np.sin(np.arange(6))):
        goals.add(parabola(time), time + 0.002 + 0.004 * (k % 2), time)
    newest = 0.5 + 0.01 * np.sin(5)
    found = goals.at(newest + 0.2)  # one is lost
    assert found is not None
    assert found.position == pytest.approx(parabola(newest + 0.2), abs=1e-6)


@pytest.mark.parametrize('late', [0.2, -0.3])
def test_goals_that_come_late_or_with_another_clock_are_taken_for_new(late):
    """Else the arm would be sent ahead, where nobody knows what the goal does."""
    goals = stream(np.arange(6) * STEP, late=late)
    found = goals.at(0.1 + late)
    assert found is not None
    assert found.position == pytest.approx(parabola(0.1), abs=1e-9)


def wave(time: float) -> np.ndarray:
    return 0.3 * np.array([np.sin(4.0 * time), np.cos(4.0 * time)])


def test_the_jitter_of_arrival_does_not_count_where_goals_are_sent_at_an_even_rate():
    rng = np.random.default_rng(2)
    errors = []
    for _ in range(50):
        goals = GoalStream(FASTEST)
        for k in range(14):
            if k != 9:  # one is lost
                goals.add(wave(k * STEP), k * STEP + abs(rng.normal(0.0, 0.0015)), None)
        found = goals.at(14 * STEP)
        assert found is not None
        errors.append(found.velocity - 1.2 * np.array([np.cos(56.0 * STEP), -np.sin(56.0 * STEP)]))
    assert np.abs(errors).max() < 0.05


def test_times_at_an_uneven_rate_count_as_they_are():
    times = np.array([0.0, 0.02, 0.05, 0.06, 0.11, 0.121, 0.16, 0.2])
    kept, even = regularised_stamps(times)
    assert not even
    assert kept is times


def test_a_goal_that_is_late_and_the_next_beside_it_are_spread():
    times, even = regularised_stamps(
        0.02 * np.arange(8) + np.array([0.0, 0.0, 0.0, 0.014, 0.0, 0.0, 0.0, 0.0])
    )
    assert not even  # too late to be jitter
    times, even = regularised_stamps(
        0.02 * np.arange(8) + np.array([0.0, 0.0, 0.0, 0.009, 0.0, 0.0, 0.0, 0.0])
    )
    assert even
    assert np.diff(times) == pytest.approx(np.full(7, 0.02), abs=1e-3)


def test_a_stream_that_misses_goals_goes_on_and_then_returns_gently_to_the_newest():
    goals = stream(np.arange(6) * STEP)
    went_on = goals.at(0.1 + 3.0 * STEP)  # two are lost
    assert went_on is not None
    assert went_on.position == pytest.approx(parabola(0.1 + 3.0 * STEP), abs=1e-6)
    times = np.arange(0.1, 0.0999 + BRIDGED * STEP + RETURN, 0.001)
    places, rates, _ = np.array([goals.at(time) for time in times]).transpose(1, 0, 2)
    np.testing.assert_allclose(np.gradient(places, 0.001, axis=0)[5:-5], rates[5:-5], atol=0.02)
    assert places[-1] == pytest.approx(parabola(0.1), abs=1e-4)
    assert np.abs(rates[-1]).max() < 0.02
