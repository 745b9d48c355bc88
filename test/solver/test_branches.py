# SPDX-License-Identifier: Apache-2.0
"""Normal equations of branching robots: those of dense algebra, without the zeros between branches."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.torsos import goals_at, torso

from ik_node.kernels.chain.forward import forward
from ik_node.kernels.chain.linear import normal_equations
from ik_node.kernels.trees import branches as kernels
from ik_node.solver.trees.tree_search import branches

RNG = np.random.default_rng(0)


def random_tree(n: int) -> np.ndarray:
    """Return parents (n,) of a random tree, now and then of several."""
    return np.array([-1, *(int(RNG.integers(-1, i)) for i in range(1, n))])


def ancestors(parents: np.ndarray, joint: int) -> list[int]:
    """Return joint and those that carry it, from the base."""
    return [] if joint < 0 else [*ancestors(parents, parents[joint]), joint]


@pytest.mark.parametrize('n', [1, 2, 7, 13, 23])
def test_the_step_is_that_of_dense_algebra(n):
    for _ in range(20):
        parents, dense = random_tree(n), np.zeros((n, n))
        for leaf in range(n):
            own = ancestors(parents, leaf)
            jacobian = RNG.normal(size=(6, len(own)))
            dense[np.ix_(own, own)] += jacobian.T @ jacobian
        gradient, free = RNG.normal(size=n), (RNG.random(n) < 0.8).astype(float)
        factor, step = RNG.normal(size=(n, n)), RNG.normal(size=n)
        kernels.branch_step(np.tril(dense), gradient, free, 0.1, parents, factor, step)
        held, wanted = free == 0.0, np.zeros(n)
        rest = np.ix_(~held, ~held)
        wanted[~held] = np.linalg.solve(dense[rest] + 0.1 * np.eye((~held).sum()), gradient[~held])
        np.testing.assert_allclose(step, wanted, atol=1e-10)


def test_the_equations_of_all_tools_are_the_sum_of_those_of_each():
    tree = torso()
    parents, leaves = branches(list(tree.columns.values()), tree.n)
    aim, q = tree.sample(RNG, 2)
    hessian, gradient = np.zeros((tree.n, tree.n)), np.zeros(tree.n)
    wanted, right = np.zeros((tree.n, tree.n)), np.zeros(tree.n)
    jac, part, own = np.empty((tree.n, 6)), np.empty((tree.n, tree.n)), np.empty(tree.n)
    for (name, goal), leaf, share in zip(goals_at(tree, aim).items(), leaves, (1.0, 2.5), strict=True):
        arm = tree.arms[name]
        joints, frames = tree.renumbered(name, arm.joints), np.empty((2 * arm.n + 3, 3))
        forward(joints, arm.tool, q, frames)
        kernels.add_normal_equations(
            joints, frames, goal.packed, 0.3, share, parents, leaf, jac, hessian, gradient
        )
        normal_equations(joints, frames, goal.packed, 0.3, jac, part, own)
        wanted, right = wanted + share * np.tril(part), right + share * own
    np.testing.assert_allclose(hessian, wanted, atol=1e-12)
    np.testing.assert_allclose(gradient, right, atol=1e-12)


def test_the_branches_of_tools():
    parents, leaves = branches([np.array([0, 1, 2]), np.array([0, 3, 4])], 6)
    assert parents.tolist() == [-1, 0, 1, 0, 3, -1], 'joint 5 moves neither tool'
    assert leaves.tolist() == [2, 4]
    # Joints in another order, as mimic joints have them: no tree, so one branch.
    for columns in ([[0, 1, 2], [0, 2, 1]], [[1, 0], [0, 2]]):
        parents, leaves = branches([np.array(own) for own in columns], 3)
        assert parents.tolist() == [-1, 0, 1]
        assert leaves.tolist() == [2, 2]
