# SPDX-License-Identifier: Apache-2.0
"""The families with a formula: recognised from the geometry, and right for every arm of the family."""

from __future__ import annotations

import numpy as np
import pytest
from cases import TOLERANCE, arm_of, new_solver, shared_cases, shipped_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from made_arms import make_arm, parallel_arm, random_unit, wrist_arm
from scipy.optimize import least_squares

from ik_node import Arm, Goal, IkSolver, kernels
from ik_node.solver.closed_form import Family, recognise
from ik_node.solver.spare_roll import spare_roll

pytestmark = pytest.mark.slow

PARALLEL, ROLL, WRIST = Family.PARALLEL, Family.PARALLEL_ROLL, Family.WRIST
# What each arm is, read off its drawing or its file by eye. No formula serves the others.
SERVED = {
    **dict.fromkeys(['seed_arm', 'so101', 'so100', 'koch_v1_1', 'omx_f', 'derived_ur5e_wrist3_fixed'], PARALLEL),
    **dict.fromkeys(['moveo_like', 'moveo'], WRIST),
    **dict.fromkeys(
        [
            *('so101_like', 'xarm5_like', 'so100_2', 'wx250', 'px150', 'xarm5', 'omx_l', 'hebi_a2085_05'),
            *('lrmate200ic5h', 'phantomx_reactor_wrist', 'igus_robolink_rl_dp_5', 'braccio_ros2'),
            *('dual_xarm5', 'dual_xarm5_2'),
        ],
        ROLL,
    ),
}
NEARLY = {'moveo', 'phantomx_reactor_wrist'}  # files whose axes miss each other or the tool by rounding
SEEDS = st.integers(0, 10**6)


def test_families_of_real_arms():
    for case in [*shipped_cases(), *shared_cases()]:
        form = recognise(case.arm())
        assert (form and form.family) is SERVED.get(case.label), case.label
        assert form is None or form.exact == (case.label not in NEARLY)


def gap(arm: Arm, a, b) -> float:
    """Largest difference of a joint between two configurations, whole turns left out."""
    period = np.where(arm.period > 0, arm.period, np.inf)
    difference = np.asarray(a) - b
    return float(np.abs(difference - arm.period * np.round(difference / period)).max())


def by_formula(solver: IkSolver, goal: Goal, seed) -> np.ndarray:
    """Every solution that the formula alone finds, (k, n)."""
    found = np.empty((kernels.MOST_CANDIDATES, solver.arm.n))
    model = solver.arm.joints, solver.arm.tool, solver.arm.limits, solver.arm.period
    constants, options = solver.closed_form.constants, solver._search.options
    count, _ = kernels.formula_solutions(*model, constants, goal.packed, options, np.array(seed), found)
    return found[:count]


@given(SEEDS)
@settings(max_examples=20)
@pytest.mark.parametrize(
    ('make', 'family'),
    [(parallel_arm, PARALLEL), (lambda seed: parallel_arm(seed, roll=True), ROLL), (wrist_arm, WRIST)],
)
def test_any_arm_of_a_family_is_served(make, family, seed):
    """Any offsets, tool point and axis, senses of axes and limits: the formula alone finds every solution."""
    solver, rng = new_solver(make(seed)), np.random.default_rng(seed)
    arm = solver.arm
    assert solver.closed_form.family is family
    assert solver.closed_form.exact
    for q in arm.sample(rng, 10):
        goal, start = Goal(*arm.fk(q)), arm.sample(rng, 1)[0]
        found = by_formula(solver, goal, q if family is ROLL else start)  # the roll stays at the seed
        assert min(gap(arm, q, other) for other in found) < 1e-3
        for other in found:
            assert max(solver.errors(goal, other)) <= TOLERANCE
            assert ((other >= arm.lower) & (other <= arm.upper)).all()
        if family is not ROLL:  # the solution given is the nearest; those nearly equal count as one
            nearest = np.abs(found - start).max(axis=1).min()
            move = np.abs(solver.solve(goal, start).q - start).max()
            assert move == pytest.approx(nearest, abs=kernels.DISTINCT)


