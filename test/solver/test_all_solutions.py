# SPDX-License-Identifier: Apache-2.0
"""solve_all: every solution, true, distinct, within the limits, in order."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from all_solutions_checks import assert_good
from cases import BY_NAME, arm_of, new_solver
from hypothesis import given
from hypothesis import strategies as st
from made_arms import make_arm, random_unit
from scipy.optimize import least_squares

from ik_node import Arm, Goal, IkSolver, InputError
from ik_node.kernels.arrays.distance import DISTINCT
from ik_node.solver.all_solutions import MISSED_SHARE, missed_share
from ik_node.solver.elimination.elimination import MOST_SOLUTIONS
from ik_node.solver.redundancy.self_motions import is_redundant

WITH_FORM = ['seed_arm', 'so101_like', 'xarm5_like', 'moveo_like', 'so101', 'wx250', 'hebi_a2085_05']
WITHOUT = ['prismatic_arm', 'ball_joint_arm', 'magician_rail', 'scara_yguel', 'px100', 'moveo']


def gaps(arm: Arm, rows, q) -> np.ndarray:
    """Largest joint difference of each of rows (k, n) from q, whole turns left out."""
    period = np.where(arm.period > 0, arm.period, np.inf)
    differences = np.asarray(rows).reshape(-1, arm.n) - q
    return np.abs(differences - arm.period * np.round(differences / period)).max(axis=1, initial=0.0)


@pytest.mark.parametrize('name', WITH_FORM + WITHOUT)
def test_solutions_are_true_distinct_in_order_and_contain_the_one_that_made_the_goal(name):
    arm = arm_of(name)
    solver = new_solver(arm)
    rng = np.random.default_rng(1)
    for q in arm.sample(rng, 40 if solver.closed_form and solver.closed_form.exact else 4):
        goal = Goal(*arm.fk(q))
        for seed in (q, arm.sample(rng, 1)[0]):
            solutions = solver.solve_all(goal, seed, time_budget=np.inf)
            assert_good(solver, goal, solutions, seed)
            used = ~arm.idle
            rows = np.array([solution.q for solution in solutions])
            rows[:, arm.idle] = q[arm.idle]
            assert gaps(arm, rows, q).min() < 1e-4, f'{q} is not among {rows[:, used]}'
        assert np.abs(solver.solve_all(goal, q, time_budget=np.inf)[0].q - q).max() < 1e-4  # none is nearer


@pytest.mark.parametrize('name', WITH_FORM)
def test_formula_equals_the_search(name):
    """The same arm with and without its formula: the same solutions of every goal."""
    arm = arm_of(name)
    solver, search = new_solver(arm), new_solver(arm, closed_form=False)
    for q in arm.sample(np.random.default_rng(2), 6):
        goal = Goal(*arm.fk(q))
        by_formula = np.array([solution.q for solution in solver.solve_all(goal, q, time_budget=np.inf)])
        by_search = np.array([solution.q for solution in search.solve_all(goal, q, time_budget=np.inf)])
        assert len(by_formula) == len(by_search)
        for row in by_search:
            assert np.abs(by_formula - row).max(axis=1).min() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize('name', ['seed_arm', 'moveo_like', 'so101', 'prismatic_arm'])
def test_solutions_equal_those_of_a_plain_least_squares_search(name):
    """Brute force by another solver on another FK: 250 bounded least-squares restarts of one goal."""
    case = BY_NAME.get(name) or pytest.skip('../shared is absent')
    arm, plain = case.arm(), case.plain()
    rng = np.random.default_rng(5)
    goal = Goal(*arm.fk(arm.sample(rng, 1)[0]))

    def residual(q):
        position, axis = plain.fk(dict(zip(arm.joint_names, q, strict=True)))
        return np.concatenate([position - goal.position, 0.1 * (axis - goal.direction)])

    expected: list[np.ndarray] = []
    for start in arm.sample(rng, 150):
        found = least_squares(
            residual, start, bounds=arm.limits, xtol=1e-14, ftol=1e-14, gtol=1e-14, max_nfev=60
        )
        if np.linalg.norm(found.fun) < 1e-9 and gaps(arm, expected, found.x).min(initial=1) > 1e-3:
            expected.append(found.x)
    rows = [solution.q for solution in new_solver(arm).solve_all(goal, time_budget=np.inf)]
    for q in expected:
        assert gaps(arm, rows, q).min() < 1e-5
    for q in rows:
        assert gaps(arm, expected, q).min() < 1e-5, f'the brute force did not see {q}'


# --- self-motion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['so101_like', 'xarm5_like', 'wx250', 'igus_robolink_rl_dp_5', 'ur5e'])
def test_a_joint_that_moves_nothing_stays_at_the_seed(name):
    """4 effective DoF: every value of the roll joint is a solution, the seed's is the one returned."""
    arm = arm_of(name)
    solver = new_solver(arm)
    rng = np.random.default_rng(6)
    for q in arm.sample(rng, 3):
        seed = arm.sample(rng, 1)[0]
        solutions = solver.solve_all(Goal(*arm.fk(q)), seed, time_budget=np.inf)
        assert solutions
        for solution in solutions:
            assert solution.self_motion
            np.testing.assert_allclose(solution.q[arm.idle], seed[arm.idle], rtol=0, atol=1e-12)
        others = [solution.q[~arm.idle] for solution in solutions]
        for one, other in itertools.combinations(others, 2):
            assert np.abs(one - other).max() > DISTINCT  # one member of each family


