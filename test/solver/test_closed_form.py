# SPDX-License-Identifier: Apache-2.0
"""The families with a formula: recognised from the geometry, and right for every arm of the family."""

from __future__ import annotations

import numpy as np
import pytest
from cases import TOLERANCE, new_solver, shared_cases, shipped_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from made_arms import make_arm, parallel_arm, wrist_arm
from scipy.optimize import least_squares

from ik_node import Arm, Goal, IkSolver, kernels
from ik_node.solver.closed_form import Family, recognise

PARALLEL, ROLL, WRIST = Family.PARALLEL, Family.PARALLEL_ROLL, Family.WRIST
TURN = 2 * np.pi

# What each arm is, read off its drawing or its file by eye. None: no formula serves it.
EXPECTED = {
    'seed_arm': PARALLEL,
    'so101_like': ROLL,
    'xarm5_like': ROLL,
    'moveo_like': WRIST,
    'prismatic_arm': None,
    'ball_joint_arm': None,
    'so101': PARALLEL,
    'so100': PARALLEL,
    'so100_2': ROLL,
    'koch_v1_1': PARALLEL,
    'wx250': ROLL,
    'px150': ROLL,
    'xarm5': ROLL,
    'moveo': WRIST,
    'omx_f': PARALLEL,
    'omx_l': ROLL,
    'hebi_a2085_05': ROLL,
    'lrmate200ic5h': ROLL,
    'phantomx_reactor_wrist': ROLL,
    'igus_robolink_rl_dp_5': ROLL,
    'braccio_ros2': ROLL,
    'derived_ur5e_wrist3_fixed': PARALLEL,
    'dual_xarm5': ROLL,
    'dual_xarm5_2': ROLL,
    'magician': None,
    'magician_rail': None,
    'ikpy_prismatic_mixed': None,
    'ur5e': None,
    'panda': None,
    'scara_yguel': None,
    'low_cost_robot': None,
    'px100': None,
    'vx300s': None,
}
NEARLY = {'moveo', 'phantomx_reactor_wrist'}  # files whose axes miss each other or the tool by rounding
CASES = [pytest.param(case, id=case.label) for case in [*shipped_cases(), *shared_cases()]]


@pytest.mark.parametrize('case', CASES)
def test_family_of_real_arms(case):
    form = recognise(case.arm())
    assert case.label in EXPECTED, 'look at its geometry and say what family it is'
    assert (form and form.family) is EXPECTED[case.label]
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
    constants, near = solver.closed_form.constants, np.array(seed)
    count, _ = kernels.formula_solutions(
        *model, constants, goal.packed, solver._parts.search.options, near, found
    )
    return found[:count]


def assert_formula_finds(solver: IkSolver, configurations, apart: float = 1e-3) -> None:
    """Each of the configurations is among the solutions of the goal that it reaches, and all are true."""
    arm = solver.arm
    for q in configurations:
        goal = Goal(*arm.fk(q))
        found = by_formula(solver, goal, q)
        assert len(found), f'nothing found for {q}'
        assert min(gap(arm, q, other) for other in found) < apart, f'{q} is not among\n{found}'
        for other in found:
            assert max(solver.errors(goal, other)) <= TOLERANCE
            assert ((other >= arm.lower) & (other <= arm.upper)).all()


def assert_arm_is_served(arm: Arm, family: Family, exact: bool, seed: int) -> None:
    solver = new_solver(arm)
    assert solver.closed_form.family is family
    assert solver.closed_form.exact == exact
    assert_formula_finds(solver, arm.sample(np.random.default_rng(seed), 10))


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_any_arm_with_three_parallel_axes(seed):
    """Any base and tip offset, tool point and tool axis, either sense of axes 3 and 4, any limits."""
    assert_arm_is_served(parallel_arm(seed), PARALLEL, True, seed)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_any_arm_with_three_parallel_axes_and_the_tool_on_the_roll_axis(seed):
    assert_arm_is_served(parallel_arm(seed, roll=True), ROLL, True, seed)


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_any_arm_with_a_wrist_point_on_the_tool_axis(seed):
    assert_arm_is_served(wrist_arm(seed), WRIST, True, seed)


