# SPDX-License-Identifier: Apache-2.0
"""solve_all: every solution, true, distinct, within the limits, in order, with its whole turns."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from all_solutions_checks import assert_good
from cases import BY_NAME, TOLERANCE, arm_of, new_solver
from hypothesis import given, settings
from hypothesis import strategies as st
from made_arms import limits_of, make_arm, parallel_arm, plain_arm, random_unit
from oracles.arms import solver_for
from oracles.random_arms import random_task
from oracles.special_arms import made_arm
from scipy.optimize import least_squares

from ik_node import Arm, Goal, IkSolver, kernels
from ik_node.kernels.arrays import DISTINCT
from ik_node.solver.all_solutions import MISSED_SHARE, missed_share
from ik_node.solver.elimination import MAX_SOLUTIONS
from ik_node.solver.redundancy import is_redundant

WITH_FORM = ['seed_arm', 'so101_like', 'moveo_like', 'so101', 'hebi_a2085_05']
WITHOUT = ['prismatic_arm', 'ball_joint_arm', 'magician_rail', 'scara_yguel', 'moveo']
AXES = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)]
OFFSETS = [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.3), (0.2, 0, 0), (0.1, 0, 0)]


def listed(solver, goal, seed=None):
    """All solutions, however long they take."""
    return solver.solve_all(goal, seed, time_budget=np.inf)


def rows_of(solutions, n=5) -> np.ndarray:
    return np.array([solution.q for solution in solutions]).reshape(-1, n)


def gaps(arm: Arm, rows, q) -> np.ndarray:
    """Largest joint difference of each of rows (k, n) from q, whole turns left out."""
    period = np.where(arm.period > 0, arm.period, np.inf)
    differences = np.asarray(rows).reshape(-1, arm.n) - q
    return np.abs(differences - arm.period * np.round(differences / period)).max(axis=1, initial=0.0)


@pytest.mark.slow
@pytest.mark.parametrize('name', WITH_FORM + WITHOUT)
def test_solutions_are_true_distinct_in_order_and_contain_the_one_that_made_the_goal(name):
    arm = arm_of(name)
    solver, rng = new_solver(arm), np.random.default_rng(1)
    for q in arm.sample(rng, 20 if solver.closed_form and solver.closed_form.exact else 3):
        goal = Goal(*arm.fk(q))
        for seed in (q, arm.sample(rng, 1)[0]):
            solutions = listed(solver, goal, seed)
            assert_good(solver, goal, solutions, seed)
            rows = rows_of(solutions, arm.n)
            rows[:, arm.idle] = q[arm.idle]
            assert gaps(arm, rows, q).min() < 1e-4
        assert np.abs(listed(solver, goal, q)[0].q - q).max() < 1e-4  # none is nearer


@pytest.mark.slow
@pytest.mark.parametrize('name', ['seed_arm', 'moveo_like', 'so101', 'prismatic_arm'])
def test_solutions_equal_those_of_a_plain_least_squares_search(name):
    """Brute force: 100 bounded least-squares restarts of one goal."""
    arm = (BY_NAME.get(name) or pytest.skip('../shared is absent')).arm()
    rng = np.random.default_rng(5)
    goal = Goal(*arm.fk(arm.sample(rng, 1)[0]))
    weights = np.repeat([1.0, 0.1], 3)
    expected: list[np.ndarray] = []
    for start in arm.sample(rng, 100):
        found = least_squares(
            lambda q: weights * (np.concatenate(arm.fk(q)) - goal.packed[:6]),
            start,
            lambda q: weights[:, None] * arm.jacobian(q),
            bounds=(arm.lower, arm.upper),
            xtol=1e-14,
            ftol=1e-14,
            gtol=1e-14,
            max_nfev=60,
        )
        if np.linalg.norm(found.fun) < 1e-9 and gaps(arm, expected, found.x).min(initial=1) > 1e-3:
            expected.append(found.x)
    rows = rows_of(listed(new_solver(arm), goal))
    assert all(gaps(arm, rows, q).min() < 1e-5 for q in expected)
    assert all(gaps(arm, expected, q).min() < 1e-5 for q in rows), 'the brute force did not see one'


# --- self-motion ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize('name', ['so101_like', 'wx250', 'ur5e'])
def test_a_joint_that_moves_nothing_stays_at_the_seed(name):
    """4 effective DoF: every value of the roll joint is a solution, the seed's is the one returned."""
    arm = arm_of(name)
    solver, rng = new_solver(arm), np.random.default_rng(6)
    beyond = np.where(arm.idle, arm.upper + 0.5, arm.middle)
    for q, seed in zip(arm.sample(rng, 3), [*arm.sample(rng, 2), beyond], strict=True):
        solutions = listed(solver, Goal(*arm.fk(q)), seed)
        assert solutions
        assert solutions.complete or name == 'ur5e'
        for solution in solutions:
            assert solution.self_motion
            there = np.clip(seed, arm.lower, arm.upper)[arm.idle]
            np.testing.assert_allclose(solution.q[arm.idle], there, rtol=0, atol=1e-12)
        others = [solution.q[~arm.idle] for solution in solutions]
        for one, other in itertools.combinations(others, 2):
            assert np.abs(one - other).max() > DISTINCT  # one member of each family