@pytest.mark.parametrize('tilt', [2.7e-8, 3.3e-7, 9e-7])
def test_a_tool_axis_that_is_axis_5_but_for_the_digits_of_its_file_gives_no_copies(tilt):
    """Half pi written as 1.5707963 tilts an axis by 2.7e-8 rad, as 1.570796 by 3.3e-7."""
    arms = [roll_arm(slant) for slant in (0.0, tilt)]
    rng = np.random.default_rng(11)
    for q, seed in zip(arms[0].sample(rng, 4), arms[0].sample(rng, 4), strict=True):
        exact, tilted = (
            new_solver(arm).solve_all(Goal(*arms[0].fk(q)), seed, time_budget=np.inf) for arm in arms
        )
        assert len(exact) == len(tilted) > 0
        for one, other in zip(exact, tilted, strict=True):
            assert other.q[4] == seed[4]
            np.testing.assert_allclose(one.q, other.q, rtol=0, atol=1e-5)


def roll_arm(tilt: float) -> Arm:
    """Yaw, three pitches and a roll, the tool axis tilted from the roll axis by tilt [rad]."""
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
    offsets = [(0, 0, 0.1), (0, 0, 0.05), (0.2, 0, 0), (0.2, 0, 0), (0.05, 0, 0)]
    limits = [(-3, 3), (-2, 2), (-2.5, 2.5), (-2, 2), (-3, 3)]
    return make_arm(axes, offsets, limits, tool_axis=(1, 0, tilt), tool_point=(0.1, 0, 0))


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'ball_joint_arm', 'hebi_a2085_05'])
def test_a_seed_that_has_turned_very_far_hides_no_solution(name):
    arm = arm_of(name)
    solver = new_solver(arm)
    for q in arm.sample(np.random.default_rng(12), 3):
        expected = solver.solve_all(Goal(*arm.fk(q)), arm.middle, time_budget=np.inf)
        for far in (1e15, -1e15):
            assert (
                len(solver.solve_all(Goal(*arm.fk(q)), np.full(arm.n, far), time_budget=np.inf))
                == len(expected)
                > 0
            )


def test_a_seed_outside_the_limits_leaves_idle_joints_at_the_limit():
    arm = arm_of('so101_like')
    seed = arm.upper + 0.5
    solutions = new_solver(arm).solve_all(Goal(*arm.fk(arm.middle)), seed, time_budget=np.inf)
    assert solutions
    assert all(solution.q[arm.idle] == arm.upper[arm.idle] for solution in solutions)


@pytest.mark.parametrize(
    ('name', 'rows'), [('panda', 6), ('ur5e', 6), ('vx300s', 6), ('seed_arm', 3), ('so101_like', 3)]
)
def test_members_of_a_self_motion_are_the_nearest_to_the_seed(name, rows):
    """No small motion that keeps the tool where it is leads nearer to the seed, limits kept."""
    arm = arm_of(name)
    solver = new_solver(arm)
    for q in arm.sample(np.random.default_rng(7), 5):
        position, direction = arm.fk(q)
        goal = Goal(position, direction if rows == 6 else None)
        solutions = solver.solve_all(goal, arm.middle, time_budget=np.inf)
        assert 1 <= len(solutions) < MOST_SOLUTIONS or name == 'ur5e'  # whole turns there
        assert_good(solver, goal, solutions, arm.middle)
        for solution in solutions:
            inside = (solution.q > arm.lower + 1e-5) & (solution.q < arm.upper - 1e-5)
            null = _null_space(arm.jacobian(solution.q)[:rows, inside])
            slope = null.T @ (arm.middle - solution.q)[inside]
            assert np.abs(slope).max(initial=0.0) < 1e-3


def _null_space(matrix):
    _, values, rows = np.linalg.svd(matrix)
    return rows[int((values > 1e-4 * values[0]).sum()) :].T


