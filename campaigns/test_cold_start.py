# SPDX-License-Identifier: Apache-2.0
"""A cold start: everything is compiled for one set of types, before it is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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
CALLS = """
import numpy as np
from numba.core import event
from ik_node import Arm, Goal, IkSolver, kernels

compiled = []

class Listener(event.Listener):
    def on_start(self, given): compiled.append(given.data['dispatcher'].py_func.__name__)
    def on_end(self, given): pass

event.register('numba:compile', Listener())
for name in ('seed_arm', 'so101_like', 'prismatic_arm'):
    arm = Arm.from_file(f'urdf/{name}.urdf.xacro')
    solver = IkSolver(arm)
    assert kernels.state().stage is kernels.Stage.READY
    joints = arm.sample(np.random.default_rng(1), 20)
    places, axes = map(np.array, zip(*map(arm.fk, joints)))
    goal = Goal(places[0], axes[0], arm.frames(joints[0])[-1])
    solver.solve(goal)
    solver.solve(Goal(places[0]))
    solver.solve(Goal(2.0 * places[1], axes[1]))
    solver.track(goal, joints[0] + 0.01)
    solver.track(goal, joints[1])
    solver.solve_batch(places, axes)
    solver.solve_all(goal)
    solver.solve_path(*map(np.array, zip(*map(arm.fk, np.linspace(joints[0], joints[1], 5)))))
    IkSolver(arm, direction_weight=0.1).solve(Goal(places[2], axes[3]))
print(compiled)
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
