# SPDX-License-Identifier: Apache-2.0
"""make compare on one arm with few goals: it writes what the docs show, for every method."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ik_node.solver.methods.registry import METHODS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    """Where a small comparison was written."""
    out = tmp_path_factory.mktemp('docs')
    command = [sys.executable, '-m', 'benchmarks.compare', '--arms', 'xarm5_like', '--scale', '0.05']
    done = subprocess.run(
        [*command, '--out', out], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return out


def test_every_method_has_its_rows_and_the_default_solves_all(folder: Path):
    lines = (folder / 'methods.md').read_text().splitlines()
    for method in ('default', *METHODS):
        rows = [line for line in lines if line.startswith(f'| `{method}` |')]
        # success and time; singular poses, limits, out of reach; one for each switch and one with all on
        switches = METHODS[method].switches if method in METHODS else ()
        assert len(rows) == 2 + (len(switches) + 1 if switches else 0)
        assert 'nan' not in ''.join(rows)
    assert any(line.startswith('| `default` | 100.0 (100) | 100.0 (100) |') for line in lines)
    assert any(line.startswith('| xarm5_like | 4 | 100 / 100, ') for line in lines)


def test_the_plots_that_it_shows_are_there(folder: Path):
    text = (folder / 'methods.md').read_text()
    for name in ('methods_success.png', 'methods_time.png'):
        assert f'({name})' in text
        assert (folder / name).read_bytes().startswith(b'\x89PNG')
        assert (folder / name).stat().st_size < 100_000