def test_a_position_alone_leaves_families_on_five_joints_and_none_on_three():
    seed_arm, scara = arm_of('seed_arm'), arm_of('scara_yguel')
    for arm, expected in ((seed_arm, True), (scara, False)):
        goal = Goal(arm.fk(arm.sample(np.random.default_rng(8), 1)[0])[0])
        assert is_redundant(arm, goal) is expected
        solutions = new_solver(arm).solve_all(goal, time_budget=np.inf)
        assert solutions
        assert all(solution.self_motion is expected for solution in solutions)
        assert all(solution.direction_error == 0.0 for solution in solutions)


@pytest.mark.parametrize('name', ['so101_like', 'xarm5_like'])
def test_a_goal_that_leaves_a_joint_free_for_once_has_its_solution_nearest_to_the_seed(name):
    """Straight up on axis 1 any angle of joint 1 will do; the formula cannot say so."""
    arm = arm_of(name)
    seed = arm.middle + 0.1
    goal = Goal((*arm.joints[0, 3:5], 0.4), (0, 0, 1))
    solutions = new_solver(arm).solve_all(goal, seed, time_budget=np.inf)
    assert_good(new_solver(arm), goal, solutions, seed)
    assert 1 <= len(solutions) <= 4
    assert abs(solutions[0].q[0] - seed[0]) < 1e-6
    assert not solutions.complete


def test_joints_that_are_free_because_of_the_goal_hide_no_solution():
    """With the tool axis parallel to axes 2, 3, 4 their sum is free, and the seed's may exceed the limits."""
    arm = arm_of('seed_arm').robot
    arm = Arm(arm, 'tool0', (1.0, 0.0, 0.0))
    solver, free = new_solver(arm), 0
    for q in arm.sample(np.random.default_rng(7), 25):
        for q[4] in (-np.pi / 2, 0.0, np.pi / 2):
            position, direction = arm.fk(q)
            axis = arm.frames(q)[1]
            goal = Goal(position, direction)
            solutions = solver.solve_all(goal, time_budget=np.inf)
            assert solutions or not solutions.complete
            free += bool(abs(direction @ axis) > 1.0 - 1e-12)
    assert free


@pytest.mark.parametrize('tilt', [0.0, 3e-6])
def test_a_self_motion_is_one_entry_even_where_it_meets_the_goal_only_nearly(tilt):
    """With the tool axis along axes 2, 3, 4, or nearly, these three joints have one to spare."""
    arm = Arm(arm_of('so101_like').robot, arm_of('so101_like').tip_link, (1.0, 0.0, 0.0))
    solver, q = IkSolver(arm, compile='wait'), np.array([0.2, -0.3, 0.5, 0.4, 1.619476])
    position, axis = arm.fk(q)[0], -arm.frames(q)[1] + [0.0, 0.0, tilt]
    goal = Goal(position, axis / np.linalg.norm(axis))
    for seed in (arm.middle, arm.lower):
        (solution,) = solver.solve_all(goal, seed)
        assert solution.self_motion
        assert solver.evaluate(goal, solution.q).solved
        null = _null_space(arm.jacobian(solution.q))
        inside = (solution.q[1:4] > arm.lower[1:4] + 1e-3).all()
        assert not inside or np.abs(null.T @ (seed - solution.q)).max() < 1e-3


# --- none, and when to stop ----------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'moveo_like', 'prismatic_arm', 'ur5e'])
def test_goals_out_of_reach_have_no_solution(name):
    arm = arm_of(name)
    away = arm.joints[0, 3:6] + np.array([0.0, 0.6, 0.8]) * (arm.reach + 0.01)
    solver = new_solver(arm)
    for goal in (Goal(away, (0, 0, 1)), Goal(away)):
        assert solver.solve_all(goal, time_budget=np.inf) == []
        assert solver.solve_all(goal, time_budget=np.inf).complete  # by link lengths


def test_a_direction_that_four_dof_cannot_have_has_no_solution():
    arm = arm_of('so101_like')
    position, direction = arm.fk(arm.middle)
    sideways = 0.8 * direction + 0.6 * arm.joints[1, :3]
    assert (
        new_solver(arm).solve_all(Goal(position, sideways / np.linalg.norm(sideways)), time_budget=np.inf)
        == []
    )


