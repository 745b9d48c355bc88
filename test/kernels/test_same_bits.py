# SPDX-License-Identifier: Apache-2.0
"""Every kernel in C against itself in Python: the same results, and the same arrays, in all bits."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest
from kernel_calls import recorded

from ik_node import kernels
from ik_node.kernels import build, native

pytestmark = pytest.mark.slow
# Plain Python takes minutes for one call of these: the first one is compared.
SLOW = {'best_branch', 'find_families', 'reached_directions', 'limit_distances', 'solve_outwards'}
ODD = (np.nan, np.inf, -np.inf, 1e308, 1e-320, -0.0)


@pytest.fixture(scope='session')
def calls(tmp_path_factory):
    """Calls of every kernel, recorded while C serves: once for all workers of a run."""
    kernels.prepare(wait=True)
    assert kernels.state().stage is kernels.Stage.READY
    if 'PYTEST_XDIST_WORKER' not in os.environ:
        return recorded(2)
    folder = tmp_path_factory.getbasetemp().parent  # of all workers
    file = folder / 'kernel_calls.pickle'
    with (folder / 'kernel_calls.lock').open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_bytes(pickle.dumps(recorded(2)))
        return pickle.loads(file.read_bytes())


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, tuple) else [value]


def outcome(kernel, given):
    """Results, then the arrays after the call; of an error its type."""
    arguments = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
    with np.errstate(all='ignore'):
        results = flat(kernel(*arguments))
    return [np.asarray(x) for x in (*results, *(x for x in arguments if isinstance(x, np.ndarray)))]


def differences(name, one, other, given):
    """Return the numbers of results and arguments that differ in a bit; NaN is NaN."""
    found = []
    expected, got = outcome(one, given), outcome(other, given)
    assert len(expected) == len(got), name
    for number, (x, y) in enumerate(zip(expected, got, strict=True)):
        x = x.astype(y.dtype) if x.dtype != y.dtype else x
        if x.dtype.kind == 'f':
            same = np.array_equal(x, y, equal_nan=True) and np.array_equal(
                np.signbit(x[~np.isnan(x)]), np.signbit(y[~np.isnan(y)])
            )
        else:
            same = x.shape == y.shape and x.tobytes() == y.tobytes()
        if not same:
            found.append(number)
    return found


def plain(name):
    return getattr(import_module(f'ik_node.kernels.{kernels.KERNELS[name]}'), name)


NOT_CALLED = [
    'fit_parabola',
    'follow',
    'local_ccd',
    'local_dls',
    'local_fabrik',
    'local_lm',
    'local_transpose',
]


def test_calls_of_nearly_every_kernel_are_recorded(calls):
    assert sorted(set(kernels.KERNELS) - set(calls)) == NOT_CALLED


@pytest.mark.parametrize('name', sorted(set(kernels.KERNELS) - set(NOT_CALLED)))
def test_c_and_python_agree_in_all_bits(calls, name):
    compiled = getattr(native.load(native.find()), name)
    for given in calls[name][: 1 if name in SLOW else 8]:
        assert differences(name, plain(name), compiled, given) == [], name


@pytest.mark.parametrize('method', ['ccd', 'dls', 'fabrik', 'lm', 'transpose'])
def test_descents_agree_in_all_bits(calls, method):
    """Kernels of single descents take the first arguments of the searches."""
    compiled = native.load(native.find())
    name = f'local_{method}'
    for given in calls[f'search_{method}'][:3]:
        joints, tool, limits, goal, options, *_ = given
        n, m = limits.shape[1], joints.shape[0]
        row = joints, tool, limits, goal, options, np.full(n, 0.2), np.zeros((2 * m + 3, 3))
        row = *row, np.zeros((3 * n + 20, max(n, 6)))
        assert differences(name, plain(name), getattr(compiled, name), row) == [], name


@pytest.mark.parametrize('name', ['forward', 'jacobian', 'goal_errors', 'largest_move', 'wrap_rows_into_limits'])
def test_odd_numbers_agree_too(calls, name):
    rng, compiled = np.random.default_rng(4), getattr(native.load(native.find()), name)
    tried = 0
    for given in calls[name][:8]:
        for _ in range(10):
            spoilt = tuple(x.copy() if isinstance(x, np.ndarray) else x for x in given)
            arrays = [x for x in spoilt if isinstance(x, np.ndarray) and x.dtype == float and x.size]
            array = arrays[rng.integers(len(arrays))]
            array.flat[rng.integers(array.size)] = ODD[rng.integers(len(ODD))]
            try:
                expected = plain(name)(*(x.copy() if isinstance(x, np.ndarray) else x for x in spoilt))
            except (ValueError, OverflowError, IndexError):  # Python refuses floor(nan), C does not
                continue
            del expected
            tried += 1
            assert differences(name, plain(name), compiled, spoilt) == [], name
    assert tried > 20


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which('gcc'), reason='needs gcc')
def test_every_index_is_inside_its_array(calls, tmp_path):
    """Built with checks of every index and of undefined behaviour, and scratch memory that begins as NaN."""
    checked = tmp_path / 'checked.so'
    options = ('-O1', '-g', '-fsanitize=undefined', '-fno-sanitize-recover=all')
    build.compile_module(build.source(checked=True), checked, ('gcc',), options)
    module, normal = native.load_module(native.MODULE, checked), native.load(native.find())
    for name, rows in calls.items():
        for given in rows:
            assert differences(name, getattr(normal, name), getattr(module, name), given) == [], name


@pytest.mark.nightly
@pytest.mark.skipif(not find_spec('ziglang'), reason='needs the package ziglang')
def test_two_compilers_agree_in_all_bits(calls, tmp_path):
    other = tmp_path / 'zig.so'
    build.compile_module(build.source(), other, (sys.executable, '-m', 'ziglang', 'cc'))
    module, normal = native.load_module(native.MODULE, other), native.load(native.find())
    for name, rows in calls.items():
        for given in rows:
            assert differences(name, getattr(normal, name), getattr(module, name), given) == [], name
