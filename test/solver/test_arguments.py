# SPDX-License-Identifier: Apache-2.0
"""What arguments are taken and which are rejected, and what the error names."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from cases import arm_of
from hypothesis import given
from hypothesis import strategies as st

from campaigns.arguments import Samples, faults
from ik_node import Goal, IkError, IkSolver, InputError, kernels
from ik_node.solver.goal import pack_goals

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        (((1, 2),), ['position', '(3,)', '(2,)']),
        ((1.0,), ['position', '(3,)', '()']),
        (([[1, 2, 3]],), ['position', '(3,)', '(1, 3)']),
        (('abc',), ['position', 'abc']),
        ((None,), ['position']),
        (([1, [2], 3],), ['position']),
        (((1j, 0, 0),), ['position']),
        ((np.ma.array([0.1, 0, 0], mask=[True, False, False]),), ['position']),
        (((10**400, 0, 0),), ['position', 'finite']),
        (((NAN, 0, 0),), ['position', 'finite', 'nan']),
        (((0, -INF, 0),), ['position', 'finite', 'inf']),
        (((0, -1e300, 0),), ['position', '1e+09 m', '[0.0, -1e+300, 0.0]']),
        (((0, 0, 0), (0, 0)), ['direction', '(3,)', '(2,)']),
        (((0, 0, 0), (0, NAN, 1)), ['direction', 'finite', 'nan']),
        (((0, 0, 0), (0, 0, 0)), ['direction', 'zero']),
        (((0, 0, 0), (0, 0, 1), (0, 0, 0)), ['lateral', 'zero']),
        (((0, 0, 0), (0, 0, 1), (1, 0)), ['lateral', '(3,)']),
        (((0, 0, 0), None, (1, 0, 0)), ['lateral', 'direction']),
    ],
)
def test_goals_that_are_none(arguments, named):
    with pytest.raises(InputError) as caught:
        Goal(*arguments)
    assert [word for word in named if word not in str(caught.value)] == [], str(caught.value)
    assert isinstance(caught.value, IkError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.slow
@given(
    st.floats(0.9991, 1.0009),
    st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1),
)
def test_nearly_unit_directions_are_normalised(length, vector):
    unit = np.array(vector) / np.linalg.norm(vector)
    goal = Goal((0, 0, 0), unit * length)
    assert abs(np.linalg.norm(goal.direction) - 1) < 4e-16
    np.testing.assert_allclose(goal.direction, unit, rtol=0, atol=1e-15)


FORMS = {
    'tuple': tuple,
    'list of NumPy': lambda row: list(np.array(row)),
    'array': np.array,
    'apart': lambda row: np.repeat(row, 2)[::2],
    'fractions': lambda row: list(map(Fraction, row)),
    'generator': iter,
}


@pytest.mark.parametrize('form', FORMS.values(), ids=FORMS)
def test_numbers_in_any_form_are_the_same_goal_and_seed_in_all_bits(solver, form):
    """Some are read by a kernel, others are converted first."""
    position, direction, lateral, seed = [0.1, -0.2, 0.3], [0.6004, 0.0, -0.8], [0.0, 1.0003, 0.1 / 7], [0.1] * 5
    goal, other = Goal(position, direction, lateral), Goal(form(position), form(direction), form(lateral))
    assert goal.packed.tobytes() == other.packed.tobytes()
    if form is not iter:
        one, two = solver.solve(goal, seed), solver.solve(other, form(seed))
        assert (one.q.tobytes(), one.position_error) == (two.q.tobytes(), two.position_error)


def test_goals_in_arrays_have_the_bits_of_those_in_lists_and_the_same_errors():
    kernels.prepare(wait=True)
    rng = np.random.default_rng(3)
    points, axes = rng.normal(size=(2, 50, 3))
    axes *= (1.0 + 1e-9 * rng.normal(size=50))[:, None] / np.linalg.norm(axes, axis=1)[:, None]
    for directions in (None, axes, axes[::-1], 2.0 * axes, axes[0]):
        as_lists = pack_goals(points.tolist(), None if directions is None else directions.tolist())
        assert pack_goals(points, directions).tobytes() == as_lists.tobytes()
    for value, error in ((NAN, 'finite'), (INF, 'finite'), (1e300, 'within')):
        wrong = points.copy()
        wrong[7, 2] = value
        with pytest.raises(InputError, match=error + '.*row 7'):
            pack_goals(wrong, axes)
    wrong = axes.copy()
    wrong[7] = 0.0
    with pytest.raises(InputError, match='zero, row 7'):
        pack_goals(points, wrong)
    with pytest.raises(InputError, match='same length'):
        pack_goals(points, axes[:7])


def test_a_goal_is_a_copy_in_double_precision_that_cannot_be_changed():
    position = np.array([1, 2, 3], dtype=np.float32)
    goal = Goal(position, np.array([0, 0, 1], dtype=np.float32))
    assert goal.position.dtype == goal.direction.dtype == np.float64
    position[:] = 0
    assert goal.position.tolist() == [1, 2, 3]
    assert not goal.position.flags.writeable
    assert not goal.direction.flags.writeable
    with pytest.raises(AttributeError):
        goal.position = position


def test_packed_holds_nan_for_what_is_not_asked():
    np.testing.assert_array_equal(Goal((1, 2, 3)).packed, [1, 2, 3, *[NAN] * 6])
    np.testing.assert_array_equal(Goal((1, 2, 3), (0, 1, 0)).packed, [1, 2, 3, 0, 1, 0, *[NAN] * 3])
    np.testing.assert_array_equal(Goal((1, 2, 3), (0, 1, 0), (1, 0, 0)).packed, [1, 2, 3, 0, 1, 0, 1, 0, 0])
    with pytest.raises(InputError, match=r'row 1 is \[0.0, 0.0, 1e\+300\]'):
        pack_goals([[1e9, 0, -1e9], [0, 0, 1e300]], None)


@pytest.fixture(scope='module')
def solver() -> IkSolver:
    return IkSolver(arm_of('seed_arm'))


@pytest.mark.parametrize(
    ('name', 'values'),
    [
        ('restarts', ['5', 1.5, -1, True]),
        ('random_seed', [0.5, 2**63, -1]),
        ('position_tolerance', ['1', INF, 0, 10**400]),
        ('direction_tolerance', [INF, None]),
        ('direction_weight', [0.0, -1.0, NAN, INF, '1']),
        ('time_budget', [NAN, '1', 0.0]),
        ('method', ['newton']),
        ('schedule', [None]),
        ('method_options', ['limits', {'limits': False}]),
        ('compile', ['now']),
    ],
)
def test_options_out_of_range_are_named(solver, name, values):
    for value in values:
        with pytest.raises(InputError) as caught:
            IkSolver(solver.arm, **{name: value})
        assert name in str(caught.value)
        assert repr(value)[:20].lstrip('{').rstrip('}') in str(caught.value)


@pytest.mark.parametrize('given', [None, 'arm.urdf', np.zeros(9), ((0.3, 0.0, 0.2), (0.0, 0.0, -1.0))])
def test_what_is_no_arm_and_no_goal_is_rejected(solver, given):
    with pytest.raises(InputError, match='arm must be an Arm'):
        IkSolver(given)
    q = solver.arm.middle
    for call in (solver.solve, solver.solve_all, lambda g: solver.track(g, q), lambda g: solver.errors(g, q)):
        with pytest.raises(InputError, match='goal must be a Goal'):
            call(given)


BAD_SEEDS = [
    *(b'abcde', 'abc', {0, 1, 2, 3, 4}, np.zeros(5, dtype=complex), ['0'] * 5, [0.0] * 4, [NAN] * 5),
    *(np.full(5, 1e308), np.ma.array(np.zeros(5), mask=True)),
]


@pytest.mark.parametrize('wrong', BAD_SEEDS, ids=range(len(BAD_SEEDS)))
def test_bad_configurations_are_rejected_everywhere(solver, wrong):
    goal = Goal(*solver.arm.fk(solver.arm.middle))
    for call, named in (
        (lambda: solver.solve(goal, wrong), 'seed must be'),
        (lambda: solver.solve_all(goal, wrong), 'seed must be'),
        (lambda: solver.solve_path([goal.position], [goal.direction], wrong), 'seed must be'),
        (lambda: solver.solve_batch([goal.position], [goal.direction], wrong), 'seeds must be'),
        (lambda: solver.track(goal, wrong), 'q must be'),
        (lambda: solver.track(goal, solver.arm.middle, wrong), 'before must be'),
    ):
        with pytest.raises(InputError, match=named):
            call()


GOOD, DOWN = [[0.1, 0.0, 0.2], [0.2, 0.0, 0.1]], [[0.0, 0.0, -1.0]] * 2


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        (([0.1, 0.0, 0.2],), r'positions .*\(N, 3\), got \(3,\)'),
        (([[0.1, 0.0]],), r'positions .*\(N, 3\), got \(1, 2\)'),
        (([GOOD[0], [0.1, np.inf, 0.0]],), 'positions .*row 1'),
        (('abc',), 'positions'),
        ((None,), 'positions'),
        (([[10**400, 0, 0]],), 'positions'),
        ((np.ma.array(GOOD, mask=True), DOWN), 'positions'),
        ((GOOD, np.ma.array(DOWN)), 'directions'),
        ((GOOD, DOWN[:1]), 'positions and directions .* 2 and 1'),
        ((GOOD, [[0, 0, -1], [0, 0, 0]]), 'directions .* zero, row 1'),
        ((GOOD, (0, 0, 0)), 'directions .* zero'),
        ((GOOD, [[0, 0, NAN], [0, 0, -1]]), 'directions .* row 0'),
        ((GOOD, DOWN, np.zeros((3, 5))), r'seeds .*\(5,\) or \(2, 5\)'),
        ((GOOD, DOWN, [[0.0] * 5, [0.0]]), 'seeds'),
        ((GOOD, DOWN, None, 0), 'workers .*0'),
        ((GOOD, DOWN, None, '2'), "workers .*'2'"),
        ((GOOD, DOWN, None, 1.5), r'workers .*1\.5'),
    ],
)
def test_batches_and_paths_that_are_none(solver, arguments, named):
    with pytest.raises(InputError, match=named):
        solver.solve_batch(*arguments)
    if len(arguments) < 3:
        with pytest.raises(InputError, match=named):
            solver.solve_path(*arguments)


def test_numbers_of_numpy_are_numbers():
    whole = {'restarts': np.int32(3), 'random_seed': np.uint64(7), 'time_budget': np.int64(5)}
    real = {'position_tolerance': np.float32(1e-5), 'direction_weight': np.float64(0.1)}
    solver = IkSolver(arm_of('seed_arm'), **whole, **real)
    position, direction = solver.arm.fk(solver.arm.middle + 0.1)
    assert solver.solve(Goal(position, direction)).solved
    assert solver.solve_batch([position], [direction], workers=np.int64(1)).solved.all()


# --- anything at all -----------------------------------------------------------------------------------

SAMPLES = Samples()
EVERY = 1 if 'IK_NODE_EXPLORE' in os.environ else 10  # a tenth of the calls is made in the gate


@pytest.mark.slow
@pytest.mark.parametrize('name', sorted(SAMPLES.callables))
def test_any_argument_is_taken_or_rejected_with_a_documented_error(name):
    count, found = faults(SAMPLES, SAMPLES.callables[name], EVERY)
    assert not found, f'{len(found)} of {count} calls, such as\n' + '\n'.join(found[:10])


@pytest.mark.parametrize('length', [1e-300, 0.5, 1.0, 1.0005, 3.0, 1e200])
def test_a_direction_has_any_length_and_one_serves_all_goals(length):
    unit = np.array((0.6, 0.0, -0.8))
    goal = Goal((0.1, 0.2, 0.3), length * unit, length * np.array((0.0, 2.0, 0.0)))
    np.testing.assert_allclose(goal.direction, unit, rtol=0, atol=1e-15)
    np.testing.assert_allclose(goal.lateral, (0.0, 1.0, 0.0), rtol=0, atol=1e-15)
    given = length * np.array([unit, unit])
    before = given.copy()
    rows = pack_goals(GOOD, given)
    np.testing.assert_array_equal(rows[:, 3:6], [goal.direction] * 2)
    np.testing.assert_array_equal(pack_goals(GOOD, length * unit), rows)
    np.testing.assert_array_equal(given, before)
