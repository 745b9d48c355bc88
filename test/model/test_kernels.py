# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels, each against arithmetic done another way."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_arms import frames_at, random_chain, random_unit
from scipy.spatial.transform import Rotation

from ik_node import kernels
from ik_node.kernels.polynomials import eigenvalues
from ik_node.solver.methods import METHODS

SEEDS = st.integers(0, 10**6)


def plain_frames(joints, tool, q):
    """The frames (2 m + 3, 3) of kernels.forward, by 4x4 matrices and scipy's rotations."""
    pose, axes, points = np.eye(4), [], []
    for row in joints:
        axis, value = row[:3], row[8] * q[int(row[7])] + row[9]
        step, move = np.eye(4), np.eye(4)
        step[:3, 3] = row[3:6]
        pose = pose @ step
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


@pytest.mark.slow
@given(SEEDS, st.floats(0.01, 100.0))
def test_forward_equals_matrices(seed, span):
    joints, tool, n = random_chain(seed)
    assert_same_frames(joints, tool, np.random.default_rng(seed).uniform(-span, span, n))


@pytest.mark.parametrize('angle', [0.0, 1e-300, 1e-9, math.pi / 2, math.pi, -math.pi, 2 * math.pi, 1e6])
def test_forward_at_special_angles(angle):
    joints, tool, n = random_chain(7)
    assert_same_frames(joints, tool, np.full(n, angle))


@pytest.mark.slow
@given(SEEDS)
def test_jacobian_equals_central_differences(seed):
    joints, tool, n = random_chain(seed)
    q, h = np.random.default_rng(seed).uniform(-np.pi, np.pi, n), 6e-6
    exact = np.full((n, 6), np.nan)
    kernels.jacobian(joints, frames_at(joints, tool, q), exact)
    for j, step in enumerate(np.eye(n) * h):
        ahead, behind = frames_at(joints, tool, q + step), frames_at(joints, tool, q - step)
        central = ((ahead - behind) / (2 * h))[-3:-1].ravel()
        # Truncation: h^2 / 6 times the third derivative, which grows with the cube of a mimic's ratios;
        # rounding: that of the positions, divided by h.
        size = 1 + np.abs(ahead).max()
        steepness = max(1, np.abs(joints[joints[:, 7] == j, 8]).sum()) ** 3
        np.testing.assert_allclose(exact[j], central, rtol=0, atol=(1e-11 * steepness + 1e-10) * size)


@pytest.mark.parametrize('angle', [0.0, 1e-300, 1e-15, 1e-8, 1e-4, 1.0, math.pi - 1e-8, math.pi])
def test_angle_between_is_exact_everywhere(angle):
    """acos would lose half the digits near 0 and near pi."""
    a, b = np.array([1.0, 0.0, 0.0]), np.array([math.cos(angle), math.sin(angle), 0.0])
    assert abs(kernels.angle_between(a, b) - angle) <= 5e-16 + 1e-15 * angle
    assert kernels.angle_between(a, b) == kernels.angle_between(b, a)
    assert kernels.angle_between(b, b) == 0.0


def test_errors_of_goals_are_distance_and_angle_or_their_squares():
    joints, tool, n = random_chain(3)
    frames = frames_at(joints, tool, np.full(n, 0.3))
    goal = np.array([*(frames[-3] + [0.3, 0.0, -0.4]), *[np.nan] * 6])
    position, direction = kernels.goal_errors(joints, frames, goal)
    assert (position, direction) == (pytest.approx(0.5, abs=1e-15), 0.0)
    assert kernels.squared_errors(joints, frames, goal) == (pytest.approx(0.25), 0.0)
    goal[3:6] = 0.6, 0.0, 0.8
    position, direction = kernels.goal_errors(joints, frames, goal)
    squared, chord = kernels.squared_errors(joints, frames, goal)
    assert math.sqrt(squared) == pytest.approx(position, rel=1e-14)
    assert 2 * math.asin(math.sqrt(chord) / 2) == pytest.approx(direction, rel=1e-14)