@pytest.mark.parametrize('make', [lambda seed: parallel_arm(seed, tilt=1e-5), lambda seed: wrist_arm(seed, 1e-5, 1e-5)])
def test_axes_parallel_only_to_1e_5_are_served(make):
    """The formula finds what is not next to a singularity, the search that follows it finds the rest."""
    missed = 0
    for seed in range(20):
        arm = make(seed)
        solver = new_solver(arm)
        assert solver.closed_form.family in (PARALLEL, WRIST)
        assert not solver.closed_form.exact
        for q in arm.sample(np.random.default_rng(seed), 10):
            goal = Goal(*arm.fk(q))
            found = by_formula(solver, goal, arm.middle)
            missed += not any(gap(arm, q, other) < 1e-3 for other in found)
            assert all(max(solver.errors(goal, other)) <= TOLERANCE for other in found)
            assert solver.solve(goal).solved
    assert missed <= 4


X, Y, Z = np.eye(3)
OFFSETS = [(0, 0, 0.1), (0.02, 0.01, 0.05), (0, 0.01, 0.25), (0.2, 0, 0.01), (0.06, 0, 0)]


def chain(kinds=None, axes=(Z, Y, Y, Y, X), offsets=OFFSETS, limit=3.0, **more) -> Arm:
    """An arm of the parallel family unless changed."""
    more = {'tool_axis': (0, 0.6, 0.8), 'tool_point': (0.05, 0.01, 0.02), **more}
    return make_arm(axes, offsets, np.full((5, 2), (-limit, limit)), kinds, **more)


@pytest.mark.parametrize('third', [1, -1])
@pytest.mark.parametrize('fourth', [1, -1])
def test_anti_parallel_axes(third, fourth):
    """The four arms that differ in nothing but the senses of axes 3 and 4 mirror each other's angles."""
    plain, solver = chain(), new_solver(chain(axes=(Z, Y, third * Y, fourth * Y, X)))
    senses = np.array([1, 1, third, fourth, 1])
    for q in plain.sample(np.random.default_rng(1), 50):
        found = by_formula(solver, Goal(*plain.fk(q)), solver.arm.middle)
        assert min(gap(solver.arm, q * senses, other) for other in found) < 1e-6


def test_geometry_that_no_formula_serves():
    assert recognise(chain()).family is PARALLEL
    for slide in range(5):
        kinds = ['prismatic' if k == slide else 'revolute' for k in range(5)]
        assert recognise(chain(kinds)) is None
    for axes in ((Y, Y, Y, Y, X), (Z, Y, Y, Y, Y)):  # four parallel axes
        assert recognise(chain(axes=axes)) is None
    in_line = [*OFFSETS[:2], (0, 0.3, 0), *OFFSETS[3:]]  # axes 2 and 3 are one line
    assert recognise(chain(offsets=in_line)) is None
    assert recognise(chain(mimics=[(4, 1, 1.0)])) is None
    assert recognise(parallel_arm(3, tilt=1e-2)) is None
    assert recognise(wrist_arm(3, miss=0.1)) is None


# --- singular goals ------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['seed_arm', 'so101_like', 'moveo_like', 'moveo', 'wx250', 'hebi_a2085_05'])
def test_singular_goals_are_answered(name):
    """Elbow straight or folded, tool point on axis 1, from near and far seeds."""
    arm = arm_of(name)
    solver = new_solver(arm)
    singular = stretched(arm) + on_first_axis(arm)
    assert len(singular) >= 4
    for q in singular:
        for seed in (q, arm.middle, np.clip(q + 0.3, arm.lower, arm.upper)):
            solution = solver.solve(Goal(*arm.fk(q)), seed)
            assert solution.solved, f'{q}: {solution}'


def within(arm, rows):
    return [q for q in map(np.array, rows) if ((q >= arm.lower) & (q <= arm.upper)).all()][:4]


def stretched(arm):
    """Elbow straight or folded: both elbows of the planar triangle are the same."""
    constants = recognise(arm).constants
    links, u, sense = constants[5:7], constants[2], constants[13, 1]
    straight = np.arctan2(u @ np.cross(links[1], links[0]), links[0] @ links[1])
    rows = []
    for q in arm.sample(np.random.default_rng(5), 20):
        for elbow in (straight, straight + np.pi):
            rows.append([*q[:2], sense * ((elbow + np.pi) % (2 * np.pi) - np.pi), *q[3:]])
    return within(arm, rows)


