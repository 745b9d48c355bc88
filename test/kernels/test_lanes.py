# SPDX-License-Identifier: Apache-2.0
"""Kernels in lanes of vectors: the same as Python in all bits, functions of math, and the arms' solutions."""

from __future__ import annotations

import importlib.util
import math

import numpy as np
import pytest
from cases import shared_cases, shipped_cases
from kernel_calls import plain

from ik_node import IkSolver, kernels
from ik_node.kernels import native
from ik_node.kernels.arrays import LINK1, LINK2, SWITCHES
from ik_node.kernels.build import BuildError, compile_module, compiler
from ik_node.kernels.emit.expressions import UnsupportedError
from ik_node.kernels.emit.lanes import TARGETS
from ik_node.kernels.emit.module import module_source
from ik_node.solver.closed_form import recognise

WRITTEN = '''
from math import atan2, ceil, cos, floor, inf, isnan, nan, sin, sqrt

import numpy as np

from ik_node.kernels.language import B1, F2, I0, R1, R2, each

REPLACED, SIZES = {'REPLACED_ONE': 2.0}, {'table': (4,)}
REPLACED_ONE = 2.0


def early(x, y):
    """Returns at several places, in a loop and in branches within it."""
    total = 0.0
    for i in range(6):
        total += x * i
        if total > 3.0:
            if y > 0.0:
                return True, total
            total -= 2.0
        elif total < -4.0:
            return False, total - y
    return x > y, 7.0 * REPLACED_ONE


def turns(x, y):
    """Loops that lanes leave one by one."""
    count, size = 0, abs(x)
    while size > 0.5 and count < 9:
        size *= 0.5
        count += 1
        if count == 5 and y > 1.0:
            break
        if y < -1.0:
            continue
        size -= 0.01
    for i in range(count):
        if i == 2 and x > 0.0:
            continue
        size += 0.25 * i
        if size > 2.0 and y < 0.0:
            break
    return count, size


def insert(row, value, count):
    """A place of its own for each lane."""
    k = count
    while k > 0 and row[k - 1] > value:
        row[k] = row[k - 1]
        k -= 1
    row[k] = value
    return count + 1


def sorted_ones(x, y, rows):
    """Views that begin elsewhere in each lane."""
    row, count = np.empty(4), 0
    for i in range(4):
        value = sin_free(x, y, i)
        if value > -1.0:
            count = insert(row, value, count)
    kept = 0
    for i in range(count):
        part = rows[kept:]
        part[0, 0], part[0, 1] = row[i], row[count - 1 - i]
        if part[0, 0] + part[0, 1] > 0.0:
            kept += 1
    total = 0.0
    for i in range(kept):
        a, b = rows[i]
        total += a - 0.5 * b
    return kept, total


def sin_free(x, y, i):
    return x * (i - 1.5) if i != 2 else y


def compute(lanes: I0, table: R1, given: R2, out: F2, flags: B1):
    if lanes > 1:
        return 0
    rows = np.empty((5, 2))
    for k in each(given.shape[0]):
        x, y = given[k, 0], given[k, 1]
        share = 2 if table[0] > 1e9 else 0.5  # the same for all lanes
        flags[k] = False
        out[k, 0] = -1.0
        if isnan(x):
            continue
        right, total = early(x, y)
        count, size = turns(x, y)
        kept, sum_ = sorted_ones(x, y, rows)
        out[k, 0], out[k, 1], out[k, 2] = total, size, sum_
        out[k, 3] = floor(x) + share * ceil(y) - x * round(y)
        out[k, 4] = min(x, y, nan) + max(nan, x) if count > 3 else max(x, y) / (1.0 + abs(y))
        out[k, 5] = table[min(count, 3)] + kept
        out[k, 6] = sqrt(abs(x)) if not (right or x < y < 2.0) else -x
        out[k, 7] = (abs(x) + 0.1) ** (1.0 / 3.0)
        flags[k] = right and count > 1
    return 1


def functions(lanes: I0, given: R2, out: F2):
    if lanes > 1:
        return 0
    for k in each(given.shape[0]):
        out[k, 0], out[k, 1] = sin(given[k, 0]), cos(given[k, 0])
        out[k, 2] = atan2(given[k, 0], given[k, 1])
    return 1


def refused(lanes: I0, given: R2, out: F2):
    rest = 0.0
    for k in each(given.shape[0]):
        if given[k, 0] > 0.0:
            rest, other = (1.0, 2.0) if given[k, 1] > 0.0 else (2.0, 1.0)
            out[k, 0] = rest + other
    return 1
'''
MOST_ULP = 2.0  # of sine and cosine beside 1, and of the arctangent beside pi
ODD = 0.0, -0.0, 5e-324, 1e-310, 1e-200, 1e6, 1e22, 1e300, 1.7e308, math.inf, -math.inf, math.nan


