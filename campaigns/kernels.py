# SPDX-License-Identifier: Apache-2.0
"""Every kernel, plain and compiled, on the same calls: the same bits? python -m campaigns.kernels [--sanitize]

The calls are those of test/kernel_calls.py, and copies of them with one number that is odd (NaN, infinite, huge,
denormal, -0.0) or made up; indices and counts in these arrays stay what they are. Compared are the modules of cc and
of zig, and with --sanitize one by gcc in which every index is checked, scratch memory begins as NaN, and
AddressSanitizer and UndefinedBehaviorSanitizer watch. The oracle is plain Python where it ends in time and raises
nothing. Else, and for calls of several lanes, the modules are compared with one another, in a child process with a
time limit (column "child"); an index that Python refuses is left out. Prints a row per kernel; exit code 1 if a bit
differs, if a child is ended by what watches it, or if no call of a kernel was compared.
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from kernel_calls import Call, differences, outcome, plain, recorded  # of the tests; campaigns/__init__.py says where

from ik_node import kernels
from ik_node.kernels import arrays, build, native
from ik_node.kernels.chain import BALL_ROWS
from ik_node.kernels.elimination import layout
from ik_node.kernels.emit.module import signature

ODD = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320, -0.0, 0.0)
CHILD_LIMIT = 30  # s, of a call in all modules
RAISED, STOPPED = 98, 99  # exit codes of a child: by an exception, by a sanitizer
LANES = 4  # what all processors with AVX2 have
FAILED = Path('build', 'failed_calls')
SANITIZERS = '-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all'


class TooLongError(Exception):
    """Plain Python did not end in time."""


def in_time(act: Callable[[], Any], seconds: float) -> Any:
    """Return what act returns. Raises TooLongError."""

    def stop(*_: object) -> None:
        raise TooLongError

    old = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        return act()
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, old)


# Where arrays of numbers hold indices, counts and kinds of joints (see arrays.py, and layout.py of the elimination):
# the product never makes them from what a user gives, and with others kernels read what is not there. A period is
# 0 or a whole turn; with another, a joint has any number of turns within its limits.
LAYOUT: dict[str, Any] = {
    'period': np.s_[...],
    'joints': np.s_[..., arrays.VARIABLE],
    'trunk': np.s_[..., arrays.VARIABLE],
    'limits': np.s_[..., 2::BALL_ROWS, :],  # ball joints
}
LAYOUT_OF_ELIMINATION = layout.JOINTS + np.arange(5)[:, None], [layout.SLIDING, layout.VARIABLE]


def changeable(name: str, argument: str, value: Any) -> np.ndarray:
    """Return the places of the numbers in an argument of a kernel that may be others."""
    if not (isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype == float)):
        return np.empty(0, dtype=np.int64)
    may = np.ones(np.shape(value), dtype=bool)
    if argument in LAYOUT:
        may[LAYOUT[argument]] = False
    elif (name, argument) == ('eliminated', 'form'):
        may[0] = may[LAYOUT_OF_ELIMINATION] = False
    return np.flatnonzero(may)


def spoilt(name: str, given: Call, rng: np.random.Generator) -> Call:
    """Return a call with another number in one place."""
    copy = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
    found = [changeable(name, *each) for each in zip(signature(plain(name)), given, strict=True)]
    choice = [index for index, places in enumerate(found) if places.size]
    if not choice:
        return tuple(copy)
    index = rng.choice(choice)
    value = rng.choice(ODD) if rng.random() < 0.7 else rng.normal() * 10.0 ** rng.integers(-6, 7)
    if isinstance(copy[index], float):
        copy[index] = float(value)
    else:
        copy[index].flat[rng.choice(found[index])] = value
    return tuple(copy)


def in_child(name: str, given: Call, modules: dict[str, ModuleType]) -> str:
    """Return which module differs from the first on a call, 'late', 'ended' by a signal or a sanitizer, or ''."""
    child = os.fork()
    if not child:
        code = RAISED
        try:
            signal.alarm(CHILD_LIMIT)
            labels = list(modules)
            expected = outcome(getattr(modules[labels[0]], name), given)
            wrong = [differences(expected, outcome(getattr(modules[label], name), given)) for label in labels[1:]]
            code = next((number for number, found in enumerate(wrong, 1) if found), 0)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGALRM:
        return 'late'
    return list(modules)[code] if 0 < code < len(modules) else 'ended' if code else ''


def compared(
    name: str, calls: Iterable[tuple[Call, str]], modules: dict[str, ModuleType], limit: float
) -> Counter[str]:
    """Return how many calls there were of which kind, and by module how many differ. limit: [s] of each."""
    counts: Counter[str] = Counter()
    for given, kind in calls:
        counts[kind] += 1
        expected = None
        if kind != 'lanes':
            try:
                expected = in_time(partial(outcome, plain(name), given), limit)
                counts['plain'] += 1
            except IndexError:
                counts['raises'] += 1
                continue  # C reads what is not there
            except (TooLongError, ValueError, OverflowError, ZeroDivisionError):
                pass  # the first: C may not end either
        if expected is None:
            counts['child'] += 1
            wrong = {in_child(name, given, modules)} - {''}
        else:
            got = {label: outcome(getattr(module, name), given) for label, module in modules.items()}
            wrong = {label for label, results in got.items() if differences(expected, results)}
        counts.update(wrong)
        counts['compared'] += not wrong & {'late', 'ended'}
        if wrong:
            file = FAILED / f'{name}-{counts.total()}.pickle'
            FAILED.mkdir(parents=True, exist_ok=True)
            file.write_bytes(pickle.dumps(given))
            print(f'{name}: {", ".join(wrong)}: the arguments are in {file}', flush=True)
    return counts


def main() -> int:
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(prog='python -m campaigns.kernels', description=__doc__)
    parser.add_argument('names', nargs='*', metavar='kernel', help='default all')
    parser.add_argument('--sanitize', action='store_true', help='compare with a module that sanitizers watch')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--real', type=int, default=3, help='calls of each kernel with the same sizes')
    parser.add_argument('--odd', type=int, default=4, help='changed copies of each of these')
    parser.add_argument('--limit', type=float, default=2.0, help='seconds for a call in plain Python')
    given = parser.parse_args()
    if given.sanitize and not shutil.which('gcc'):
        parser.error('--sanitize needs gcc')
    if given.sanitize and 'libasan' not in os.environ.get('LD_PRELOAD', ''):
        # The library of AddressSanitizer must be the first that is loaded. Python itself leaks by design.
        library = subprocess.run(['gcc', '-print-file-name=libasan.so'], capture_output=True, text=True, check=True)
        os.environ |= {'LD_PRELOAD': library.stdout.strip(), 'ASAN_OPTIONS': f'detect_leaks=0:exitcode={STOPPED}'}
        os.execv(sys.executable, [sys.executable, '-m', 'campaigns.kernels', *sys.argv[1:]])
    state = kernels.prepare(wait=True)
    if not kernels.ready():
        print(state)
        return 1
    found = native.find()
    assert found is not None
    modules = {'cc': native.load(found)}
    with tempfile.TemporaryDirectory() as folder:
        if given.sanitize:
            path = Path(folder, 'sanitized.so')
            build.compile_module(build.source(checked=True), path, ('gcc',), SANITIZERS.split())
            modules['sanitized'] = native.load_module(native.MODULE, path)
        if find_spec('ziglang'):
            path = Path(folder, 'zig.so')
            build.compile_module(build.source(), path, (sys.executable, '-m', 'ziglang', 'cc'))
            modules['zig'] = native.load_module(native.MODULE, path)
        calls, rng, total, untried = (
            recorded(given.real),
            np.random.default_rng(given.seed),
            Counter[str](),
            list[str](),
        )
        columns = 'real', 'odd', 'lanes', 'plain', 'raises', 'child', 'late', 'ended', 'compared', *modules
        print(f'{"kernel":24}', *(f'{column:>9}' for column in columns))
        odd = range(given.odd)
        for name in given.names or sorted(kernels.KERNELS):
            rows = calls.get(name, [])
            tried = [*((row, 'real') for row in rows), *((spoilt(name, row, rng), 'odd') for row in rows for _ in odd)]
            if name == 'nearest_in_lanes':
                tried += [((LANES, *row[1:]), 'lanes') for row, _ in tried]
            counts = compared(name, tried, modules, given.limit)
            total += counts
            untried += [] if counts['compared'] else [name]
            print(f'{name:24}', *(f'{counts[column]:9}' for column in columns), flush=True)
    print(f'{"all":24}', *(f'{total[column]:9}' for column in columns))
    if untried:
        print(f'no call was compared: {", ".join(untried)}')
    return int(bool(untried) or any(total[label] for label in ('ended', *modules)))


if __name__ == '__main__':
    sys.exit(main())