def on_first_axis(arm):
    """The tool point on axis 1, found by bending the joints until it is."""
    w, c = recognise(arm).constants[:2]
    low, high = np.where(arm.continuous, -np.pi, arm.lower), np.where(arm.continuous, np.pi, arm.upper)
    rows = []
    for q in arm.sample(np.random.default_rng(6), 12):
        start = np.clip(q, low + 1e-6, high - 1e-6)
        found = least_squares(lambda x: np.cross(w, arm.fk(x)[0] - c), start, bounds=(low, high), xtol=1e-15)
        if found.cost < 1e-20:
            rows.append(found.x)
    return within(arm, rows)


def test_tool_axis_along_the_parallel_axes():
    """Made so that the tool axis is along axis 2 at q5 = 0, whatever the other joints do."""
    arm = chain(axes=(Z, Y, -Y, Y, X), tool_axis=Y)
    solver = new_solver(arm)
    for q in arm.sample(np.random.default_rng(0), 5):
        q[4] = 0.0
        goal = Goal(*arm.fk(q))
        for start in (q, arm.middle, arm.upper):
            solution = solver.solve(goal, start)
            assert solution.solved, f'{q}: {solution}'
        found = solver.solve_all(goal, q)
        assert found or not found.complete


def test_no_branch_is_left_for_a_goal_that_the_seed_meets():
    """Where the geometry is only nearly the formula's, this loses solutions at limits and double roots."""
    arm = wrist_arm(8, 2e-3, 1e-3)
    solver, rng = new_solver(arm), np.random.default_rng(1)
    assert solver.closed_form.deviation > 0.0
    q = arm.sample(rng, 300)
    at, joint = np.arange(300), rng.integers(5, size=300)
    stop = np.where(rng.random(300) < 0.5, arm.lower[joint] + 1e-3, arm.upper[joint] - 1e-3)
    q[at, joint] = np.where(np.isfinite(stop), stop, q[at, joint])
    positions, directions = zip(*map(arm.fk, q), strict=True)
    found = solver.solve_batch(positions, directions, q)
    assert found.solved.all()
    assert np.abs(found.q - q).max() < 1e-3


# --- quartic_roots -------------------------------------------------------------------------------------


def real_roots(coefficients):
    """The real roots of the quartic with ascending coefficients (5,), ascending."""
    stops, roots = np.empty(5), np.empty(5)
    count = kernels.quartic_roots(np.asarray(coefficients, dtype=float), stops, roots)
    return np.sort(roots[:count])


def from_roots(roots, lead=1.0):
    """Ascending coefficients (5,) of the quartic with the four roots (complex ones in pairs)."""
    return lead * np.real(np.poly(roots))[::-1]


@given(st.lists(st.floats(-10, 10), min_size=4, max_size=4), st.sampled_from([1.0, -3.0, 0.01]))
@settings(max_examples=300)
def test_quartic_with_four_real_roots(values, lead):
    """Each root is met within what the coefficients' rounding allows, however close two of them are."""
    found = real_roots(from_roots(values, lead))
    for root in values:
        crowd = sum(abs(root - other) < 1e-2 for other in values)
        assert np.abs(found - root).min() < (1e-6 if crowd == 1 else 2e-3 * 10 ** (crowd - 1))


@given(st.lists(st.floats(-5, 5), min_size=5, max_size=5).filter(lambda c: abs(c[4]) > 0.1))
@settings(max_examples=300)
def test_quartic_equals_numpy(coefficients):
    """What is returned is a zero up to the slack for near misses; no zero that stands alone is left out."""
    found = real_roots(coefficients)
    residuals = np.polyval(coefficients[::-1], found) / (1 + found**2) ** 2
    assert np.abs(residuals).max(initial=0) <= 1.001 * kernels.ROOT_SLACK * np.abs(coefficients).max()
    every = np.roots(coefficients[::-1])
    for root in every[np.abs(every.imag) < 1e-12].real:
        if np.sort(np.abs(every - root))[1] > 1e-2:
            assert np.abs(found - root).min() < 1e-6 * (1 + abs(root))


