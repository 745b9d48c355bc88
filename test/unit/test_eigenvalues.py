# SPDX-License-Identifier: Apache-2.0
"""Eigenvalues of small matrices against LAPACK's."""

import numpy as np
import pytest

from ik_node.kernels.arrays.eigenvalues import eigenvalues


def own(matrix: np.ndarray) -> np.ndarray:
    n = len(matrix)
    real, imaginary = np.empty((2, n))
    assert eigenvalues(matrix.copy(), n, real, imaginary)
    return real + 1j * imaginary


def apart(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance from an eigenvalue of either set to the nearest of the other."""
    gaps = np.abs(found[:, None] - expected)
    return max(gaps.min(axis=0).max(), gaps.min(axis=1).max())


@pytest.mark.parametrize('n', range(1, 21))
def test_random_matrices(n):
    rng = np.random.default_rng(n)
    for _ in range(5):
        matrix = rng.normal(size=(n, n))
        assert apart(own(matrix), np.linalg.eigvals(matrix)) < 1e-9


def test_badly_scaled_rows_and_columns():
    rng = np.random.default_rng(1)
    for _ in range(10):
        plain = rng.normal(size=(12, 12))
        scale = 10.0 ** rng.uniform(-8, 8, 12)
        assert apart(own(scale[:, None] * plain / scale), np.linalg.eigvals(plain)) < 1e-8


def test_a_cycle_needs_the_exceptional_shift():
    for n in (3, 4, 8, 16):
        cycle = np.roll(np.eye(n), 1, axis=0)
        assert apart(own(cycle), np.exp(2j * np.pi * np.arange(n) / n)) < 1e-12


def test_conjugates_stand_next_to_each_other():
    found = own(np.random.default_rng(2).normal(size=(15, 15)))
    above = np.flatnonzero(found.imag > 0.0)
    assert len(above)
    np.testing.assert_array_equal(found[above + 1], found[above].conj())


def test_multiple_eigenvalues_and_zero():
    assert apart(own(np.zeros((5, 5))), np.zeros(5)) == 0.0
    block = np.eye(6) * 2.0 + np.diag(np.ones(5), 1)  # one Jordan block
    assert apart(own(block), np.full(6, 2.0)) < 1e-2


def test_what_is_not_finite_does_not_converge():
    matrix = np.eye(4)
    matrix[1, 2] = np.nan
    assert not eigenvalues(matrix, 4, *np.empty((2, 4)))
