# SPDX-License-Identifier: Apache-2.0
"""Timing of joint paths: every limit holds at every time, and little time is lost."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limit_judge import Judge
from ruckig import InputParameter, Ruckig
from ruckig import Trajectory as RuckigTrajectory

from ik_node.control.motion.trajectory import Trajectory
from ik_node.control.paths.path_timing import Bounds, ramped, timed
from ik_node.control.paths.splines import Curve

SITES = np.linspace(0.0, 1.0, 30)


def straight(move: np.ndarray):
    """A straight line in joint space, with a tool that moves 0.3 m."""

    def path(s):
        q = np.zeros((4, len(s), len(move)))
        q[0], q[1] = s[:, None] * move, move
        return q, np.full(len(s), 0.3)

    return path


def wavy(rng: np.random.Generator, n: int):
    """A random smooth path of n joints."""
    curve = Curve(
        np.linspace(0.0, 1.0, 12), np.cumsum(rng.normal(size=(12, n)), axis=0) * rng.uniform(0.02, 0.4)
    )

    def path(s):
        return curve(s, 3), np.linalg.norm(curve(s, 1)[1], axis=1)

    return path


def random_bounds(rng: np.random.Generator, n: int) -> Bounds:
    return Bounds(rng.uniform(0.3, 3.0, n), rng.uniform(1.0, 20.0, n), rng.uniform(10.0, 200.0, n))


def fastest(move: np.ndarray, bounds: Bounds) -> float:
    """The time of Ruckig's optimum on a straight line: the limits of its parameter are the tightest ones."""
    request = InputParameter(1)
    request.target_position = [1.0]
    request.max_velocity, request.max_acceleration, request.max_jerk = (
        [float((limit / np.abs(move)).min())] for limit in (bounds.velocity, bounds.acceleration, bounds.jerk)
    )
    plan = RuckigTrajectory(1)
    Ruckig(1).calculate(request, plan)
    return plan.duration


def assert_within(found: Trajectory, bounds: Bounds) -> None:
    times = np.linspace(0.0, found.duration, 1001)
    q, v, a, j = found.sampled(times)
    assert (np.abs(j) <= bounds.jerk).all()
    assert np.abs(v[[0, -1]]).max() < 1e-12
    assert np.abs(a[[0, -1]]).max() < 1e-9
    limits = bounds.velocity, bounds.acceleration, bounds.jerk
    Judge(-np.inf, np.inf, *limits, slack=1e-9).all(times[1], q, v, a)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_limits_hold_on_random_paths(seed, n):
    rng = np.random.default_rng(seed)
    bounds, path = random_bounds(rng, n), wavy(rng, n)
    found = timed(path, SITES, bounds)
    assert_within(found, bounds)
    np.testing.assert_allclose(found.positions[[0, -1]], path(np.array([0.0, 1.0]))[0][0], atol=1e-9)


@pytest.mark.parametrize('size', [0.005, 0.05, 0.5, 5.0])
def test_straight_lines_take_the_least_time(size):
    rng = np.random.default_rng(1)
    for _ in range(5):
        move, bounds = rng.normal(size=5) * size, random_bounds(rng, 5)
        found = timed(straight(move), SITES, bounds)
        assert_within(found, bounds)
        assert 0.999 <= found.duration / fastest(move, bounds) <= 1.06


def test_the_tool_keeps_its_speed_limit():
    bounds = Bounds(np.full(2, 3.0), np.full(2, 5.0), np.full(2, 50.0), tool_speed=0.05)
    found = timed(straight(np.array([1.0, -0.4])), SITES, bounds)
    velocity = found.sampled(np.linspace(0.0, found.duration, 2000))[1]
    assert 0.95 * 0.05 <= 0.3 * np.abs(velocity[:, 0]).max() <= 0.05
    assert found.duration >= 6.0


def test_samples_are_derivatives_of_each_other():
    found = timed(wavy(np.random.default_rng(3), 3), SITES, random_bounds(np.random.default_rng(4), 3))
    times = np.linspace(0.01, found.duration - 0.01, 500)
    h = 1e-5
    ahead, here, behind = found.sampled(times + h), found.sampled(times), found.sampled(times - h)
    np.testing.assert_allclose((ahead[:2] - behind[:2]) / (2 * h), here[1:3], atol=1e-4)


@pytest.mark.parametrize('ramp', [0.1, 0.4])
def test_the_ramp_starts_and_ends_as_a_cube(ramp):
    u = np.linspace(0.0, 1.0, 20001)
    rows = ramped(u, ramp)
    for k in range(2):
        np.testing.assert_allclose(np.gradient(rows[k], u)[1:-1], rows[k + 1][1:-1], atol=1e-3)
    np.testing.assert_array_equal(rows[:3, 0], 0.0)
    np.testing.assert_allclose(rows[:3, -1], [1.0, 0.0, 0.0], atol=1e-12)
    assert (np.diff(rows[0]) > 0.0).all()
    assert rows[3, 0] > 0.0


def test_two_motions_end_to_end_rest_between():
    bounds = Bounds(np.full(1, 1.0), np.full(1, 5.0), np.full(1, 50.0))
    there = timed(straight(np.array([1.0])), SITES, bounds)
    both = there.followed_by(there)
    assert both.duration == 2 * there.duration
    assert abs(both.at_time(there.duration)[1][0]) < 1e-12
    np.testing.assert_allclose(both.at_time(1e9), [[1.0], [0.0], [0.0]], atol=1e-9)
