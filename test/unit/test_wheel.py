# SPDX-License-Identifier: Apache-2.0
"""The wheel that is released works in an environment where nothing else is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, folder: Path) -> str:
    """Run a program in a folder, and return what it printed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns(
        '.*', 'build', 'install', 'log', '__pycache__', 'test', 'benchmarks', 'docs'
    )
    source = shutil.copytree(ROOT, tmp_path / 'source', ignore=ignored)
    venv.create(tmp_path / 'empty', with_pip=True)
    programs = tmp_path / 'empty' / 'bin'
    pip = programs / 'python', '-m', 'pip'
    run(*pip, 'wheel', '-q', '--no-deps', source, folder=tmp_path)
    (wheel,) = tmp_path.glob('ik_node-*-py3-none-any.whl')
    shutil.rmtree(source)
    run(*pip, 'install', '-q', wheel, folder=tmp_path)
    installed = run(programs / 'python', '-c', 'import ik_node; print(ik_node.__file__)', folder=tmp_path)
    assert installed.startswith(str(tmp_path))
    arm = tmp_path / 'empty' / 'share' / 'ik_node' / 'urdf' / 'seed_arm.urdf.xacro'
    readme = (ROOT / 'README.md').read_text(encoding='utf-8')
    (sample,) = re.findall(r'^```python\n(.*?)^```', readme, re.MULTILINE | re.DOTALL)
    sample = sample.replace('urdf/seed_arm.urdf.xacro', str(arm))
    assert 'Status.SOLVED' in run(programs / 'python', '-c', sample, folder=tmp_path)
    goal = ('0.4', '0.1', '0.2', '--direction', '0', '0', '-1')
    assert 'solved' in run(programs / 'ik_solve', arm, *goal, folder=tmp_path).lower()
