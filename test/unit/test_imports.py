# SPDX-License-Identifier: Apache-2.0
"""Who may import whom: the contracts in pyproject.toml hold, and would notice a breach."""

from __future__ import annotations

import shutil
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ('module', 'line'),
    [
        ('solver/goal.py', 'import rclpy'),
        ('model/arm.py', 'from sensor_msgs.msg import JointState'),
        ('solver/solver.py', 'import viser'),
        ('model/urdf/reader.py', 'from ik_node.ros import qos'),
        ('ros/qos.py', 'from ik_node import viewer'),
    ],
)
def test_a_breach_is_noticed(tmp_path: Path, module: str, line: str) -> None:
    for package in ('ik_node', 'benchmarks'):
        ignored = shutil.ignore_patterns('__pycache__')
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    shutil.copy(ROOT / 'pyproject.toml', tmp_path)
    with (tmp_path / 'ik_node' / module).open('a') as file:
        file.write(f'\n{line}\n')
    result = lint(tmp_path)
    assert result.returncode == 1
    assert f'ik_node.{module[:-3].replace("/", ".")} ->' in result.stdout, result.stdout


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