def test_clip_obeys_limits_exactly_and_leaves_the_inside_alone():
    q = np.array([0.3, 1e9, -4.0])
    kernels.clip(q, np.array([[-1.0, -np.inf, 0.5], [0.1, np.inf, 0.5]]))
    assert q.tolist() == [0.1, 1e9, 0.5]


def test_next_random_is_splitmix64():
    """The same recurrence in Python's whole numbers."""
    mask, state, expected, found = 2**64 - 1, 1234567, [], np.array([1234567], dtype=np.uint64)
    for _ in range(1000):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        expected.append(((z ^ (z >> 31)) >> 11) * 2.0**-53)
    assert [kernels.next_random(found) for _ in range(1000)] == expected


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.floats(-4, 4), st.floats(0, 6), st.floats(0, 1)), min_size=1, max_size=7),
    st.floats(0.0, 1.0),
    st.integers(0, 2**63 - 1),
)
def test_perturb_stays_within_the_limits(joints, temperature, seed):
    lower, width, share = np.array(joints).T
    limits = np.array([lower, lower + width])
    best = np.clip(lower + share * width, limits[0], limits[1])
    state, q = np.array([seed], dtype=np.uint64), np.empty(len(joints))
    for _ in range(20):
        kernels.perturb(best, limits, temperature, state, q)
        assert ((q >= limits[0]) & (q <= limits[1])).all()


def test_perturb_covers_the_range_at_temperature_1_and_shrinks_below():
    limits = np.array([[-1.0, -np.inf], [3.0, np.inf]])
    best, state, points = np.array([2.5, 10.0]), np.array([1], dtype=np.uint64), np.empty((4000, 2))
    for temperature, low, high in ((1.0, -1.0, 3.0), (0.1, 2.1, 2.9)):
        for q in points:
            kernels.perturb(best, limits, temperature, state, q)
        turn = np.pi * temperature
        np.testing.assert_allclose(points.min(axis=0), [low, 10 - turn], atol=0.02)
        np.testing.assert_allclose(points.max(axis=0), [high, 10 + turn], atol=0.02)


@pytest.mark.slow
@given(st.floats(-math.pi, math.pi), st.floats(1e-6, 1e6))
def test_half_turn_is_the_quaternion_of_the_angle(angle, length):
    w, s = kernels.best_turn(length * math.sin(angle), length * math.cos(angle), 1e-13)
    assert w >= 0
    assert (w, s) == pytest.approx((math.cos(angle / 2), math.sin(angle / 2)), abs=3e-16)


@pytest.mark.parametrize('sine', [0.0, -0.0, 1e-20, -1e-20])
def test_half_turns_of_opposite_vectors_and_of_nothing(sine):
    w, s = kernels.best_turn(sine, -1.0, 1e-13)
    assert abs(w) < 1e-19
    assert abs(s) == 1.0
    assert kernels.best_turn(0.0, 0.0, 0.0) == (1.0, 0.0)
    assert kernels.best_turn(1e-14, -1e-14, 1e-13) == (1.0, 0.0)


@pytest.mark.slow
@given(SEEDS)
def test_a_hinge_turns_one_vector_as_near_to_another_as_it_can(seed):
    """Against scipy's rotations and a scan of all angles; the second vector opposite now and then."""
    rng = np.random.default_rng(seed)
    axis, a = random_unit(rng), rng.normal(size=3)
    b = -a if seed % 4 == 0 else rng.normal(size=3)
    w, s = kernels.best_turn(*kernels.align_about_axis(*axis, *a, *b), 1e-13)
    turned = kernels.rotate_quaternion(w, s, *axis, *a)
    expected = Rotation.from_rotvec(2 * math.atan2(s, w) * axis).apply(a)
    np.testing.assert_allclose(turned, expected, rtol=0, atol=1e-14)
    scan = Rotation.from_rotvec(np.linspace(-np.pi, np.pi, 400)[:, None] * axis).apply(a)
    assert np.linalg.norm(turned - b) <= np.linalg.norm(scan - b, axis=1).min() + 1e-14


