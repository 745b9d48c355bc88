# SPDX-License-Identifier: Apache-2.0
"""The reference for goals of several tools out of reach: its derivatives, and what it finds beside SciPy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from benchmarks.torsos import torso
from benchmarks.tree_reference import TreeReference, newton_equations, squared_misses
from benchmarks.trees import chains_of

STEP = 1e-5
TREE = torso()
CHAINS = list(chains_of(TREE, 'seed_arm').values())
REFERENCE = TreeReference(CHAINS, list(TREE.columns.values()), TREE.limits)
FAR = np.array([[1.2, 0.9, 0.8], [0.3, -1.6, -0.4]])


def cost(q: np.ndarray) -> float:
    """Return the sum of squared misses by chain.py."""
    pairs = zip(CHAINS, TREE.columns.values(), FAR, strict=True)
    return float(sum(((chain.fk(q[own])[0][0] - place) ** 2).sum() for chain, own, place in pairs))


def equations(q: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    world, tips = np.empty((2, 6, 6)), np.empty((2, 6))
    arrays = REFERENCE.mounts, REFERENCE.axes, REFERENCE.tools, REFERENCE.columns
    total = squared_misses(*arrays, FAR, q, world, tips)
    gradient, hessian = np.empty(TREE.n), np.empty((TREE.n, TREE.n))
    newton_equations(REFERENCE.columns, FAR, world, tips, gradient, hessian)
    return total, 2 * gradient, 2 * hessian


def test_its_derivatives_are_those_of_the_cost():
    for q in TREE.sample(np.random.default_rng(0), 5):
        total, gradient, hessian = equations(q)
        assert abs(total - cost(q)) < 1e-12
        around = STEP * np.eye(TREE.n)
        slopes = [(cost(q + row) - cost(q - row)) / (2 * STEP) for row in around]
        np.testing.assert_allclose(gradient, slopes, atol=1e-8)
        curves = [(equations(q + row)[1] - equations(q - row)[1]) / (2 * STEP) for row in around]
        np.testing.assert_allclose(hessian, curves, atol=1e-8)


def test_it_finds_what_scipy_finds_from_the_same_starts():
    starts = TREE.sample(np.random.default_rng(1), 12)
    found = REFERENCE.least(FAR, starts)
    others = [minimize(cost, q, bounds=TREE.limits.T, method='L-BFGS-B').fun for q in starts]
    assert abs(found - min(others)) < 1e-6
