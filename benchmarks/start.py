# SPDX-License-Identifier: Apache-2.0
"""The first seconds: imports, the first call of each kind, and the time until compiled kernels serve.

Beside another commit if git has it: $BASE, default the last one before the kernels were split.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from oracles.arms import ROOT, Task

from benchmarks.commits import BASE, base_folder
from benchmarks.tables import Table, heading

PROGRAM = Path(__file__).with_name('start_program.py')
HELP = 'import sys; from ik_node.start import ik_solve; sys.argv[1:] = ["--help"]; ik_solve()'
PROGRAMS = {
    'import ik_node': ['-c', 'import ik_node'],
    'from ik_node import Arm': ['-c', 'from ik_node import Arm'],
    'ik_solve --help': ['-c', HELP],
}
ARM = Path('urdf') / 'seed_arm.urdf.xacro'
REPEATS = 3  # of what is warm; the least counts


def run(tasks: list[Task], scale: float) -> None:
    """Print the figures of this package and of the other commit, cold and warm."""
    del tasks, scale  # one arm is enough here, and a start has no size
    heading(
        'Start',
        f"""Seconds of processor time of processes of their own on the seed arm, wall time in brackets. Cold:
        the cache of compiled kernels is empty. Warm: the least of {REPEATS}. Where compiling goes on in
        another process, only its own row counts it. Beside commit {BASE}.""",
    )
    base = base_folder()
    packages = {'now': ROOT} if base is None else {'now': ROOT, BASE: base}
    with tempfile.TemporaryDirectory() as folder:
        results = {name: _measure(path, Path(folder, f'cache-{name}')) for name, path in packages.items()}
    table = Table('what'.ljust(34), *(name.rjust(18) for name in packages))
    for row in results['now']:
        table.row(row, *(results[name].get(row, '-') for name in packages))


def _measure(package: Path, cache: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, arguments in PROGRAMS.items():
        found[name] = min((_process(package, cache, arguments)[0] for _ in range(REPEATS)), key=_first)
    for state in ('cold', 'warm'):
        for task in ('sample', 'calls', 'take_over'):
            if state == 'cold':
                _wait_for_builders(cache)
                shutil.rmtree(cache, ignore_errors=True)
            arguments = [str(PROGRAM), task, str(ROOT / ARM)]
            runs = [_process(package, cache, arguments) for _ in range(REPEATS if state == 'warm' else 1)]
            time_used, values = min(runs, key=lambda one: _first(one[0]))
            if task == 'sample':
                found[f'sample of the README, {state}'] = time_used
            for what, value in values.items():
                if what != 'end':
                    found[f'{what}, {state}'] = f'{value:.3f}'
    return found


def _first(text: str) -> float:
    return float(text.split()[0])


def _process(package: Path, cache: Path, arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """Run Python with a package: processor and wall time as text, and what it printed if that was JSON."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, 'PYTHONPATH': str(package), 'IK_NODE_KERNELS': str(cache)},
        cwd=package,
        capture_output=True,
        text=True,
        check=True,
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    printed = done.stdout.strip().splitlines()
    values = json.loads(printed[-1]) if printed and printed[-1].startswith('{') else {}
    return f'{used:.2f} ({wall:.2f})', values


def _wait_for_builders(cache: Path) -> None:
    """Wait until nobody compiles for this cache any more."""
    import fcntl

    for lock in cache.glob('compiling-*.lock'):
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