@given(st.floats(-20, 20), st.floats(-7, 7), st.floats(0, 13))
def test_clamp_turn_is_the_nearest_allowed_angle(value, low, width):
    high = low + width
    result = kernels.clamp_turn(value, low, high)
    assert low <= result <= high
    assert math.cos(result - value) >= np.cos(np.linspace(low, high, 500) - value).max() - 1e-9
    assert kernels.clamp_turn(value, -math.inf, math.inf) == value


@pytest.mark.slow
@pytest.mark.parametrize('method', [name for name, method in METHODS.items() if not method.module])
@given(SEEDS, st.booleans())
@settings(max_examples=60)
def test_every_descent_keeps_its_promises(method, seed, position_only):
    """Frames at the returned q, limits kept, never farther than the start, iterations counted."""
    joints, tool, n = random_chain(seed)
    rng = np.random.default_rng(seed)
    limits = np.sort(rng.uniform(-2, 2, (2, n)), axis=0)
    frames = frames_at(joints, tool, rng.uniform(*limits))
    goal = np.concatenate([frames[-3], frames[-2], np.full(3, np.nan)])
    if position_only:
        goal[3:6] = np.nan
    options = np.array([1e-6, 1e-6, 0.3, 50, 1e-2, 2, 0.5, 0, 0, *(1.0 for _ in METHODS[method].switches)])
    q = rng.uniform(*limits)
    kernels.forward(joints, tool, q, frames)
    before = np.dot(kernels.squared_errors(joints, frames, goal), [1, 0.09])
    work = np.full((3 * n + 4, max(n, 6)), np.nan)
    iterations = getattr(kernels, f'local_{method}')(joints, tool, limits, goal, options, q, frames, work)
    assert 0 <= iterations <= 50
    assert ((q >= limits[0]) & (q <= limits[1])).all()
    np.testing.assert_array_equal(frames, frames_at(joints, tool, q))
    assert np.dot(kernels.squared_errors(joints, frames, goal), [1, 0.09]) <= before


# --- eigenvalues, against LAPACK's ---------------------------------------------------------------------


def own(matrix):
    n = len(matrix)
    real, imaginary = np.empty((2, n))
    assert eigenvalues(matrix.copy(), n, real, imaginary)
    return real + 1j * imaginary


def apart(found, expected) -> float:
    """The largest distance from an eigenvalue of either set to the nearest of the other."""
    gaps = np.abs(found[:, None] - expected)
    return max(gaps.min(axis=0).max(), gaps.min(axis=1).max())


@pytest.mark.slow
@pytest.mark.parametrize('n', [*range(1, 9), 15, 20])
def test_eigenvalues_of_random_and_badly_scaled_matrices(n):
    rng = np.random.default_rng(n)
    for _ in range(5):
        matrix, scale = rng.normal(size=(n, n)), 10.0 ** rng.uniform(-8, 8, n)
        found, expected = own(matrix), np.linalg.eigvals(matrix)
        assert apart(found, expected) < 1e-9
        assert apart(own(scale[:, None] * matrix / scale), expected) < 1e-8
        above = np.flatnonzero(found.imag > 0.0)  # conjugates stand next to each other
        np.testing.assert_array_equal(found[above + 1], found[above].conj())


def test_eigenvalues_of_special_matrices():
    for n in (3, 4, 8, 16):  # a cycle needs the exceptional shift
        assert apart(own(np.roll(np.eye(n), 1, axis=0)), np.exp(2j * np.pi * np.arange(n) / n)) < 1e-12
    assert apart(own(np.zeros((5, 5))), np.zeros(5)) == 0.0
    block = np.eye(6) * 2.0 + np.diag(np.ones(5), 1)  # one Jordan block
    assert apart(own(block), np.full(6, 2.0)) < 1e-2
    matrix = np.eye(4)
    matrix[1, 2] = np.nan
    assert not eigenvalues(matrix, 4, *np.empty((2, 4)))
