# SPDX-License-Identifier: Apache-2.0
"""Run LeRobot's processor step with placo over episodes, in a process of its own: see retarget.py."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.lerobot_steps import MOTORS, START, add_lerobot, bare_file

FIRST_CALLS = 100  # for the first frame of an episode: a call is one step of placo


def main() -> None:
    """Write joints (episodes, frames, 5) [rad]; standard input: the URDF.

    Arguments: the packages of LeRobot, the tip link, and the files of poses and of joints (.npy).
    """
    where, tip, poses, joints = sys.argv[1:]
    add_lerobot(where)
    from lerobot.model.kinematics import RobotKinematics
    from lerobot.processor.converters import create_transition
    from lerobot.processor.core import TransitionKey
    from lerobot.robots.so_follower.robot_kinematic_processor import InverseKinematicsEEToJoints

    with bare_file(sys.stdin.read()) as file:
        placo = RobotKinematics(str(file), target_frame_name=tip, joint_names=MOTORS)
    names = [f'{name}.pos' for name in MOTORS]
    found = []
    for episode in np.load(Path(poses)).astype(float):
        inverse = InverseKinematicsEEToJoints(kinematics=placo, motor_names=MOTORS)
        now, rows = dict(zip(names, START.tolist(), strict=True)), []
        for frame in [*[episode[0]] * FIRST_CALLS, *episode[1:]]:
            action = dict(
                zip(('ee.x', 'ee.y', 'ee.z', 'ee.wx', 'ee.wy', 'ee.wz'), frame.tolist()[:6], strict=True)
            )
            asked = create_transition(action={**action, 'ee.gripper_pos': START[-1]}, observation=dict(now))
            now = dict(inverse(asked)[TransitionKey.ACTION])
            rows.append([now[name] for name in names[:-1]])
        found.append(rows[FIRST_CALLS - 1 :])
    np.save(Path(joints), np.radians(found))


if __name__ == '__main__':
    main()
