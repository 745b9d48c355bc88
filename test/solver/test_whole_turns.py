# SPDX-License-Identifier: Apache-2.0
"""The whole turns of all solutions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from all_solutions_checks import assert_good
from cases import TOLERANCE, arm_of, new_solver
from hypothesis import given, settings
from hypothesis import strategies as st
from made_arms import make_arm, parallel_arm
from tool_paths import limits_of, plain_arm

from ik_node import Arm, Goal, IkSolver, kernels

ANY_ERROR = np.full(9, 1e3)  # options of the search: nothing misses the goal


def assert_every_turn_is_there(arm: Arm, solutions, seed) -> None:
    """With a solution, every whole-turn variant of it within finite limits; continuous joints once."""
    rows = np.array([solution.q for solution in solutions])
    for i in range(arm.n):
        if arm.continuous[i]:
            assert (np.abs(rows[:, i] - seed[i]) <= np.pi + 1e-9).all()
        elif arm.period[i] and not arm.idle[i]:
            for row in rows:
                for turn in (-2 * np.pi, 2 * np.pi):
                    value = row[i] + turn
                    if arm.lower[i] <= value <= arm.upper[i]:
                        other = row.copy()
                        other[i] = value
                        assert np.abs(rows - other).max(axis=1).min() < 1e-9


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_whole_turns_are_all_there(seed):
    """Made-up arms with ranges of 2 to 10 rad and continuous joints among them."""
    arm = parallel_arm(seed)
    solver = new_solver(arm)
    for q in arm.sample(np.random.default_rng(seed), 3):
        goal = Goal(*arm.fk(q))
        solutions = solver.solve_all(goal, arm.middle, time_budget=np.inf)
        assert_good(solver, goal, solutions, arm.middle)
        assert_every_turn_is_there(arm, solutions, arm.middle)
        # Two solutions that are nearly one are found to the square root of the tolerance.
        assert min(np.abs(other.q - q)[~arm.continuous].max(initial=0) for other in solutions) < 3e-3


def test_whole_turns_multiply():
    """Two joints with room for two turns each: each configuration comes four times."""
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
    offsets = [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.3), (0.2, 0, 0), (0.1, 0, 0)]
    tool = {'tool_axis': (0, 0.6, 0.8), 'tool_point': (0.05, 0, 0.02)}
    once = make_arm(axes, offsets, np.full((5, 2), (-np.pi, np.pi)), **tool)
    limits = np.full((5, 2), (-np.pi, np.pi))
    limits[[0, 4]] *= 2.0
    twice = make_arm(axes, offsets, limits, **tool)
    for q in once.sample(np.random.default_rng(3), 10):
        goal = Goal(*once.fk(q))
        assert len(new_solver(twice).solve_all(goal, time_budget=np.inf)) == 4 * len(
            new_solver(once).solve_all(goal, time_budget=np.inf)
        )


def variants(arm: Arm, found, start) -> np.ndarray:
    """Return the whole-turn variants of found (k, n), worked out joint by joint."""
    rows: list[tuple[float, ...]] = []
    for q in found:
        choices = []
        for i, value in enumerate(q):
            period, low, high = arm.period[i], arm.lower[i], arm.upper[i]
            if period == 0.0 or arm.idle[i]:
                choices.append([value])
            elif arm.continuous[i]:
                choices.append([value + period * round((start[i] - value) / period)])
            else:
                turned = [value + period * turns for turns in range(-9, 10)]
                choices.append([np.clip(v, low, high) for v in turned if low - 1e-6 <= v <= high + 1e-6])
        rows.extend(itertools.product(*choices))
    every = np.array(rows).reshape(-1, arm.n)
    return every[[arm.ball_excess(q) <= 0.0 for q in every]]


@pytest.mark.parametrize(
    'name', ['seed_arm', 'so101_like', 'prismatic_arm', 'ball_joint_arm', 'wide', 'made']
)
def test_the_list_is_that_of_plain_loops_bit_for_bit(name):
    """Whole turns by itertools, the order by lexsort, the errors one by one."""
    wide = make_arm([(0, 0, 1), (0, 1, 0), (0, 1, 0)], [(0, 0, 0.1)] * 3, np.full((3, 2), (-20.0, 20.0)))
    arm = {'wide': wide, 'made': parallel_arm(3)}.get(name) or arm_of(name)
    rng = np.random.default_rng(12)
    for count in (0, 1, 6):
        found, start, seed = arm.sample(rng, count), arm.sample(rng, 1)[0], arm.sample(rng, 1)[0] + 5.0
        goal = Goal(*arm.fk(start))
        every = variants(arm, found, start)
        moves = np.abs(every - seed).max(axis=1, initial=0.0).round(9)
        margins = np.minimum(every - arm.lower, arm.upper - every).min(axis=1, initial=math.inf)
        expected = every[np.lexsort((-margins, moves))]
        period = np.where(arm.idle, 0.0, arm.period)
        model = arm.joints, arm.tool, arm.limits, period, goal.packed, ANY_ERROR
        rows, errors = kernels.list_solutions(*model, start, seed, found, count)
        assert rows.tobytes() == expected.tobytes()
        solver = new_solver(arm)
        assert errors.tolist() == [list(solver.errors(goal, q)) for q in expected]


def test_slides_have_no_turns():
    arm = arm_of('prismatic_arm')
    solver = new_solver(arm)
    for q in arm.sample(np.random.default_rng(4), 3):
        rows = np.array(
            [solution.q for solution in solver.solve_all(Goal(*arm.fk(q)), q, time_budget=np.inf)]
        )
        assert (arm.period == 0.0).tolist() == arm.prismatic.tolist()
        assert len(rows)


def test_whole_turns_end_within_the_limits_to_the_last_bit():
    """A turn below a value at the far end of a range of a turn lies at the near end, but for rounding."""
    rng = np.random.default_rng(6)
    for low in rng.uniform(-6.0, -1.0, 20):
        limits = limits_of()
        limits[0] = (low, low + 2 * np.pi + 1e-9)
        arm = plain_arm(limits)
        q = np.array([low + 2 * np.pi, 0.4, 0.8, 0.3, 0.2])
        for solution in IkSolver(arm).solve_all(Goal(*arm.fk(q)), q, time_budget=np.inf):
            assert ((solution.q >= arm.lower) & (solution.q <= arm.upper)).all()


def test_a_turn_that_a_limit_clips_is_left_out_if_it_misses_the_goal():
    """A limit may be missed by 1e-6 rad, which is a millimetre on an arm of a kilometre."""
    for length, number in ((0.1, 2), (1000.0, 1)):
        limits = [[0.0, 1.0 + 2 * np.pi - 5e-7], [-1.0, 1.0]]
        arm = make_arm([(0, 0, 1), (0, 1, 0)], [(0, 0, 0), (length, 0, 0)], limits, None, (1, 0, 0))
        goal = Goal(*arm.fk([1.0, 0.5]))
        solutions = IkSolver(arm).solve_all(goal, time_budget=np.inf)
        assert len(solutions) == number
        assert max(solution.position_error for solution in solutions) < TOLERANCE
