# SPDX-License-Identifier: Apache-2.0
"""Fill the cache of kernels, so that a first start finds them: python -m ik_node.kernels.runtime.build."""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import os
import signal
import sys
import time
from collections.abc import Sequence

from ik_node.kernels.runtime import cache, takeover
from ik_node.kernels.runtime.numba_import import load_numba
from ik_node.kernels.runtime.signatures import KERNELS, SERVING

PR_SET_PDEATHSIG = 1  # of prctl(2): the signal when the thread that started this process ends


def main(given: Sequence[str] | None = None) -> int:
    """Compile what is not compiled yet, one line for each kernel; return 0."""
    parser = argparse.ArgumentParser(prog='python -m ik_node.kernels.runtime.build', description=__doc__)
    parser.add_argument('kernels', nargs='*', help='default: those that the node needs')
    parser.add_argument('--all', action='store_true', help='also those that are compiled when asked for')
    parser.add_argument('--locked-by', type=int, nargs=2, help=argparse.SUPPRESS)  # an inherited lock, parent
    arguments = parser.parse_args(given)
    unknown = [name for name in arguments.kernels if name not in KERNELS]
    if unknown:
        parser.error(f'there is no kernel {unknown[0]!r}; kernels: {", ".join(KERNELS)}')
    names = list(KERNELS) if arguments.all else arguments.kernels or list(SERVING)
    if reason := takeover.obstacle():
        print(f'no kernels compiled: {reason}')
        return 0
    start = time.perf_counter()
    if arguments.locked_by is None:
        with cache.lock_file().open('w') as file:
            _lock(file.fileno())
            count = build(names)
    else:  # in the background
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # what is compiled stays in the cache
        if os.getppid() != arguments.locked_by[1]:
            return 0  # it has ended already
        os.nice(10)  # at 19 it would starve on a busy machine
        count = build(names)
    seconds = time.perf_counter() - start
    print(f'{count} of {len(names)} kernels compiled in {seconds:.0f} s, in {cache.root()}')
    return 0


def build(names: Sequence[str]) -> int:
    """Compile those kernels that are not compiled yet; return how many."""
    missing = [name for name in names if not cache.is_there(name)]
    if missing:
        cache.clean()
        load_numba(lambda: True)
    for number, name in enumerate(missing, 1):
        start = time.perf_counter()
        takeover.native(name)
        cache.mark(name)
        seconds = time.perf_counter() - start
        print(f'{number:3} of {len(missing)}  {name:<22} {seconds:5.1f} s', flush=True)
    return len(missing)


def _lock(file: int) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print('another process compiles the kernels: waiting for it', flush=True)
        fcntl.flock(file, fcntl.LOCK_EX)


if __name__ == '__main__':
    sys.exit(main())