@pytest.mark.slow
@pytest.mark.parametrize('tilt', [2.7e-8, 9e-7])
def test_a_tool_axis_that_is_axis_5_but_for_the_digits_of_its_file_gives_no_copies(tilt):
    """Half pi written as 1.5707963 tilts an axis by 2.7e-8 rad, as 1.570796 by 3.3e-7."""
    offsets = [(0, 0, 0.1), (0, 0, 0.05), (0.2, 0, 0), (0.2, 0, 0), (0.05, 0, 0)]
    limits = [(-3, 3), (-2, 2), (-2.5, 2.5), (-2, 2), (-3, 3)]
    arms = [make_arm(AXES, offsets, limits, tool_axis=(1, 0, slant), tool_point=(0.1, 0, 0)) for slant in (0.0, tilt)]
    rng = np.random.default_rng(11)
    for q, seed in zip(arms[0].sample(rng, 4), arms[0].sample(rng, 4), strict=True):
        exact, tilted = (listed(new_solver(arm), Goal(*arms[0].fk(q)), seed) for arm in arms)
        assert len(exact) == len(tilted) > 0
        for one, other in zip(exact, tilted, strict=True):
            assert other.q[4] == seed[4]
            np.testing.assert_allclose(one.q, other.q, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'ball_joint_arm', 'hebi_a2085_05'])
def test_a_seed_that_has_turned_very_far_hides_no_solution(name):
    arm = arm_of(name)
    solver = new_solver(arm)
    for q in arm.sample(np.random.default_rng(12), 2):
        goal = Goal(*arm.fk(q))
        counts = [len(listed(solver, goal, seed)) for seed in (arm.middle, np.full(arm.n, 1e15), np.full(arm.n, -1e15))]
        assert min(counts) == max(counts) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'rows'), [('panda', 6), ('ur5e', 6), ('vx300s', 6), ('seed_arm', 3), ('so101_like', 3)]
)
def test_members_of_a_self_motion_are_the_nearest_to_the_seed(name, rows):
    """No small motion that keeps the tool where it is leads nearer to the seed, limits kept."""
    arm = arm_of(name)
    solver = new_solver(arm)
    for q in arm.sample(np.random.default_rng(7), 3):
        position, direction = arm.fk(q)
        goal = Goal(position, direction if rows == 6 else None)
        solutions = listed(solver, goal, arm.middle)
        assert 1 <= len(solutions) < MAX_SOLUTIONS or name == 'ur5e'  # whole turns there
        assert_good(solver, goal, solutions, arm.middle)
        for solution in solutions:
            inside = (solution.q > arm.lower + 1e-5) & (solution.q < arm.upper - 1e-5)
            null = null_space(arm.jacobian(solution.q)[:rows, inside])
            assert np.abs(null.T @ (arm.middle - solution.q)[inside]).max(initial=0.0) < 1e-3


def null_space(matrix):
    _, values, rows = np.linalg.svd(matrix)
    return rows[int((values > 1e-4 * values[0]).sum()) :].T