@pytest.mark.parametrize(
    ('coefficients', 'expected'),
    [
        (from_roots([0.5, 0.5, -1.0, 2.0]), [-1.0, 0.5, 2.0]),
        (from_roots([0.5, 0.5, -1.0, -1.0]), [-1.0, 0.5]),
        (from_roots([0.3, 0.3, 1j, -1j]), [0.3]),
        (from_roots([1j, -1j, 2j, -2j]), []),
        (from_roots([0.7, -0.2, 1 + 1j, 1 - 1j]), [-0.2, 0.7]),
        (from_roots([0.1, 0.1, 0.1, 3.0], -2.5), [0.1, 3.0]),
        (from_roots([0.7265625, 1e-5, 1e-5, 1e-5]), [1e-5, 0.7265625]),
        (from_roots([0.2, 0.2, 0.2, 0.2]), [0.2]),
        (from_roots([0.0, 0.0, 0.0, 0.0]), [0.0]),
        ([-1.0, 0.0, 0.0, 2.6e-28, 1.0], [-1.0, 1.0]),  # at its extremum the curvature is next to zero
    ],
)
def test_quartic_with_double_and_complex_roots(coefficients, expected):
    """A root of multiplicity m is only known to the m-th root of the rounding error."""
    found = real_roots(coefficients)
    for root in expected:
        assert np.abs(found - root).min() < 5e-4
    for root in found:
        assert np.abs(np.array(expected) - root).min(initial=np.inf) < 2e-2


# --- Goal.lateral: served by the spare roll where there is one, and by nothing else --------------------


def angle(a, b):
    return 2.0 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))


def lateral_at(arm, q):
    return arm.frames(q)[-1]


@pytest.mark.parametrize('name', ['so101_like', 'wx250', 'hebi_a2085_05'])
def test_the_roll_turns_the_jaw_as_the_goal_says(name):
    arm = arm_of(name)
    solver, rng = new_solver(arm), np.random.default_rng(40)
    low, high = max(arm.lower[-1], -np.pi), min(arm.upper[-1], np.pi)
    for q, seed in zip(arm.sample(rng, 10), arm.sample(rng, 10), strict=True):
        goal = Goal(*arm.fk(q), lateral=lateral_at(arm, q))
        solution, plain = solver.solve(goal, seed), solver.solve(Goal(goal.position, goal.direction), seed)
        assert solution.solved
        assert ((solution.q >= arm.lower) & (solution.q <= arm.upper)).all()
        left = angle(lateral_at(arm, solution.q), goal.lateral)
        assert solution.lateral_error == pytest.approx(left, abs=1e-12)
        np.testing.assert_allclose(solution.q[:-1], plain.q[:-1], atol=1e-9)
        if np.abs(solution.q[:-1] - q[:-1]).max() < 1e-6:  # the branch that made the goal can do it
            assert solution.lateral_error < 1e-5
        direction, lateral = random_unit(rng), random_unit(rng)  # no other roll comes nearer
        solution = solver.solve(Goal(goal.position, direction, lateral))
        plain = solver.solve(Goal(goal.position, direction))
        assert solution.status is plain.status
        errors = solution.position_error, solution.direction_error
        assert errors == pytest.approx((plain.position_error, plain.direction_error), abs=1e-6)
        for roll in np.linspace(low, high, 100):
            other = lateral_at(arm, np.array([*solution.q[:-1], roll]))
            assert solution.lateral_error <= angle(other, lateral) + 1e-9


@pytest.mark.parametrize('name', ['seed_arm', 'moveo_like', 'ball_joint_arm'])
def test_without_a_spare_roll_lateral_changes_nothing_but_is_told(name):
    arm = arm_of(name)
    assert spare_roll(arm) == -1
    solver, rng = IkSolver(arm), np.random.default_rng(42)
    for q in arm.sample(rng, 5):
        goal = Goal(*arm.fk(q), lateral=random_unit(rng))
        solution, plain = solver.solve(goal), solver.solve(Goal(goal.position, goal.direction))
        np.testing.assert_allclose(solution.q, plain.q, atol=1e-9)
        assert plain.lateral_error is None
        assert solution.lateral_error == pytest.approx(angle(lateral_at(arm, solution.q), goal.lateral))
