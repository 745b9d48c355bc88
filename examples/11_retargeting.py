# SPDX-License-Identifier: Apache-2.0
"""Replace the tool poses of a recorded table by joint positions of another arm."""

import csv
import json
import math
import tempfile
from pathlib import Path

from ik_node.tools.retarget import main

URDF = Path(__file__).parents[1] / 'urdf'
FRAMES, FPS = 60, 30

if __name__ == '__main__':  # the workers of ik_retarget import this file
    with tempfile.TemporaryDirectory() as name:
        poses, joints, report = (Path(name, file) for file in ('poses.csv', 'joints.csv', 'report.json'))
        # Two demonstrations on a circle, one frame a row; that of episode 1 leaves the reach of the arm.
        with poses.open('w', newline='') as file:
            rows = csv.writer(file)
            rows.writerow(['take', 'x', 'y', 'z', 'dx', 'dy', 'dz'])
            for take, radius in ((0, 0.05), (1, 0.3)):
                for k in range(FRAMES):
                    angle = math.tau * k / FRAMES
                    x, y = 0.4 + radius * math.cos(angle), radius * math.sin(angle)
                    rows.writerow([take, x, y, 0.2, 0, 0, -1])
        arm = str(URDF / 'seed_arm.urdf.xacro')
        options = ['--episode', 'take', '--fps', str(FPS), '--report', str(report), '--workers', '1']
        code = main([arm, str(poses), str(joints), *options])  # what ik_retarget does
        print(f'exit code {code}')
        for episode in json.loads(report.read_text())['episodes']:
            print(f'episode {episode["episode"]}: {episode["flagged"]} of {episode["frames"]} frames')
        with joints.open(newline='') as file:
            first = next(csv.DictReader(file))
        print(*(f'{name}={float(value):.4f}' for name, value in first.items() if name.startswith('joint')))
