# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels, each against arithmetic done another way."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_arms import random_unit
from random_chains import frames_at, random_chain
from scipy.spatial.transform import Rotation

from ik_node import kernels
from ik_node.solver.methods.registry import METHODS


def plain_frames(joints, tool, q):
    """The frames (2 m + 3, 3) of kernels.forward, by 4x4 matrices and scipy's rotations."""
    pose = np.eye(4)
    axes, points = [], []
    for row in joints:
        axis, value = row[:3], row[8] * q[int(row[7])] + row[9]
        step = np.eye(4)
        step[:3, 3] = row[3:6]
        pose = pose @ step
        move = np.eye(4)
        if row[6]:
            move[:3, 3] = axis * value
        else:
            move[:3, :3] = Rotation.from_rotvec(axis * value).as_matrix()
        axes.append(pose[:3, :3] @ axis)
        pose = pose @ move
        points.append(pose[:3, 3])
    turn = pose[:3, :3]
    return np.array([*axes, *points, turn @ tool[:3] + pose[:3, 3], turn @ tool[3:6], turn @ tool[6:9]])


def assert_same_frames(joints, tool, q):
    """Equal to rounding: 1e-15 per joint, of angles and slides as large as they are."""
    expected = plain_frames(joints, tool, q)
    largest = 1 + np.abs(joints[:, 8] * q[joints[:, 7].astype(int)] + joints[:, 9]).max()
    bound = 1e-15 * len(joints) * largest * (1 + np.abs(expected).max())
    np.testing.assert_allclose(frames_at(joints, tool, q), expected, rtol=0, atol=bound)


@given(st.integers(0, 10**6), st.floats(0.01, 100.0))
@settings(max_examples=150, deadline=None)
def test_forward_equals_matrices(seed, span):
    joints, tool, n = random_chain(seed)
    q = np.random.default_rng(seed).uniform(-span, span, n)
    assert_same_frames(joints, tool, q)


@pytest.mark.parametrize('angle', [0.0, 1e-300, 1e-9, math.pi / 2, math.pi, -math.pi, 2 * math.pi, 1e6])
def test_forward_at_special_angles(angle):
    joints, tool, n = random_chain(7)
    q = np.full(n, angle)
    assert_same_frames(joints, tool, q)


@given(st.integers(0, 10**6))
@settings(max_examples=150, deadline=None)
def test_jacobian_equals_central_differences(seed):
    joints, tool, n = random_chain(seed)
    q = np.random.default_rng(seed).uniform(-np.pi, np.pi, n)
    exact = np.full((n, 6), np.nan)
    kernels.jacobian(joints, frames_at(joints, tool, q), exact)
    h = 6e-6
    for j in range(n):
        step = np.eye(n)[j] * h
        ahead, behind = frames_at(joints, tool, q + step), frames_at(joints, tool, q - step)
        central = ((ahead - behind) / (2 * h))[-3:-1].ravel()
        # Truncation: h^2 / 6 times the third derivative, which grows with the cube of a mimic's ratios;
        # rounding: that of the positions, divided by h.
        size = 1 + np.abs(ahead).max()
        steepness = max(1, np.abs(joints[joints[:, 7] == j, 8]).sum()) ** 3
        np.testing.assert_allclose(exact[j], central, rtol=0, atol=(1e-11 * steepness + 1e-10) * size)


def test_jacobian_of_a_plain_arm_equals_central_differences_to_3e_11():
    """The figure of the design: five hinges, half a metre, h = 6e-6."""
    joints = np.array(
        [
            [0, 0, 1, 0, 0, 0.1, 0, 0, 1, 0],
            [0, 1, 0, 0.02, 0, 0.05, 0, 1, 1, 0],
            [0, 1, 0, 0, 0.01, 0.2, 0, 2, 1, 0],
            [0, 1, 0, 0.15, 0, 0, 0, 3, 1, 0],
            [1, 0, 0, 0.05, 0, 0, 0, 4, 1, 0],
        ],
        dtype=float,
    )
    tool = np.array([0.05, 0.0, 0.02, 0, 0.6, 0.8, 1, 0, 0])
    rng, h = np.random.default_rng(1), 6e-6
    for q in rng.uniform(-np.pi, np.pi, (200, 5)):
        exact = np.empty((5, 6))
        kernels.jacobian(joints, frames_at(joints, tool, q), exact)
        for j, step in enumerate(np.eye(5) * h):
            moved = frames_at(joints, tool, q + step) - frames_at(joints, tool, q - step)
            np.testing.assert_allclose(exact[j], (moved / (2 * h))[-3:-1].ravel(), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    'angle', [0.0, 1e-300, 1e-15, 1e-8, 1e-4, 1.0, math.pi / 2, math.pi - 1e-4, math.pi - 1e-8, math.pi]
)
def test_angle_between_is_exact_everywhere(angle):
    """acos would lose half the digits near 0 and near pi."""
    a, b = np.array([1.0, 0.0, 0.0]), np.array([math.cos(angle), math.sin(angle), 0.0])
    assert abs(kernels.angle_between(a, b) - angle) <= 5e-16 + 1e-15 * angle
    assert kernels.angle_between(a, b) == kernels.angle_between(b, a)
    assert kernels.angle_between(b, b) == 0.0


