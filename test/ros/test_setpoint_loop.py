# SPDX-License-Identifier: Apache-2.0
"""Samples that keep step with a controller: each of its periods gets one, whatever their clocks do."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from ik_node.ros.node.setpoint_loop import SetpointLoop, in_step

PERIOD = 10_000_000  # [ns]


def samples_per_period(period: int, kept: bool) -> tuple[np.ndarray, list[int]]:
    """How many samples each period of a controller gets whose clock is 0.03 % fast, and the samples."""
    random = np.random.default_rng(5)
    begins = (np.arange(4000) * PERIOD * 0.9997).astype(np.int64)
    heard = [(int(begin), int(begin + random.uniform(3e5, 1.5e6))) for begin in begins]  # late messages
    due, last, samples, count = 3_000_000, (0, 0), [], 0
    while due < begins[-1]:
        due += period
        while count < len(heard) and heard[count][1] <= due:
            last = heard[count][0], last[0]
            count += 1
        if kept:
            due = in_step(due, period, *last)
        samples.append(due)
    arrivals = np.array(samples) + random.uniform(1e5, 2e6, len(samples))  # of commands that are late
    return np.histogram(arrivals, begins)[0][200:], samples


@pytest.mark.parametrize('times', [1, 2])
def test_each_period_of_a_controller_gets_the_same_number_of_samples(times: int) -> None:
    counts, samples = samples_per_period(PERIOD // times, kept=True)
    assert (counts == times).all()
    assert np.abs(np.diff(samples) - PERIOD // times).max() <= PERIOD // times // 8
    free, _ = samples_per_period(PERIOD // times, kept=False)
    assert (free != times).any()


@pytest.mark.parametrize('period', [2_000_000, 7_000_000, 15_000_000])
def test_a_controller_at_another_rate_changes_nothing(period: int) -> None:
    assert in_step(123_456_789, PERIOD, 5 * period, 4 * period) == 123_456_789


def test_messages_that_are_doubled_or_lost_change_little() -> None:
    assert in_step(PERIOD, PERIOD, 700, 700) == PERIOD
    assert abs(in_step(PERIOD, PERIOD, 5 * PERIOD, 2 * PERIOD) - PERIOD) <= PERIOD // 16


def test_the_loop_is_led_into_the_middle_of_the_periods_of_its_controller() -> None:
    """On a clock that passes a millisecond whenever it is read."""
    time, phase, phases, enough = [0], 3_000_000, [], threading.Event()

    def now() -> SimpleNamespace:
        time[0] += 1_000_000
        return SimpleNamespace(nanoseconds=time[0])

    def sample(due: int, at: int) -> None:
        loop.begun((at - phase) // PERIOD * PERIOD + phase)
        phases.append((due - phase) % PERIOD)
        if len(phases) == 100:
            enough.set()

    node = SimpleNamespace(
        get_clock=lambda: SimpleNamespace(now=now), get_parameter=lambda _: SimpleNamespace(value=True)
    )
    loop = SetpointLoop(node, lambda: 0.01, sample)
    loop.start()
    assert enough.wait(60.0)
    loop.close()
    assert abs(phases[0] - PERIOD // 2) > 1_000_000
    assert np.abs(np.array(phases[80:100]) - PERIOD // 2).max() < 100_000
