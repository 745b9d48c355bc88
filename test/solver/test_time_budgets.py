# SPDX-License-Identifier: Apache-2.0
"""Every call that may search has a time budget by default, and says so when it ends early."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from oracles.random_arms import general_arm, random_task
from oracles.torsos import TOOLS, goals_at, torso
from test_within_tolerances import displaced

from ik_node import Goal, IkSolver, Status, TreeSolver, kernels
from ik_node.solver.goal import Cause

ENDED = 1e-9  # s: over before the first look at the clock
MANY = 10**6  # restarts that would take minutes
CALLS = [IkSolver, TreeSolver, IkSolver.prove, IkSolver.solve_path]
CALLS_OF_A_SOLVER = [IkSolver.solve, IkSolver.solve_all, IkSolver.track, TreeSolver.solve, TreeSolver.track]


@pytest.fixture(scope='module')
def tree_goals():
    """Goals for the tools of a torso that can be met alone, but not together."""
    tree = torso()
    rng, yaw = np.random.default_rng(3), tree.joint_names.index('yaw')
    for _ in range(6):  # the last of them
        first, second = tree.sample(rng, 2)
        first[yaw], second[yaw] = tree.limits[:, yaw]
        goals = {'left': goals_at(tree, first)['left'], 'right': goals_at(tree, second)['right']}
    found = TreeSolver(tree, restarts=50, time_budget=math.inf).solve(goals)
    assert {one.reason.cause for one in found.tools.values()} == {Cause.CONFLICT}
    return tree, goals


@pytest.mark.parametrize('call', CALLS, ids=lambda call: call.__qualname__)
def test_the_default_is_finite(call):
    assert 0.0 < inspect.signature(call).parameters['time_budget'].default < math.inf


@pytest.mark.parametrize('call', CALLS_OF_A_SOLVER, ids=lambda call: call.__qualname__)
def test_a_call_has_that_of_its_solver(call):
    assert inspect.signature(call).parameters['time_budget'].default is None


def test_nothing_is_called_unreachable_when_time_has_run_out_before_the_tolerances_are_searched():
    """Joints 2, 3 and 5 at their limits: the exact formula finds nothing, but the given q is close enough."""
    arm = random_task(8).arm
    q = [0.9567102382014652, -0.75579757465096, -1.3948779256227521, -2.233463986621947, -0.508980520556285]
    q = np.clip(q, arm.lower, arm.upper)
    solver, rng = IkSolver(arm), np.random.default_rng(0)
    causes = []
    for _ in range(40):
        goal = displaced(arm, q, 1e-6, 1e-4, rng)
        found = solver.solve(goal, arm.sample(rng, 1)[0], time_budget=ENDED)
        assert found.status is not Status.UNREACHABLE
        causes += [] if found.reason is None else [(found.reason.cause, found.reason.amount)]
        assert solver.solve(goal, arm.sample(rng, 1)[0]).solved
    assert set(causes) == {(Cause.TIME, ENDED)}


def test_out_of_reach_by_the_link_lengths_takes_no_time():
    solver = IkSolver(general_arm(18).arm)
    found = solver.solve(Goal((0.0, 0.0, 3.0 * solver.arm.reach), (0.0, 0.0, 1.0)), time_budget=ENDED)
    assert found.status is Status.UNREACHABLE
    assert found.reason is not None
    assert found.reason.cause is Cause.TOO_FAR


def test_the_clock_is_checked_after_each_descent_while_kernels_are_not_compiled(monkeypatch):
    solver = IkSolver(general_arm(18).arm, closed_form=False)
    goal = Goal(solver.arm.fk(solver.arm.middle)[0], (0.0, 0.0, 1.0))
    kernels.prepare(wait=True)  # other tests may have requested some that are still being compiled
    assert solver.solve(goal, time_budget=ENDED).restarts > 0
    monkeypatch.setattr(kernels, 'ready', lambda: False)
    assert solver.solve(goal, time_budget=ENDED).restarts == 0


def test_parts_between_two_looks_at_the_clock_do_not_change_the_answer(monkeypatch, tree_goals):
    tree, goals = tree_goals
    solver, both = IkSolver(general_arm(18).arm, closed_form=False), TreeSolver(tree, restarts=50)
    rng = np.random.default_rng(0)
    tasks = [Goal(solver.arm.fk(q)[0], rng.permutation([0.0, 0.6, 0.8])) for q in solver.arm.sample(rng, 5)]
    before = [solver.solve(goal).q for goal in tasks], both.solve(goals).q
    monkeypatch.setattr(kernels, 'ready', lambda: False)
    np.testing.assert_array_equal([solver.solve(goal).q for goal in tasks], before[0])
    np.testing.assert_array_equal(both.solve(goals).q, before[1])


def test_a_method_for_comparison_starts_once_when_time_has_run_out(monkeypatch):
    starts = []
    monkeypatch.setattr(kernels, 'perturb', lambda *_: starts.append(1))
    solver = IkSolver(general_arm(18).arm, method='transpose')
    goal = Goal((0.0, 0.0, 3.0 * solver.arm.reach), (0.0, 0.0, 1.0))
    solver.solve(goal, time_budget=ENDED)
    assert not starts
    solver.solve(goal)
    assert starts


@pytest.mark.parametrize('call', ['solve', 'track'])
def test_goals_of_several_tools(call, tree_goals):
    tree, goals = tree_goals
    solver = TreeSolver(tree, restarts=MANY)
    found = getattr(solver, call)(goals, tree.middle, time_budget=0.05)
    assert not found.solved
    assert set(found.tools) == set(TOOLS)
    for one in found.tools.values():
        assert one.status is Status.NOT_FOUND
        assert one.restarts < MANY
        assert one.reason is not None
        assert one.reason.cause is Cause.TIME


def test_nothing_is_proven_when_time_has_run_out():
    pytest.importorskip('flint')
    arm = general_arm(0).arm
    goal = Goal(*arm.fk(arm.middle + 0.1))
    proof = IkSolver(arm).prove(goal, time_budget=ENDED)
    assert not proof.proven
    assert proof.reason == 'the time budget of 1e-09 s is used up'
    assert proof.q.shape == (0, 5)
    assert IkSolver(arm).prove(goal).proven
    assert not IkSolver(arm).prove(goal, time_budget=ENDED).proven