@pytest.mark.slow
@pytest.mark.parametrize(('name', 'expected'), [('seed_arm', True), ('scara_yguel', False)])
def test_a_position_alone_leaves_families_on_five_joints_and_none_on_three(name, expected):
    arm = arm_of(name)
    goal = Goal(arm.fk(arm.sample(np.random.default_rng(8), 1)[0])[0])
    assert is_redundant(arm, goal) is expected
    solutions = listed(new_solver(arm), goal)
    assert solutions
    assert all(one.self_motion is expected and one.direction_error == 0.0 for one in solutions)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['so101_like', 'xarm5_like'])
def test_a_goal_that_leaves_a_joint_free_for_once_has_its_solution_nearest_to_the_seed(name):
    """Straight up on axis 1 any angle of joint 1 will do; the formula cannot say so."""
    arm = arm_of(name)
    seed, goal = arm.middle + 0.1, Goal((*arm.joints[0, 3:5], 0.4), (0, 0, 1))
    solutions = listed(new_solver(arm), goal, seed)
    assert_good(new_solver(arm), goal, solutions, seed)
    assert 1 <= len(solutions) <= 4
    assert abs(solutions[0].q[0] - seed[0]) < 1e-6
    assert not solutions.complete


@pytest.mark.slow
def test_joints_that_are_free_because_of_the_goal_hide_no_solution():
    """With the tool axis parallel to axes 2, 3, 4 their sum is free, and the seed's may exceed the limits."""
    arm = Arm(arm_of('seed_arm').robot, 'tool0', (1.0, 0.0, 0.0))
    solver, free = new_solver(arm), 0
    for q in arm.sample(np.random.default_rng(7), 4):
        for q[4] in (-np.pi / 2, 0.0, np.pi / 2):
            goal = Goal(*arm.fk(q))
            solutions = solver.solve_all(goal)
            assert solutions or not solutions.complete
            free += bool(abs(goal.direction @ arm.frames(q)[1]) > 1.0 - 1e-12)
    assert free


@pytest.mark.slow
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
        inside = (solution.q[1:4] > arm.lower[1:4] + 1e-3).all()
        slope = null_space(arm.jacobian(solution.q)).T @ (seed - solution.q)
        assert not inside or np.abs(slope).max() < 1e-3


# --- none, and when to stop ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'moveo_like', 'prismatic_arm', 'ur5e'])
def test_goals_out_of_reach_have_no_solution(name):
    arm = arm_of(name)
    away = arm.joints[0, 3:6] + np.array([0.0, 0.6, 0.8]) * (arm.reach + 0.01)
    goals = [Goal(away, (0, 0, 1)), Goal(away)]
    if name == 'so101_like':  # a direction that four DoF cannot have
        position, direction = arm.fk(arm.middle)
        goals.append(Goal(position, 0.8 * direction + 0.6 * arm.joints[1, :3]))
    for goal in goals:
        found = listed(new_solver(arm), goal)
        assert found == []
        assert found.complete


@pytest.mark.slow
@given(st.integers(0, 60), st.integers(0, 5000))
def test_missed_share_is_that_of_the_published_estimate(distinct, successes):
    """Boender and Rinnooy Kan's estimate of the number of solutions is w (N - 1) / (N - w - 2)."""
    share = missed_share(distinct, successes)
    if successes <= distinct + 2 or distinct == 0:
        assert share == math.inf
    else:
        every = distinct * (successes - 1) / (successes - distinct - 2)
        assert share == pytest.approx(1.0 - distinct / every, abs=1e-12)
    assert missed_share(8, 10**4) < MISSED_SHARE < missed_share(8, 10**3)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'moveo_like'])
