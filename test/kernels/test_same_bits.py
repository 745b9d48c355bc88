# SPDX-License-Identifier: Apache-2.0
"""Every kernel in C against itself in Python: the same results, and the same arrays, in all bits."""

from __future__ import annotations

import fcntl
import os
import pickle

import numpy as np
import pytest
from kernel_calls import differences, outcome, plain, recorded

from ik_node import kernels
from ik_node.kernels import native
from ik_node.kernels.emit.module import signature

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


def test_calls_of_every_kernel_are_recorded(calls):
    assert sorted(name for name, rows in calls.items() if rows) == sorted(kernels.KERNELS)


@pytest.mark.parametrize('name', sorted(kernels.KERNELS))
def test_c_and_python_agree_in_all_bits(calls, name):
    compiled = getattr(native.load(native.find()), name)
    for given in calls[name][: 1 if name in SLOW else 8]:
        assert differences(outcome(plain(name), given), outcome(compiled, given)) == [], name


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
                expected = outcome(plain(name), spoilt)
            except (ValueError, OverflowError, IndexError):  # Python refuses floor(nan), C does not
                continue
            tried += 1
            assert differences(expected, outcome(compiled, spoilt)) == [], name
    assert tried > 20


SEARCHES = [name for name in sorted(kernels.KERNELS) if name.startswith(('search_', 'local_'))]


# In plain Python, ccd and fabrik refuse floor(nan).
@pytest.mark.parametrize('name', [name for name in SEARCHES if not name.endswith(('_ccd', '_fabrik'))])
def test_from_a_start_of_nan_nothing_comes_out_that_scratch_memory_held(calls, name, monkeypatch):
    given = [x.copy() if isinstance(x, np.ndarray) else x for x in calls[name][0]]
    given[list(signature(plain(name))).index('q')][0] = np.nan
    found = []
    for held in (3, 5):
        monkeypatch.setattr(np, 'empty', lambda shape, dtype=float, held=held: np.full(shape, held, dtype))
        found.append(outcome(plain(name), tuple(given)))
        monkeypatch.undo()
    assert differences(*found) == []