@given(st.integers(0, 10**6), st.sampled_from([parallel_arm, wrist_arm]))
@settings(max_examples=20, deadline=None)
def test_the_solution_given_is_the_nearest_of_all(seed, make):
    solver = new_solver(make(seed))
    rng = np.random.default_rng(seed)
    for q in solver.arm.sample(rng, 10):
        goal, start = Goal(*solver.arm.fk(q)), solver.arm.sample(rng, 1)[0]
        moves = np.abs(by_formula(solver, goal, start) - start).max(axis=1)
        found = np.abs(solver.solve(goal, start).q - start).max()
        # Next to a double root, solutions that are less apart than this count as one.
        assert found == pytest.approx(moves.min(), abs=kernels.DISTINCT)


@pytest.mark.parametrize(
    'make', [lambda seed: parallel_arm(seed, tilt=1e-5), lambda seed: wrist_arm(seed, 1e-5, 1e-5)]
)
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


@pytest.mark.parametrize('third', [1, -1])
@pytest.mark.parametrize('fourth', [1, -1])
def test_anti_parallel_axes(third, fourth):
    """The four arms that differ in nothing but the senses of axes 3 and 4 mirror each other's angles."""
    offsets = [(0, 0, 0.1), (0.02, 0, 0.05), (0, 0.01, 0.25), (0.2, 0, 0.01), (0.06, 0, 0)]
    axes = [(0, 0, 1), (0, 1, 0), (0, third, 0), (0, fourth, 0), (1, 0, 0)]
    limits = np.full((5, 2), (-3.0, 3.0))
    tool = {'tool_axis': (0, 0.6, 0.8), 'tool_point': (0.05, 0.01, 0.02)}
    arm = make_arm(axes, offsets, limits, **tool)
    plain = make_arm([(0, 0, 1), *[(0, 1, 0)] * 3, (1, 0, 0)], offsets, limits, **tool)
    solver = new_solver(arm)
    senses = np.array([1, 1, third, fourth, 1])
    for q in plain.sample(np.random.default_rng(1), 50):
        goal = Goal(*plain.fk(q))
        assert min(gap(arm, q * senses, other) for other in by_formula(solver, goal, arm.middle)) < 1e-6


def test_slant_that_is_too_large_has_no_formula():
    assert recognise(parallel_arm(3)) is not None
    assert recognise(parallel_arm(3, tilt=1e-2)) is None
    assert recognise(wrist_arm(3, miss=0.1)) is None


def chain(kinds=None, axes=None, offsets=None, **more) -> Arm:
    """An arm of the parallel family unless changed."""
    return make_arm(
        axes or [(0, 0, 1), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0)],
        offsets or [(0, 0, 0.1), (0, 0, 0.1), (0, 0, 0.2), (0.2, 0, 0), (0.1, 0, 0)],
        np.full((5, 2), (-2.0, 2.0)),
        kinds,
        tool_axis=(0, 0.6, 0.8),
        **more,
    )


def test_geometry_that_no_formula_serves():
    assert recognise(chain()).family is PARALLEL
    revolute = ['revolute'] * 5
    for slide in range(5):
        kinds = [*revolute[:slide], 'prismatic', *revolute[slide + 1 :]]
        assert recognise(chain(kinds)) is None
    y = (0, 1, 0)
    assert recognise(chain(axes=[y, y, y, y, (1, 0, 0)])) is None  # four parallel axes
    assert recognise(chain(axes=[(0, 0, 1), y, y, y, y])) is None
    no_upper_arm = [(0, 0, 0.1), (0, 0, 0.1), (0, 0.3, 0), (0.2, 0, 0), (0.1, 0, 0)]
    assert recognise(chain(offsets=no_upper_arm)) is None  # axes 2 and 3 are one line
    assert recognise(chain(mimics=[(4, 1, 1.0)])) is None


# --- singular goals ------------------------------------------------------------------------------------


@pytest.mark.parametrize('case', [p for p in CASES if EXPECTED.get(p.values[0].label)])
def test_singular_goals_are_answered(case):
    """Elbow straight or folded, tool point on axis 1, from near and far seeds."""
    arm = case.arm()
    solver = new_solver(arm)
    singular = _stretched(arm) + _on_first_axis(arm)
    assert len(singular) >= 4
    for q in singular:
        for seed in (q, arm.middle, np.clip(q + 0.3, arm.lower, arm.upper)):
            solution = solver.solve(Goal(*arm.fk(q)), seed)
            assert solution.solved, f'{q}: {solution}'


def _within(arm, rows):
    rows = [np.asarray(q, dtype=float) for q in rows]
    return [q for q in rows if ((q >= arm.lower) & (q <= arm.upper)).all()]