def test_goal_errors_without_a_direction_counts_the_position_only():
    joints, tool, n = random_chain(3)
    frames = frames_at(joints, tool, np.zeros(n))
    goal = np.full(9, np.nan)
    goal[:3] = frames[-3] + [0.3, 0.0, -0.4]
    position, direction = kernels.goal_errors(joints, frames, goal)
    assert position == pytest.approx(0.5, abs=1e-15)
    assert direction == 0.0
    assert kernels.squared_errors(joints, frames, goal) == (pytest.approx(0.25), 0.0)


def test_squared_errors_are_the_square_and_the_chord():
    joints, tool, n = random_chain(3)
    frames = frames_at(joints, tool, np.full(n, 0.3))
    goal = np.array([0.1, 0.2, 0.3, 0.6, 0.0, 0.8, np.nan, np.nan, np.nan])
    position, direction = kernels.goal_errors(joints, frames, goal)
    squared, chord = kernels.squared_errors(joints, frames, goal)
    assert math.sqrt(squared) == pytest.approx(position, rel=1e-14)
    assert 2 * math.asin(math.sqrt(chord) / 2) == pytest.approx(direction, rel=1e-14)


def test_clip_obeys_limits_exactly_and_leaves_the_inside_alone():
    limits = np.array([[-1.0, -np.inf, 0.5], [0.1, np.inf, 0.5]])
    q = np.array([0.3, 1e9, -4.0])
    kernels.clip(q, limits)
    assert q.tolist() == [0.1, 1e9, 0.5]


def random_numbers(seed, count):
    state = np.array([seed], dtype=np.uint64)
    return np.array([kernels.next_random(state) for _ in range(count)])


def test_next_random_is_splitmix64():
    """The first outputs for seed 1234567, from the same recurrence in Python's whole numbers."""
    mask, state, expected = 2**64 - 1, 1234567, []
    for _ in range(1000):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        expected.append(((z ^ (z >> 31)) >> 11) * 2.0**-53)
    assert random_numbers(1234567, 1000).tolist() == expected


def test_next_random_is_uniform_and_deterministic():
    numbers = random_numbers(5, 20000)
    assert numbers.tolist() == random_numbers(5, 20000).tolist()
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    # 20 bins of 1000: chi-squared with 19 degrees of freedom exceeds 43.8 once in a thousand.
    counts = np.histogram(numbers, 20, (0, 1))[0]
    assert ((counts - 1000.0) ** 2 / 1000).sum() < 43.8
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.03


@given(
    st.lists(st.tuples(st.floats(-4, 4), st.floats(0, 6), st.floats(0, 1)), min_size=1, max_size=7),
    st.floats(0.0, 1.0),
    st.integers(0, 2**63 - 1),
)
@settings(max_examples=200, deadline=None)
def test_perturb_stays_within_the_limits(joints, temperature, seed):
    lower, width, share = np.array(joints).T
    limits = np.array([lower, lower + width])
    best = np.clip(lower + share * width, limits[0], limits[1])
    state = np.array([seed], dtype=np.uint64)
    q = np.empty(len(joints))
    for _ in range(20):
        kernels.perturb(best, limits, temperature, state, q)
        assert (q >= limits[0]).all()
        assert (q <= limits[1]).all()


def test_perturb_covers_the_range_at_temperature_1_and_shrinks_below():
    limits = np.array([[-1.0, -np.inf], [3.0, np.inf]])
    best = np.array([2.5, 10.0])
    state = np.array([1], dtype=np.uint64)
    points = np.empty((4000, 2))
    for temperature, expected in ((1.0, (-1.0, 3.0)), (0.1, (2.1, 2.9))):
        for q in points:
            kernels.perturb(best, limits, temperature, state, q)
        assert points[:, 0].min() == pytest.approx(expected[0], abs=0.02)
        assert points[:, 0].max() == pytest.approx(expected[1], abs=0.02)
        assert points[:, 1].min() == pytest.approx(10 - np.pi * temperature, abs=0.02)
        assert points[:, 1].max() == pytest.approx(10 + np.pi * temperature, abs=0.02)


