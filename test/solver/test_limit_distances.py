# SPDX-License-Identifier: Apache-2.0
"""LimitDistances finds what a comparison of all solutions finds."""

from __future__ import annotations

import numpy as np
import pytest
from cases import shipped_cases

from ik_node import Goal, IkSolver
from ik_node.solver.goal import pack_goals
from ik_node.solver.limit_distances import LimitDistances, distances_to_limits

GOALS = 40
BEHIND = 2e-3  # rad or m by which descents may end before the best


@pytest.mark.parametrize('case', shipped_cases(), ids=lambda case: case.label)
@pytest.mark.parametrize('free', [False, True])
def test_it_is_the_best_of_all_solutions(case, free):
    arm = case.arm()
    solver, quick = IkSolver(arm, compile='wait'), LimitDistances(arm)
    rng = np.random.default_rng(7)
    positions, directions = (
        np.array(values) for values in zip(*map(arm.fk, arm.sample(rng, GOALS)), strict=True)
    )
    positions[::3] += 0.05 * rng.normal(size=positions[::3].shape)
    goals = pack_goals(positions, None if free else directions)
    joints, distances, complete = quick.find(goals)
    again = quick.find(goals)
    np.testing.assert_array_equal(again[1], distances)
    met = distances > -np.inf
    assert met.sum() > GOALS / 2
    for k in np.flatnonzero(met):
        assert max(solver.errors(Goal.unpacked(goals[k]), joints[k])) < 1e-4
        assert (joints[k] >= arm.lower - 1e-9).all()
        assert (joints[k] <= arm.upper + 1e-9).all()
    np.testing.assert_allclose(distances_to_limits(arm, joints[met]), distances[met], atol=1e-9)
    exact = solver.closed_form is not None and solver.closed_form.exact and not free
    assert complete.all() or not exact
    for k in range(0, GOALS, 1 if exact else 4):
        every = solver.solve_all(Goal.unpacked(goals[k]), time_budget=0.05)
        assert bool(every) == met[k]
        if every:
            best = distances_to_limits(arm, np.array([one.q for one in every])).max()
            if exact:
                assert distances[k] == pytest.approx(best, abs=1e-6)
            else:
                assert distances[k] > best - BEHIND


def test_goals_out_of_reach_need_no_search():
    arm = shipped_cases()[0].arm()
    _, distances, complete = LimitDistances(arm).find(pack_goals(np.full((3, 3), 50.0), None))
    assert (distances == -np.inf).all()
    assert complete.all()


def test_what_is_missed_by_less_lacks_less():
    arm = shipped_cases()[0].arm()
    solver, quick = IkSolver(arm, compile='wait'), LimitDistances(arm, lacks=True)
    q = arm.middle + 0.3
    away = np.array([2.0, 0.5, 0.3]) * arm.reach
    goals = pack_goals(np.array([arm.fk(q)[0], away, 1.5 * away]), None)
    distances = quick.find(goals)[1]
    lack = quick.lack(goals, distances)
    assert lack[0] == 0.0
    closest = [solver.solve(Goal.unpacked(goal)).position_error for goal in goals[1:]]
    np.testing.assert_allclose(lack[1:], closest, rtol=1e-2)
    assert lack[2] > lack[1] > 0.1