def test_an_exact_formula_shows_that_there_are_no_other_solutions(name):
    arm = arm_of(name)
    goal = Goal(*arm.fk(arm.middle + 0.1))
    by_formula, by_search = new_solver(arm), new_solver(arm, closed_form=False, restarts=10)
    rng = np.random.default_rng(13)
    turned = (Goal(goal.position, random_unit(rng)) for _ in range(100))
    impossible = next(one for one in turned if not listed(by_formula, one))
    assert listed(by_search, impossible) == []
    for one in (goal, impossible):
        assert listed(by_formula, one).complete
        assert not listed(by_search, one).complete
    assert not by_formula.solve_all(Goal(goal.position)).complete
    assert pickle.loads(pickle.dumps(listed(by_formula, impossible))).complete


@pytest.mark.slow
def test_no_time_gives_what_was_found_until_then():
    arm = arm_of('panda')
    assert new_solver(arm, time_budget=1e-9).solve_all(Goal(*arm.fk(arm.middle))) == []


def test_same_input_gives_the_same_bits():
    for name in ('seed_arm', 'so101_like', 'prismatic_arm'):
        arm = arm_of(name)
        goal, first = Goal(*arm.fk(arm.sample(np.random.default_rng(10), 1)[0])), new_solver(arm)
        answers = [rows_of(listed(solver, goal)).tobytes() for solver in (first, new_solver(arm), first)]
        assert answers[0] == answers[1] == answers[2] != b''


# --- whole turns ---------------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_whole_turns_are_all_there(seed):
    """Made-up arms with ranges of 2 to 10 rad; continuous joints, of which each solution has one turn."""
    arm = parallel_arm(seed)
    solver = new_solver(arm)
    for q in arm.sample(np.random.default_rng(seed), 3):
        goal = Goal(*arm.fk(q))
        solutions = listed(solver, goal, arm.middle)
        assert_good(solver, goal, solutions, arm.middle)
        rows = rows_of(solutions)
        turning = arm.continuous
        assert (np.abs(rows - arm.middle)[:, turning] <= np.pi + 1e-9).all()
        for i in np.flatnonzero((arm.period > 0) & ~turning & ~arm.idle):
            for other in (rows + turn * np.eye(5)[i] for turn in (-2 * np.pi, 2 * np.pi)):
                for row in other[(arm.lower[i] <= other[:, i]) & (other[:, i] <= arm.upper[i])]:
                    assert np.abs(rows - row).max(axis=1).min() < 1e-9
        # Two solutions that are nearly one are found to the square root of the tolerance.
        assert np.abs(rows - q)[:, ~turning].max(axis=1, initial=0).min() < 3e-3


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


@pytest.mark.parametrize('name', ['so101_like', 'prismatic_arm', 'ball_joint_arm', 'wide', 'made'])
def test_the_list_is_that_of_plain_loops_bit_for_bit(name):
    """Whole turns by itertools, the order by lexsort, the errors one by one."""
    wide = make_arm(AXES[:3], [(0, 0, 0.1)] * 3, np.full((3, 2), (-20.0, 20.0)))
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
        nothing_misses = np.full(9, 1e3)
        model = arm.joints, arm.tool, arm.limits, period, goal.packed, nothing_misses
        rows, errors = kernels.list_solutions(*model, start, seed, found, count)
        assert rows.tobytes() == expected.tobytes()
        solver = new_solver(arm)
        assert errors.tolist() == [list(solver.errors(goal, q)) for q in expected]


def test_two_nearly_equal_solutions_have_their_whole_turns_each():
    """Roll limits of 3.1416: of two solutions 4.8e-5 rad apart, one is inside at -pi only, one at pi only."""
    limits = [*[(-3.0, 3.0)] * 4, (-3.1416, 3.1416)]
    arm = make_arm(AXES, OFFSETS, limits, tool_axis=(0, 0.6, 0.8), tool_point=(0.05, 0, 0.02))
    q = np.array([1.8950952981515312, -2.983585818299677, -1.6746544802555188, -2.7985141131206817, -3.141554])
    goal = Goal(*arm.fk(q))
    solutions = listed(new_solver(arm), goal, q)
    assert_good(new_solver(arm), goal, solutions, q)
    np.testing.assert_allclose(np.sort(rows_of(solutions)[:, 4]), [-3.141554, 0.0, 3.14158395], atol=1e-5)