def _stretched(arm):
    """Elbow straight or folded: both elbows of the planar triangle are the same."""
    links = recognise(arm).constants[5:7]
    u = recognise(arm).constants[2]
    straight = np.arctan2(u @ np.cross(links[1], links[0]), links[0] @ links[1])
    sense = recognise(arm).constants[13, 1]
    rows = []
    for q in arm.sample(np.random.default_rng(5), 20):
        for elbow in (straight, straight + np.pi):
            bend = (elbow + np.pi) % TURN - np.pi
            rows.append([*q[:2], sense * bend, *q[3:]])
    return _within(arm, rows)[:4]


def _on_first_axis(arm):
    """The tool point on axis 1, found by bending the joints until it is."""
    w, c = recognise(arm).constants[:2]
    low, high = np.where(arm.continuous, -np.pi, arm.lower), np.where(arm.continuous, np.pi, arm.upper)
    rows = []
    for q in arm.sample(np.random.default_rng(6), 12):
        off_axis = lambda x: np.cross(w, arm.fk(x)[0] - c)  # noqa: E731
        found = least_squares(off_axis, np.clip(q, low + 1e-6, high - 1e-6), bounds=(low, high), xtol=1e-15)
        if found.cost < 1e-20:
            rows.append(found.x)
    return _within(arm, rows)[:4]


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(2))
def test_tool_axis_along_the_parallel_axes(seed):
    """Made so that the tool axis is along axis 2 at q5 = 0, whatever the other joints do."""
    rng = np.random.default_rng(seed)
    y = (0, 1, 0)
    offsets = [(0, 0, 0.1), (0.02, 0.01, 0.05), (0, 0.01, 0.25), (0.2, 0, 0.01), (0.06, 0, 0)]
    axes = [(0, 0, 1), y, (0, -1, 0), y, (1, 0, 0)]
    limits = np.column_stack([np.full(5, -3.0), np.full(5, 3.0)])
    arm = make_arm(axes, offsets, limits, tool_axis=y, tool_point=rng.uniform(-0.1, 0.1, 3))
    solver = new_solver(arm)
    for q in arm.sample(rng, 10):
        q[4] = 0.0
        goal = Goal(*arm.fk(q))
        for start in (q, arm.middle, arm.upper):
            solution = solver.solve(goal, start)
            assert solution.solved, f'{q}: {solution}'
        assert solver.solve_all(goal, q, time_budget=np.inf)


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
@settings(max_examples=300, deadline=None)
def test_quartic_with_four_real_roots(values, lead):
    """Each root is met within what the coefficients' rounding allows, however close two of them are."""
    found = real_roots(from_roots(values, lead))
    for root in values:
        crowd = sum(abs(root - other) < 1e-2 for other in values)
        assert np.abs(found - root).min() < (1e-6 if crowd == 1 else 2e-3 * 10 ** (crowd - 1))


@given(st.lists(st.floats(-5, 5), min_size=5, max_size=5).filter(lambda c: abs(c[4]) > 0.1))
@settings(max_examples=300, deadline=None)
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
    ('roots', 'expected'),
    [
        ([0.5, 0.5, -1.0, 2.0], [-1.0, 0.5, 2.0]),
        ([0.5, 0.5, -1.0, -1.0], [-1.0, 0.5]),
        ([0.3, 0.3, 1j, -1j], [0.3]),
        ([1j, -1j, 2j, -2j], []),
        ([0.7, -0.2, 1 + 1j, 1 - 1j], [-0.2, 0.7]),
        ([0.1, 0.1, 0.1, 3.0], [0.1, 3.0]),
        ([0.7265625, 1e-5, 1e-5, 1e-5], [1e-5, 0.7265625]),
        ([0.2, 0.2, 0.2, 0.2], [0.2]),
        ([0.0, 0.0, 0.0, 0.0], [0.0]),
    ],
)
@pytest.mark.parametrize('lead', [1.0, -2.5])
def test_quartic_with_double_and_complex_roots(roots, expected, lead):
    """A root of multiplicity m is only known to the m-th root of the rounding error."""
    found = real_roots(from_roots(roots, lead))
    for root in expected:
        assert np.abs(found - root).min() < 5e-4
    for root in found:
        assert np.abs(np.array(expected) - root).min(initial=np.inf) < 2e-2


def test_quartic_far_flatter_than_a_parabola():
    """x^4 = 1 but for rounding: at its extremum the curvature is next to zero."""
    np.testing.assert_allclose(real_roots([-1.0, 0.0, 0.0, 2.6e-28, 1.0]), [-1.0, 1.0], atol=1e-14)


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
