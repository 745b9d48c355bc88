# SPDX-License-Identifier: Apache-2.0
"""A new output is one file and one row: the proof, on a copy of the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from domains import new_domain
from small_arm import arm_urdf

ROOT = Path(__file__).resolve().parents[2]
TOY = '''"""toy: writes every sample into a file."""

from ik_node.control.outputs.outputs import Output
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.ros.outputs.context import OutputContext


class Toy(Output):
    """Writes the names and positions of each sample."""

    def __init__(self, context: OutputContext) -> None:
        self._file = open('toy.txt', 'w')

    def take(self, sample: Setpoint) -> None:
        """Write a sample."""
        print(*sample.names, *sample.positions.tolist(), file=self._file, flush=True)
'''
ROW = "    'joint_trajectory': ('joint_trajectory', 'JointTrajectoryTopic'),"
PROGRAM = """
import sys, time
import rclpy
from rclpy.parameter import Parameter
from ik_node.ros.node.node import IkNode

rclpy.init(domain_id=int(sys.argv[1]))
given = {
    'robot_description': sys.stdin.read(),
    'tip_link': 'tool0',
    'output': 'toy',
    'wait_for_measured': 'false',
}
node = IkNode(parameter_overrides=[Parameter(name, value=value) for name, value in given.items()])
end = time.monotonic() + 60
while time.monotonic() < end and open('toy.txt').read().count('\\n') < 3:
    time.sleep(0.05)
print('joint_states', node.count_publishers('joint_states'))
node.close()
"""


def test_a_new_output_is_one_file_and_one_row(tmp_path: Path) -> None:
    package = tmp_path / 'ik_node'
    shutil.copytree(ROOT / 'ik_node', package, ignore=shutil.ignore_patterns('__pycache__'))
    (package / 'ros' / 'outputs' / 'toy.py').write_text(TOY)
    registry = package / 'ros' / 'outputs' / '__init__.py'
    text = registry.read_text()
    assert ROW in text
    registry.write_text(text.replace(ROW, f"{ROW}\n    'toy': ('toy', 'Toy'),"))
    result = subprocess.run(
        [sys.executable, '-c', PROGRAM, str(new_domain())],
        input=arm_urdf(),
        cwd=tmp_path,
        env={**os.environ, 'NUMBA_DISABLE_JIT': '1'},  # plain kernels will do
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == 'joint_states 0\n'
    line = (tmp_path / 'toy.txt').read_text().splitlines()[0].split()
    assert line[:2] == ['yaw', 'shoulder']
    assert len(line) == 14