@pytest.mark.slow
def test_whole_turns_end_within_the_limits_to_the_last_bit():
    """A turn below a value at the far end of a range of a turn lies at the near end, but for rounding."""
    for low in np.random.default_rng(6).uniform(-6.0, -1.0, 20):
        limits = limits_of()
        limits[0] = (low, low + 2 * np.pi + 1e-9)
        arm = plain_arm(limits)
        q = np.array([low + 2 * np.pi, 0.4, 0.8, 0.3, 0.2])
        rows = rows_of(listed(IkSolver(arm), Goal(*arm.fk(q)), q))
        assert ((rows >= arm.lower) & (rows <= arm.upper)).all()


@pytest.mark.parametrize(('length', 'number'), [(0.1, 2), (1000.0, 1)])
def test_a_turn_that_a_limit_clips_is_left_out_if_it_misses_the_goal(length, number):
    """A limit may be missed by 1e-6 rad, which is a millimetre on an arm of a kilometre."""
    limits = [[0.0, 1.0 + 2 * np.pi - 5e-7], [-1.0, 1.0]]
    arm = make_arm(AXES[:2], [(0, 0, 0), (length, 0, 0)], limits, None, (1, 0, 0))
    solutions = listed(IkSolver(arm), Goal(*arm.fk([1.0, 0.5])))
    assert len(solutions) == number
    assert max(solution.position_error for solution in solutions) < TOLERANCE


# --- incomplete lists ----------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def locking() -> Arm:
    """Axes 2, 3 parallel, 4, 5 and the tool axis in one point: at q5 = 0 axis 4 is the tool axis."""
    axes = [(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0)]
    offsets = [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.3), (0.1, 0, 0), (0.2, 0, 0)]
    return make_arm(axes, offsets, [(-3, 3)] * 5, tool_axis=(1, 0, 0), tool_point=(0.1, 0, 0))


def test_a_list_is_not_complete_where_a_joint_is_free_at_a_solution(locking):
    solver, q = IkSolver(locking), np.array([0.4, 0.3, -1.2, 1.0, 0.0])
    found = solver.solve_all(Goal(*locking.fk(q)))
    assert not found.complete
    free = [solution.q for solution in found if solution.self_motion]
    assert free
    assert max(np.abs(locking.jacobian(row)[:, 3]).max() for row in free) < 1e-6
    q[4] = 0.7
    found = solver.solve_all(Goal(*locking.fk(q)))
    assert found.complete
    assert not any(solution.self_motion for solution in found)


class Clock:
    """A clock of which every look takes 10 ms."""

    looks = 0

    def read(self) -> float:
        self.looks += 1
        return 0.01 * self.looks


def test_no_part_of_the_search_is_long_between_two_looks_at_the_clock(locking, monkeypatch):
    """Solutions led along their self-motions take milliseconds each: one at a time."""
    descents, explore = [], kernels.explore
    monkeypatch.setattr('ik_node.solver.all_solutions.steady', Clock().read)
    monkeypatch.setattr(kernels, 'explore', lambda *given: descents.append(given[6]) or explore(*given))
    found = IkSolver(locking).solve_all(Goal(*locking.fk([0.4, 0.3, -1.2, 1.0, 0.0])))
    assert not found.complete
    assert set(descents) == {1}
    assert len(descents) <= 11


def test_whole_turns_without_number_are_listed_around_the_seed_only():
    offsets = [*OFFSETS[:3], (0, 0, 0.3), (0.1, 0, 0)]
    arm = make_arm(AXES, offsets, [(-900, 900)] * 5, tool_axis=(0.6, 0.8, 0), tool_point=(0.1, 0.02, 0))
    q = np.array([0.4, 0.3, -1.2, 1.0, 0.5])
    found = IkSolver(arm).solve_all(Goal(*arm.fk(q)), q)
    assert not found.complete
    assert 100 < len(found) <= 20_000
    assert np.abs(found[0].q - q).max() < 1e-6


