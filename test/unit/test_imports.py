# SPDX-License-Identifier: Apache-2.0
"""Who may import whom: the contracts in pyproject.toml hold, and would notice a breach."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LINT = 'import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))'


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of pyproject.toml against the ik_node package in folder."""
    pytest.importorskip('importlinter')
    return subprocess.run(
        [sys.executable, '-c', LINT], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_contracts_hold() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_reading_an_arm_loads_nothing_that_it_has_no_use_for() -> None:
    """Meshes need trimesh and .xacro files need xacro: an Arm of a .urdf needs neither."""
    program = (
        "import sys; from ik_node import Arm; from hostile import GOOD; open(sys.argv[1], 'w').write(GOOD);"
        'Arm.from_file(sys.argv[1]); print(*({"yourdfpy", "trimesh", "networkx", "scipy", "xacro", "yaml"}'
        ' & set(sys.modules)))'
    )
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            [sys.executable, '-c', program, f'{folder}/arm.urdf'],
            cwd=ROOT / 'test',
            capture_output=True,
            text=True,
            check=True,
        )
    assert result.stdout.strip() == ''


def test_plain_python_use_loads_neither_ros_nor_the_viewer() -> None:
    program = "import sys, ik_node; print({'rclpy', 'viser', 'sensor_msgs'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, '-c', program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == 'set()'
