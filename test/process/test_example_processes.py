# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ that start ik_node themselves: they run to their end, and end it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from domains import new_domain
from processes import ROOT, TIMEOUT

from ik_node import Arm


def run(name: str) -> str:
    """Run an example in a domain of its own, and return what it printed."""
    done = subprocess.run(
        [sys.executable, str(ROOT / 'examples' / f'{name}.py')],
        env={**os.environ, 'ROS_DOMAIN_ID': str(new_domain())},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3 * TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert 'Traceback' not in done.stdout
    return done.stdout


@pytest.fixture(scope='module')
def arm() -> Arm:
    return Arm.from_file(ROOT / 'urdf' / 'seed_arm.urdf.xacro')


def test_moves_and_the_gripper_are_calls() -> None:
    lines = [line for line in run('08_node').splitlines() if not line.startswith('[')]
    assert lines[0] == lines[3] == 'the gripper has been commanded, but its position is not measured'
    assert re.fullmatch(r'arrived at the goal, 0\.\d\d mm off', lines[1])
    assert lines[2] == 'arrived at the end of the path'
    assert re.match(r'arrived as near to the goal as possible; .* beyond the workspace \| nearest: 0\.4', lines[4])


def test_twists_move_the_tool_and_their_end_stops_it() -> None:
    said = run('09_teleoperation')
    points = np.array([line.split() for line in said.splitlines() if re.fullmatch(r'[-\d. ]+', line)], float)
    assert points.shape == (4, 3)
    assert points[0] == pytest.approx([0.4, 0.1, 0.2], abs=1e-3)
    assert points[1][1] < points[0][1] - 0.01  # how far depends on how busy the computer is
    assert points[3].tolist() == points[2].tolist()
    assert points[:, [0, 2]] == pytest.approx(np.tile([0.4, 0.2], (4, 1)), abs=1e-3)


def test_a_taught_program_is_rejected_then_run() -> None:
    said = run('10_taught_program')
    assert re.findall(r'exit code (\d)', said) == ['1', '0']
    rejected, ran = said.split('exit code 1')
    assert re.search(r'"place": .*out of reach', rejected)
    assert re.findall(r'^"(\w+)"$', ran, re.MULTILINE) == ['above', 'pick', 'place']
    assert 'position: [0.4, -0.1, 0.3]' in ran
