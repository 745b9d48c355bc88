# SPDX-License-Identifier: Apache-2.0
"""The mean rule of averaged Jacobian-transpose steps: the method transpose of trees."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.plain import PlainArm
from oracles.torsos import TOOLS, goals_at, pair, random_goals, torso, torso_text

from ik_node import Goal, IkSolver, InputError, Tree, TreeSolver, kernels
from ik_node.kernels.arrays.layout import ITERATIONS, WEIGHT
from ik_node.solver.restarts import search_options
from ik_node.solver.trees.clock import Clock
from ik_node.solver.trees.tree_search import TreeSearch

STEP = 1e-6


@pytest.fixture(scope='module')
def body() -> Tree:
    return torso()


def transpose_step(body: Tree, goal: Goal, name: str, q: np.ndarray, weight: float) -> np.ndarray:
    """Return the step (n,) along J^T e of the best length for the linear model, J by central differences."""
    arm = PlainArm(torso_text(), TOOLS[name].tip_link)

    def residual(q: np.ndarray) -> np.ndarray:
        point, axis = arm.fk(dict(zip(body.joint_names, q.tolist(), strict=True)))
        return np.concatenate([goal.position - point, weight * (goal.direction - axis)])

    sides = [(residual(q - row) - residual(q + row)) / (2 * STEP) for row in STEP * np.eye(body.n)]
    jacobian, error = np.array(sides).T, residual(q)
    gradient = jacobian.T @ error
    along = jacobian @ gradient
    return gradient * (gradient @ gradient) / (along @ along)


def test_shared_joints_take_the_mean_of_the_steps_and_the_others_their_own(body):
    kernels.prepare(('search_tree_transpose',), wait=True)
    options = search_options('transpose', 1.0, 1e-9, 1e-9, 'greedy')
    options[ITERATIONS] = 1
    search = TreeSearch(body, tuple(TOOLS), 'transpose', options, 0)
    rng = np.random.default_rng(0)
    for q in 0.8 * body.sample(rng, 20):
        aim = q + rng.uniform(-0.05, 0.05, body.n)
        goals = goals_at(body, aim)
        steps = {name: transpose_step(body, goals[name], name, q, options[WEIGHT]) for name in TOOLS}
        for name, step in steps.items():
            others = np.setdiff1d(np.arange(body.n), body.columns[name])
            assert not step[others].any()
        wanted = q + steps['left'] + steps['right']
        shared = body.joint_names.index('yaw')
        wanted[shared] = q[shared] + 0.5 * (steps['left'] + steps['right'])[shared]
        found = q.copy()
        search.solve(np.array([goals[name].packed for name in TOOLS]), found, 0, Clock(1.0))
        if (found != q).any():  # a step that gains nothing is not kept
            np.testing.assert_allclose(found, wanted, atol=1e-7)


def test_reachable_pairs_are_solved(body):
    solver = TreeSolver(body, method='transpose', position_tolerance=1e-4, direction_tolerance=1e-3)
    solved = [solver.solve(goals_at(body, q)).solved for q in body.sample(np.random.default_rng(1), 40)]
    assert np.mean(solved) >= 0.95


def test_tools_that_share_no_joint_get_the_answers_of_that_method():
    tree, rng = pair(), np.random.default_rng(2)
    solver = TreeSolver(tree, method='transpose', restarts=10)
    alone = {name: IkSolver(arm, method='transpose', restarts=10) for name, arm in tree.arms.items()}
    for number in range(10):
        q = tree.sample(rng, 1)[0]
        goals = goals_at(tree, q) if number % 2 else random_goals(rng, tree)
        found = solver.solve(goals)
        for name, goal in goals.items():
            assert (found.tools[name].q == alone[name].solve(goal).q).all()


def test_limits_are_kept(body):
    solver, rng = TreeSolver(body, method='transpose', restarts=5), np.random.default_rng(3)
    for _ in range(10):
        q = solver.solve(random_goals(rng, body)).q
        assert ((q >= body.lower) & (q <= body.upper)).all()


def test_other_methods_are_named(body):
    with pytest.raises(InputError, match=r"method of a tree must be one of lm, transpose, got 'ccd'"):
        TreeSolver(body, method='ccd')
