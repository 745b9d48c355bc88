# SPDX-License-Identifier: Apache-2.0
"""Threads are as many as the cores that the process may use."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ik_node import Arm, IkSolver
from ik_node.solver import cores

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not hasattr(os, 'sched_setaffinity'), reason='affinity is known on Linux alone')
def test_the_affinity_of_the_process_counts() -> None:
    program = (
        'import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); '
        'from ik_node.solver.cores import usable_cores; print(usable_cores())'
    )
    done = subprocess.run(
        [sys.executable, '-c', program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == '1\n'


@pytest.mark.parametrize(('text', 'most'), [('max 100000', None), ('150000 100000', 2), ('5000 100000', 1)])
def test_the_quota_of_the_container_counts(
    text: str, most: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = cores.usable_cores()
    (tmp_path / 'cpu.max').write_text(text)
    monkeypatch.setattr(cores, 'QUOTA', tmp_path / 'cpu.max')
    if most is None:
        assert cores.usable_cores() >= everything
    else:
        assert cores.usable_cores() == min(most, len(os.sched_getaffinity(0)))


def test_a_batch_starts_no_more_threads_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('os.cpu_count', lambda: 64)
    arm = Arm.from_file(ROOT / 'urdf' / 'seed_arm.urdf.xacro')
    solver, seen = IkSolver(arm), set()
    before = threading.active_count()
    solve = type(solver._parts.search).search_many

    def watched(self, *arguments):
        seen.add(threading.active_count() - before)
        return solve(self, *arguments)

    monkeypatch.setattr(type(solver._parts.search), 'search_many', watched)
    places, axes = map(np.array, zip(*map(arm.fk, arm.sample(np.random.default_rng(0), 4096)), strict=True))
    solver.solve_batch(places, axes)
    assert max(seen) <= cores.usable_cores()