@given(st.floats(-math.pi, math.pi), st.floats(1e-6, 1e6))
@settings(deadline=None)
def test_half_turn_is_the_quaternion_of_the_angle(angle, length):
    w, s = kernels.best_turn(length * math.sin(angle), length * math.cos(angle), 1e-13)
    assert w >= 0
    assert w == pytest.approx(math.cos(angle / 2), abs=3e-16)
    assert s == pytest.approx(math.sin(angle / 2), abs=3e-16)


@pytest.mark.parametrize('sine', [0.0, -0.0, 1e-20, -1e-20])
def test_half_turn_of_opposite_vectors_is_a_half_turn(sine):
    w, s = kernels.best_turn(sine, -1.0, 1e-13)
    assert abs(w) < 1e-19
    assert abs(s) == 1.0


def test_half_turn_of_nothing_is_no_turn():
    assert kernels.best_turn(0.0, 0.0, 0.0) == (1.0, 0.0)
    assert kernels.best_turn(1e-14, -1e-14, 1e-13) == (1.0, 0.0)


@given(st.integers(0, 10**6))
@settings(deadline=None)
def test_a_hinge_turns_one_vector_as_near_to_another_as_it_can(seed):
    """Against scipy's rotations and a scan of all angles; the second vector opposite now and then."""
    rng = np.random.default_rng(seed)
    axis, a = random_unit(rng), rng.normal(size=3)
    b = -a if seed % 4 == 0 else rng.normal(size=3)
    w, s = kernels.best_turn(*kernels.align_about_axis(*axis, *a, *b), 1e-13)
    angle = 2 * math.atan2(s, w)
    turned = kernels.rotate_quaternion(w, s, *axis, *a)
    np.testing.assert_allclose(turned, Rotation.from_rotvec(angle * axis).apply(a), rtol=0, atol=1e-14)
    scan = Rotation.from_rotvec(np.linspace(-np.pi, np.pi, 400)[:, None] * axis).apply(a)
    assert np.linalg.norm(turned - b) <= np.linalg.norm(scan - b, axis=1).min() + 1e-14


@given(st.floats(-20, 20), st.floats(-7, 7), st.floats(0, 13))
@settings(deadline=None)
def test_hinge_within_is_the_nearest_allowed_angle(value, low, width):
    high = low + width
    result = kernels.clamp_turn(value, low, high)
    assert low <= result <= high
    allowed = np.linspace(low, high, 500)
    nearest = np.cos(allowed - value).max()
    assert math.cos(result - value) >= nearest - 1e-9
    assert kernels.clamp_turn(value, -math.inf, math.inf) == value


@pytest.mark.parametrize('method', [name for name, method in METHODS.items() if not method.module])
@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_every_descent_keeps_its_promises(method, seed, position_only):
    """Frames at the returned q, limits kept, never farther than the start, iterations counted."""
    joints, tool, n = random_chain(seed)
    rng = np.random.default_rng(seed)
    limits = np.sort(rng.uniform(-2, 2, (2, n)), axis=0)
    inside = rng.uniform(*limits)
    frames = frames_at(joints, tool, inside)
    goal = np.concatenate([frames[-3], frames[-2], np.full(3, np.nan)])
    if position_only:
        goal[3:6] = np.nan
    options = np.array(
        [1e-6, 1e-6, 0.3, 50, 1e-2, 2, 0.5, 0.0, 0.0, *(1.0 for _ in METHODS[method].switches)]
    )
    q = rng.uniform(*limits)
    kernels.forward(joints, tool, q, frames)
    before = np.dot(kernels.squared_errors(joints, frames, goal), [1, 0.09])
    work = np.full((3 * n + 4, max(n, 6)), np.nan)
    iterations = getattr(kernels, f'local_{method}')(joints, tool, limits, goal, options, q, frames, work)
    assert 0 <= iterations <= 50
    assert (q >= limits[0]).all()
    assert (q <= limits[1]).all()
    np.testing.assert_array_equal(frames, frames_at(joints, tool, q))
    assert np.dot(kernels.squared_errors(joints, frames, goal), [1, 0.09]) <= before
