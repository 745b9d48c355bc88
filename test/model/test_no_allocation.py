# SPDX-License-Identifier: Apache-2.0
"""No solve allocates per iteration: numba counts the arrays that compiled code makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow
def test_restarts_and_iterations_allocate_nothing():
    """Goals that take many restarts, or are never met, cost as many allocations as one that takes none."""
    joints = ''.join(
        JOINT.format(parent=parent, child=child, xyz=xyz, rpy=rpy) for parent, child, xyz, rpy in HINGES
    )
    done = subprocess.run(
        [sys.executable, '-c', COUNT],
        input=ARM.format(joints=joints),
        env={**os.environ, 'PYTHONPATH': str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    solved, unsolved = json.loads(done.stdout)  # (allocations, restarts)
    assert max(restarts for _, restarts in solved) >= 3, 'too easy to show anything'
    assert min(allocations for allocations, _ in solved) > 0, 'numba counted nothing'
    assert len({allocations for allocations, restarts in solved if restarts < 64}) == 1
    assert [restarts for _, restarts in unsolved] == [0, 7, 63]
    assert len({allocations for allocations, _ in unsolved}) == 1, unsolved