@pytest.fixture(scope='module')
def written(tmp_path_factory):
    """The module above in Python and in C."""
    folder = tmp_path_factory.mktemp('lanes')
    file = folder / 'kernels' / 'written.py'
    file.parent.mkdir()
    file.write_text(WRITTEN)
    spec = importlib.util.spec_from_file_location('written', file)
    plain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain)
    try:
        compiler()
    except BuildError as error:
        pytest.skip(str(error))
    target = folder / 'in_lanes.so'
    chosen = {name: getattr(plain, name) for name in ('compute', 'functions')}
    compile_module(module_source('in_lanes', chosen), target)
    return plain, native.load_module('in_lanes', target)


def needs(width, lanes):
    if width != lanes:
        pytest.skip(f'the processor has no vectors of {lanes}')


@pytest.mark.parametrize('lanes', sorted(TARGETS))
@pytest.mark.parametrize('count', [0, 1, 7, 2000])
def test_control_flow_is_that_of_python_in_all_bits(written, lanes, count):
    plain, compiled = written
    given = np.random.default_rng(count).normal(size=(count, 2), scale=2.0)
    given[::11, 0] = np.nan
    table = np.array([3.0, 5.0, 7.0, 11.0])
    results = []
    for module, most in ((plain, 1), (compiled, lanes)):
        out, flags = np.full((count, 8), 9.0), np.ones(count, dtype=bool)
        results.append((module.compute(most, table, given, out, flags), out, flags))
    (one, out, flags), (width, *others) = results
    assert one == 1
    needs(width, lanes)
    assert out.tobytes() == others[0].tobytes()
    np.testing.assert_array_equal(flags, others[1])


@pytest.mark.parametrize('lanes', sorted(TARGETS))
def test_functions_of_math(written, lanes):
    """Beside long double, over all sizes of numbers, in any place of a vector."""
    rng = np.random.default_rng(3)
    scale = 10.0 ** rng.uniform(-320.0, 308.0, (60_000, 2))
    scale[:30_000] = 10.0 ** rng.uniform(-6.0, 8.0, (30_000, 2))
    given = rng.choice([-1.0, 1.0], scale.shape) * scale
    given[:10_000] = rng.uniform(-10.0, 10.0, (10_000, 2))
    given[10_000:12_000, 0] = np.arange(-1000, 1000) * np.pi / 4.0
    given = np.vstack([given, [(a, b) for a in ODD for b in ODD], [(-a, b) for a in ODD for b in ODD]])
    out = np.empty((len(given), 3))
    needs(written[1].functions(lanes, given, out), lanes)
    assert written[0].functions(1, given[:50].copy(), out[:50].copy()) == 1
    exact = given.astype(np.longdouble)
    with np.errstate(invalid='ignore'):
        expected = [np.sin(exact[:, 0]), np.cos(exact[:, 0]), np.arctan2(exact[:, 0], exact[:, 1])]
    for column, (want, unit) in enumerate(zip(expected, (2.0**-53, 2.0**-53, 2.0**-51), strict=True)):
        got = out[:, column]
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        good = ~np.isnan(got)
        assert np.abs(got[good] - want[good]).max() <= MOST_ULP * unit


def test_what_has_no_translation_is_refused(written):
    with pytest.raises(UnsupportedError, match='one of two tuples for each lane'):
        module_source('refused', {'refused': written[0].refused})


def exact_arms():
    cases = [case for case in (*shipped_cases(), *shared_cases()) if case.path]
    forms = [recognise(case.arm()) for case in cases]
    return [pytest.param(case, id=case.label) for case, form in zip(cases, forms, strict=True) if form and form.exact]