def test_solutions_that_the_limits_cut_off_are_left_out():
    """Half the range of joint 1: the solutions of the whole range that lie in that half."""
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
    offsets = [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.3), (0.2, 0, 0), (0.1, 0, 0)]
    tool = {'tool_axis': (0, 0.6, 0.8), 'tool_point': (0.05, 0, 0.02)}
    limits = np.full((5, 2), (-3.0, 3.0))
    whole = make_arm(axes, offsets, limits, **tool)
    limits[0] = (0.0, 3.0)
    half = make_arm(axes, offsets, limits, **tool)
    for q in whole.sample(np.random.default_rng(9), 20):
        goal = Goal(*whole.fk(q))
        expected = [s.q for s in new_solver(whole).solve_all(goal, q, time_budget=np.inf) if s.q[0] >= 0.0]
        found = [s.q for s in new_solver(half).solve_all(goal, q, time_budget=np.inf)]
        np.testing.assert_allclose(np.reshape(found, (-1, 5)), np.reshape(expected, (-1, 5)), atol=1e-6)


def test_two_nearly_equal_solutions_have_their_whole_turns_each():
    """Roll limits of 3.1416: of two solutions 4.8e-5 rad apart, one is inside at -pi only, one at pi only."""
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
    offsets = [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.3), (0.2, 0, 0), (0.1, 0, 0)]
    limits = [*[(-3.0, 3.0)] * 4, (-3.1416, 3.1416)]
    arm = make_arm(axes, offsets, limits, tool_axis=(0, 0.6, 0.8), tool_point=(0.05, 0, 0.02))
    q = np.array(
        [1.8950952981515312, -2.983585818299677, -1.6746544802555188, -2.7985141131206817, -3.141554]
    )
    goal = Goal(*arm.fk(q))
    solutions = new_solver(arm).solve_all(goal, q, time_budget=np.inf)
    assert_good(new_solver(arm), goal, solutions, q)
    rolls = sorted(solution.q[4] for solution in solutions)
    np.testing.assert_allclose(rolls, [-3.141554, 0.0, 3.14158395], atol=1e-5)


@given(st.integers(1, 60), st.integers(0, 5000))
def test_missed_share_is_that_of_the_published_estimate(distinct, successes):
    """Boender and Rinnooy Kan's estimate of the number of solutions is w (N - 1) / (N - w - 2)."""
    share = missed_share(distinct, successes)
    if successes <= distinct + 2:
        assert share == math.inf
    else:
        every = distinct * (successes - 1) / (successes - distinct - 2)
        assert share == pytest.approx(1.0 - distinct / every, abs=1e-12)


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'moveo_like'])
def test_an_exact_formula_shows_that_there_are_no_other_solutions(name):
    arm = arm_of(name)
    goal = Goal(*arm.fk(arm.middle + 0.1))
    by_formula, by_search = new_solver(arm), new_solver(arm, closed_form=False, restarts=10)
    rng = np.random.default_rng(13)
    turned = (Goal(goal.position, random_unit(rng)) for _ in range(100))
    impossible = next(one for one in turned if not by_formula.solve_all(one, time_budget=np.inf))
    assert by_search.solve_all(impossible, time_budget=np.inf) == []
    for one in (goal, impossible):
        assert by_formula.solve_all(one, time_budget=np.inf).complete
        assert not by_search.solve_all(one, time_budget=np.inf).complete
    assert not by_formula.solve_all(Goal(goal.position), time_budget=np.inf).complete
    assert pickle.loads(pickle.dumps(by_formula.solve_all(impossible, time_budget=np.inf))).complete


def test_missed_share_of_nothing_is_unknown():
    assert missed_share(0, 0) == math.inf
    assert missed_share(0, 10**6) == math.inf
    assert missed_share(8, 8) == math.inf
    assert missed_share(8, 10**4) < MISSED_SHARE < missed_share(8, 10**3)


def test_no_time_gives_what_was_found_until_then():
    arm = arm_of('panda')
    goal = Goal(*arm.fk(arm.middle))
    assert new_solver(arm, time_budget=1e-9).solve_all(goal) == []


def test_same_input_gives_the_same_bits():
    for name in ('seed_arm', 'so101_like', 'prismatic_arm'):
        arm = arm_of(name)
        goal = Goal(*arm.fk(arm.sample(np.random.default_rng(10), 1)[0]))
        first, other = new_solver(arm), new_solver(arm)
        answers = [
            [s.q.tobytes() for s in solver.solve_all(goal, time_budget=np.inf)]
            for solver in (first, other, first)
        ]
        assert answers[0] == answers[1] == answers[2] != []


@pytest.mark.parametrize('seed', [[0.0] * 4, [np.nan] * 5, 'abc'])
def test_bad_seeds_are_rejected(seed):
    arm = arm_of('seed_arm')
    with pytest.raises(InputError, match='seed must be 5 finite numbers'):
        new_solver(arm).solve_all(Goal(*arm.fk(arm.middle)), seed, time_budget=np.inf)
