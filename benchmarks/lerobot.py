# SPDX-License-Identifier: Apache-2.0
"""LeRobot's own processor steps with ik_node's RobotKinematics and with LeRobot's, which uses placo."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.arms import ROOT, Task
from benchmarks.contest import MissingError, python_for
from benchmarks.tables import heading

PATHS = 30
ARM = 'so101'


def run(tasks: list[Task], scale: float) -> None:
    """Print steps, errors and times along hand paths."""
    paths = max(1, round(PATHS * scale))
    heading(
        'LeRobot',
        f"""{paths} hand paths of 20 s for an SO-101 at 50 frames per second: wandering, turns, tremor,
        noise of the tracker, and three drop-outs of up to 0.6 s each. LeRobot's InverseKinematicsEEToJoints
        turns each pose into joints, and its ForwardKinematicsJointsToEEAction these into a pose again; the
        robot is where the last frame sent it. Hand: metres of the tool per metre of the hand. Out: share of
        frames whose position is out of reach. Step: largest motion of a joint from one frame to the next
        [deg]; no gap: the same without frames after a drop-out. Turns: changes of sign of a joint's motion
        of more than 0.5 degrees per frame, per minute and joint. Error: of the position where it is in reach
        [mm], median, 99th percentile and largest. Beyond: largest distance of a joint from its limits [deg].
        Time: of the inverse kinematics per frame, median [us].""",
    )
    task = next((task for task in tasks if task.name == ARM), None)
    if task is None:
        print(f'{ARM} of ../shared/arms is absent.')
        return
    try:
        site = next(Path(python_for('lerobot')).parents[1].glob('lib/python*/site-packages'))
    except MissingError as reason:
        print(f'LeRobot: {reason}')
        return
    command = [sys.executable, '-m', 'benchmarks.lerobot_steps', str(site), str(paths)]
    threads = {'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'}
    subprocess.run(command, input=task.xml, text=True, cwd=ROOT, env={**os.environ, **threads}, check=False)