def answers(case, count, lanes, order=None):
    """Return q, errors and what is solved in lanes, then q and what is solved by the scalar kernel alone."""
    assert kernels.prepare(wait=True).stage is kernels.Stage.READY
    arm, rng = case.arm(), np.random.default_rng(7)
    rows, seeds = arm.sample(rng, count), arm.sample(rng, count)
    goals = np.full((count, 9), np.nan)
    goals[:, :6] = [np.concatenate(arm.fk(q)) for q in rows]
    goals[1::5, :3] += rng.normal(size=(len(goals[1::5]), 3), scale=0.1)  # some out of reach
    seeds[::4] = arm.middle
    pipeline = IkSolver(arm)._pipeline
    search, form = pipeline.search, recognise(arm).constants
    joints_tool_limits, options = search._model, search.options
    q, errors, solved = np.zeros((count, 5)), np.zeros((count, 2)), np.zeros(count, dtype=bool)
    alone = q.copy(), errors.copy(), solved.copy()
    index = np.arange(count) if order is None else order
    needs(
        kernels.nearest_in_lanes(
            lanes, *joints_tool_limits, form, goals[index], options[:SWITCHES], seeds[index], q, errors, solved
        ),
        lanes,
    )
    rest = (search.table, 0, search.random_seed, seeds[index], *alone)
    kernels.solve_many(*joints_tool_limits, form, True, goals[index], pipeline.shells, options, *rest)
    return q, errors, solved, alone[0], alone[2]


def assert_as_alone(case, count, lanes, others=0):
    q, errors, solved, alone, solved_alone = answers(case, count, lanes)
    assert not (solved & ~solved_alone).any()
    # The xArm's axes are off by rounded angles: a fifth of its goals is met within the tolerances only.
    assert solved.sum() > 0.75 * solved_alone.sum()
    assert errors[solved].max() < 1e-9
    differences = np.abs(q - alone)[solved].max(axis=1)
    assert (differences > 1e-9).sum() <= others
    assert differences.max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize('case', exact_arms())
def test_arms_are_solved_as_by_the_scalar_kernel(case):
    assert_as_alone(case, 400, 4)


@pytest.mark.nightly
@pytest.mark.parametrize('lanes', sorted(TARGETS))
@pytest.mark.parametrize('case', exact_arms())
def test_many_goals_are_solved_as_by_the_scalar_kernel(case, lanes):
    assert_as_alone(case, 10_000, lanes, others=2)  # next to singularities


@pytest.mark.parametrize('lanes', sorted(TARGETS))
def test_neighbours_change_no_bit(lanes):
    """A goal has the same answer in any lane, beside any others, and with any number of lanes."""
    case = next(case for case in shipped_cases() if case.label == 'seed_arm')
    kept = answers(case, 200, 4)
    order = np.random.default_rng(1).permutation(200)
    for one, other in zip(answers(case, 200, lanes, order)[:3], kept[:3], strict=True):
        assert one.tobytes() == other[order].tobytes()


def test_without_a_candidate_nothing_is_solved(monkeypatch):
    """Not even where scratch memory still holds a solution."""
    arm = next(case for case in shipped_cases() if case.label == 'seed_arm').arm()
    solver, q = IkSolver(arm), arm.sample(np.random.default_rng(3), 1)
    form, goals = recognise(arm).constants.copy(), np.full((1, 9), np.nan)
    goals[0, :6] = np.concatenate(arm.fk(q[0]))
    search = solver._pipeline.search
    given = *search._model, form, goals, search.options[:SWITCHES], np.array([arm.middle])
    monkeypatch.setattr(np, 'empty', lambda shape, dtype=float: q[0].copy() if shape == 5 else np.zeros(shape, dtype))
    for links, expected in ((form[[LINK1, LINK2]], True), (0.0, False)):
        form[[LINK1, LINK2]] = links
        solved = np.zeros(1, dtype=bool)
        with np.errstate(divide='ignore'):
            plain('nearest_in_lanes')(1, *given, np.zeros((1, 5)), np.zeros((1, 2)), solved)
        assert solved[0] == expected
