# SPDX-License-Identifier: Apache-2.0
"""Copies of the package with a cache of kernels of their own, and programs that use them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Two kernels that compile fast: the first calls kernels of other modules, the second none.
CALLER, ALONE = 'serve_lateral', 'largest_move'
# Prints the kernels that calls of the solver compile.
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


def copied(folder: Path) -> Path:
    """A folder with a copy of the package, in a folder."""
    folder = folder / 'copy'
    shutil.copytree(ROOT / 'ik_node', folder / 'ik_node', ignore=shutil.ignore_patterns('__pycache__'))
    return folder


def environment(folder: Path, cache: Path | None) -> dict[str, str]:
    """The environment of a process that uses the package in folder."""
    there = {key: value for key, value in os.environ.items() if key != 'NUMBA_CACHE_DIR'}
    there['PYTHONPATH'] = str(folder)
    return there if cache is None else {**there, 'NUMBA_CACHE_DIR': str(cache)}


def build(folder: Path, cache: Path, *kernels: str) -> str:
    """Return what the program prints that compiles these kernels of the package in folder."""
    command = [sys.executable, '-m', 'ik_node.kernels.runtime.build', *kernels]
    return subprocess.run(
        command, cwd='/', env=environment(folder, cache), capture_output=True, text=True, check=True
    ).stdout


def run(program: str, folder: Path, cache: Path | None, *before: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program with the package in folder; before: a command that runs it."""
    return subprocess.run(
        [*before, sys.executable, '-c', program],
        cwd='/',
        env=environment(folder, cache),
        capture_output=True,
        text=True,
        check=True,
    )