# An arm, a position and a direction where two solutions have just become one or nearly coincide, so that
# elimination or the formula loses them: the smallest singular value is down to 4e-11.
DOUBLE = [
    (
        made_arm('slides15').arm,
        (0.21912188029873972, -0.14627130464298965, 0.4720534385706074),
        (-0.0002912452910809487, -0.16868082526796432, -0.9856706825117093),
    ),
    (
        made_arm('slides15').arm,
        (0.21912176451172521, -0.14627292057803704, 0.47205356727283354),
        (-0.00029087033314461355, -0.16868081390068335, -0.9856706845677476),
    ),
    (
        random_task(62).arm,
        (-0.264955594120898, 0.022503086109074637, 0.27551340358868076),
        (-0.8321548305393769, 0.5544770395237363, -0.008576167615760445),
    ),
    (
        random_task(92).arm,
        (0.14840026301467296, 0.3309731170738832, 0.16606717706965993),
        (-0.5203449290119714, -0.3799543857904989, -0.764771743443814),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(('arm', 'position', 'direction'), DOUBLE, ids=['slides', 'slides', '62', '92'])
def test_a_list_is_neither_empty_nor_complete_where_solutions_coincide(arm, position, direction):
    goal, solver = Goal(position, direction), solver_for(arm)
    assert solver.solve(goal).solved
    found = solver.solve_all(goal)
    assert found[0].solved
    assert not found.complete


@pytest.mark.slow
def test_a_list_is_not_complete_where_the_last_form_of_elimination_has_lost_what_another_found():
    """Axes 4, 5 and the tool axis meet but for 1e-6, and solutions nearly coincide: q is not listed."""
    solver = IkSolver(made_arm('meet45t_1e-06_1').arm, direction_tolerance=1e-6)
    position = (0.5610472966656406, 0.13273171248951968, 0.14199572598503166)
    goal = Goal(position, (-0.4174047563714182, -0.36525389239195616, 0.8320834474083969))
    q = [
        0.48991212706541626,
        -0.9410126484056894,
        -0.7774557101643488,
        -0.25962630829292443,
        -1.564457392213368,
    ]
    assert solver.evaluate(goal, np.array(q)).solved
    assert not solver.solve_all(goal).complete


@pytest.mark.slow
@pytest.mark.parametrize('name', ['xarm5', 'so101', 'moveo', 'seed_arm'])
def test_a_list_is_empty_and_complete_only_where_solve_finds_nothing(name):
    arm = (BY_NAME.get(name) or pytest.skip('../shared is absent')).arm()
    solver, rng, lists = IkSolver(arm), np.random.default_rng(3), list[bool]()
    stops = np.flatnonzero(~arm.idle & np.isfinite(arm.upper))
    for k in range(24):
        q, j = arm.sample(rng, 1)[0], rng.choice(stops)
        q[j] = arm.limits[k % 2, j] + (2 * (k % 2) - 1) * (0.0, 1e-5)[k // 2 % 2]  # at a limit, or beyond
        position, direction = arm.fk(q)
        direction = direction + 3e-5 * random_unit(rng) * (k % 3 > 0)
        goal = Goal(position, direction / np.linalg.norm(direction))
        for seed in (arm.sample(rng, 1)[0], q):
            one, every = solver.solve(goal, seed), listed(solver, goal, seed)
            assert all(solver.evaluate(goal, each.q).solved for each in every)
            if one.solved:
                assert every
            lists.append(one.solved and not every.complete)
    assert any(lists)


@pytest.mark.parametrize('name', ['xarm5', 'px150'])
def test_a_direction_rounded_to_four_digits_has_all_solutions_of_the_exact_one(name):
    """Four effective DoF cannot meet such a direction: the position is met exactly, the direction is not."""
    arm = (BY_NAME.get(name) or pytest.skip('../shared is absent')).arm()
    solver, rng, counts = IkSolver(arm), np.random.default_rng(1), list[int]()
    for q in arm.sample(rng, 40):
        position, direction = arm.fk(q)
        exact, rounded = (solver.solve_all(Goal(position, d)) for d in (direction, np.round(direction, 4)))
        if not exact.complete or np.hypot(*position[:2]) < 0.1:
            continue  # near the axis of joint 1 the plane of the arm turns far
        assert rounded.complete
        assert len(rounded) == len(exact)
        counts.append(len(exact))
    assert len(counts) > 20
