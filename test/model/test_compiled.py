# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels: no solve allocates per iteration, and no call compiles anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_copies import CALLS

pytestmark = pytest.mark.slow

# Five skew hinges: no closed form, so every solve is a random-restart search.
ARM = """<robot name="skew"><link name="base_link"/>
<link name="a"/><link name="b"/><link name="c"/><link name="d"/><link name="tool0"/>
{joints}</robot>"""
JOINT = """<joint name="{child}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="0 0 1"/>
<limit lower="-2.5" upper="2.5" velocity="1" effort="1"/></joint>"""
HINGES = [
    ('base_link', 'a', '0 0 0.1', '0.1 0.2 0'),
    ('a', 'b', '0.05 0 0.1', '1.4 0.1 0.2'),
    ('b', 'c', '0.3 0.02 0', '0.3 0.4 0.1'),
    ('c', 'd', '0.25 0 0.05', '0.2 1.2 0.3'),
    ('d', 'tool0', '0.05 0.1 0.1', '1.1 0.4 0'),
]
COUNT = """
import json, sys
import numpy as np
from numba.core.runtime import _nrt_python, rtsys
from ik_node import Arm, Goal, IkSolver

arm = Arm.from_urdf(sys.stdin.read(), tool_point=(0.1, 0.05, 0.1), tool_axis=(0.6, 0.0, 0.8))

def allocated(solver, goal):
    before = rtsys.get_allocation_stats().alloc
    restarts = solver.solve(goal).restarts
    return rtsys.get_allocation_stats().alloc - before, restarts

_nrt_python.memsys_enable_stats()
solver = IkSolver(arm, compile='wait', closed_form=False)
goals = [Goal(*arm.fk(q)) for q in arm.sample(np.random.default_rng(0), 3000)]
solved = [allocated(solver, goal) for goal in goals]
inside = Goal((0.0, 0.0, 0.15), (0.0, 0.0, 1.0))
unsolved = [allocated(IkSolver(arm, restarts=restarts, closed_form=False), inside) for restarts in (0, 7, 63)]
print(json.dumps([solved, unsolved]))
"""


def said(program: str, given: str = '') -> str:
    """What a Python program prints last."""
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, 'PYTHONPATH': str(root)}
    command = [sys.executable, '-c', program]
    done = subprocess.run(
        command, input=given, cwd=root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_calls_compile_nothing():
    """All have the types for which kernels were compiled beforehand."""
    assert said(CALLS) == '[]'


def test_restarts_and_iterations_allocate_nothing():
    """Goals that take many restarts, or are never met, cost as many allocations as one that takes none."""
    joints = ''.join(
        JOINT.format(parent=parent, child=child, xyz=xyz, rpy=rpy) for parent, child, xyz, rpy in HINGES
    )
    solved, unsolved = json.loads(said(COUNT, ARM.format(joints=joints)))  # (allocations, restarts)
    assert max(restarts for _, restarts in solved) >= 3, 'too easy to show anything'
    assert min(allocations for allocations, _ in solved) > 0, 'numba counted nothing'
    assert len({allocations for allocations, restarts in solved if restarts < 64}) == 1
    assert [restarts for _, restarts in unsolved] == [0, 7, 63]
    assert len({allocations for allocations, _ in unsolved}) == 1, unsolved
