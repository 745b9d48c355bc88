# SPDX-License-Identifier: Apache-2.0
"""A cold start: everything is compiled for one set of types, before it is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from kernel_copies import CALLS

ROOT = Path(__file__).resolve().parents[1]

BUILD = """
import collections, json
from numba.core import event
from ik_node.kernels.runtime import build, takeover as loading

compiled = collections.Counter()

class Listener(event.Listener):
    def on_start(self, given):
        function = given.data['dispatcher'].py_func
        if function.__module__.startswith(loading.NATIVE):
            compiled[f'{function.__module__}.{function.__name__}'] += 1
    def on_end(self, given): pass

event.register('numba:compile', Listener())
build.build([*build.SERVING, 'eliminated'])
print(json.dumps(compiled))
"""


def run(program: str, cache: Path) -> str:
    """What a Python program prints that keeps compiled kernels in cache."""
    done = subprocess.run(
        [sys.executable, '-c', program],
        cwd=ROOT,
        env={**os.environ, 'NUMBA_CACHE_DIR': str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_a_cold_start_compiles_every_kernel_once_and_calls_compile_none(tmp_path: Path) -> None:
    compiled = json.loads(run(BUILD, tmp_path))
    assert compiled
    assert {name: times for name, times in compiled.items() if times > 1} == {}
    assert [name for name in compiled if name.split('.')[-2] in ('dls', 'transpose', 'ccd', 'fabrik')] == []
    assert run(CALLS, tmp_path) == '[]'
