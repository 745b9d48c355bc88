# SPDX-License-Identifier: Apache-2.0
"""The kernels serve plain until they are compiled: no warnings, and the same answers, bit for bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ANSWERS = """
import json, sys, warnings
import numpy as np
from ik_node import Arm, Goal, IkSolver, kernels

warnings.simplefilter('error')
name, wait = sys.argv[1:]
arm = Arm.from_file(f'urdf/{name}.urdf.xacro')
solver = IkSolver(arm, compile='wait' if wait == 'wait' else 'background', time_budget=np.inf)
answers = {}

def add(what, *values):
    answers[what] = [
        value.tobytes().hex() if isinstance(value, np.ndarray)
        else float(value).hex() if isinstance(value, float) else str(value) for value in values
    ]

def add_solution(what, found):
    add(what, found.status, found.q, found.position_error, found.direction_error, found.reason)

rng = np.random.default_rng(7)
joints = arm.sample(rng, 40)
places, axes = map(np.array, zip(*map(arm.fk, joints)))
for k, q in enumerate(joints[:30]):
    add_solution(f'reachable {k}', solver.solve(Goal(places[k], axes[k]), q + 0.3))
    add_solution(f'place alone {k}', solver.solve(Goal(places[k]), q + 0.3))
goals = {
    'lateral': Goal(places[0], axes[0], arm.frames(joints[0])[-1]),
    'too far': Goal(1.7 * places[1], axes[1]),
    'odd direction': Goal(places[2], axes[3]),
    'on the base axis': Goal((0, 0, places[4][2]), (0, 0, 1)),
    'at the base': Goal((0, 0, 0), (0, 0, 1)),
}
for what, goal in goals.items():
    add_solution(what, solver.solve(goal, joints[5]))
for k in range(3):
    add_solution(f'track {k}', solver.track(Goal(*arm.fk(joints[k] + 0.02)), joints[k]))
found = solver.solve_batch(places, axes)
add('batch', found.q, found.position_error, found.direction_error)
path = solver.solve_path(*map(np.array, zip(*map(arm.fk, np.linspace(joints[0], joints[0] + 0.1, 4)))))
add('path', path.q, path.largest_move, path.breaks)
if solver.closed_form is not None:  # elsewhere plain Python takes minutes
    for k in range(3):
        add(f'all {k}', *[one.q for one in solver.solve_all(Goal(places[k], axes[k]), time_budget=np.inf)])
print(json.dumps([kernels.state().stage.value, answers]))
"""


def answers(arm: str, wait: str, **environment: str) -> tuple[str, dict[str, list[str]]]:
    """(stage of the kernels, bits of all answers) of a process of its own."""
    done = subprocess.run(
        [sys.executable, '-c', ANSWERS, arm, wait],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stage, bits = json.loads(done.stdout)
    return stage, bits


@pytest.mark.slow
@pytest.mark.parametrize('arm', ['seed_arm'])
def test_plain_and_compiled_kernels_give_the_same_bits(arm: str) -> None:
    stage, plain = answers(arm, '', NUMBA_DISABLE_JIT='1')
    assert stage == 'failed'
    stage, compiled = answers(arm, 'wait')
    assert stage == 'ready'
    assert plain.keys() == compiled.keys()
    assert [what for what in plain if plain[what] != compiled[what]] == []


def test_compile_is_checked_and_waiting_in_vain_is_an_error() -> None:
    program = """
from ik_node import Arm, IkSolver, InputError
from ik_node.errors import KernelError
arm = Arm.from_file('urdf/seed_arm.urdf.xacro')
for given, error in (('now', InputError), ('wait', KernelError)):
    try:
        IkSolver(arm, compile=given)
    except error as found:
        print(found)
"""
    done = subprocess.run(
        [sys.executable, '-c', program],
        cwd=ROOT,
        env={**os.environ, 'NUMBA_DISABLE_JIT': '1'},
        capture_output=True,
        text=True,
        check=True,
    )
    rejected, in_vain = done.stdout.splitlines()
    assert rejected == "compile must be one of background, wait, got 'now'"
    assert in_vain.endswith('NUMBA_DISABLE_JIT is set')
