# SPDX-License-Identifier: Apache-2.0
"""Move an arm and its gripper by calls that return how they ended.

It starts an ik_node of its own in the namespace /example, which moves only a display, and ends it.
"""

import subprocess
import sys
from pathlib import Path

from ik_node.client import ArmClient

ARM = Path(__file__).parents[1] / 'urdf' / 'so101_like.urdf.xacro'
START = [sys.executable, '-m', 'ik_node.start', 'ik_node', '--ros-args', '-r', '__ns:=/example']
PATIENT = ['-p', 'goal_timeout:=30.0']  # also on a busy computer; an arm that moves has 1 s

ik_node = subprocess.Popen([*START, *PATIENT, '-p', f'urdf_file:={ARM}'])
try:
    with ArmClient(namespace='example') as arm:
        print(arm.gripper(1.0))
        above = arm.move((0.2, 0.05, 0.07), (0, 0, -1))
        print(f'{above}, {1e3 * above.position_error:.2f} mm off')
        print(arm.move((0.2, 0.05, 0.03), (0, 0, -1), line=True, speed=0.5))
        print(arm.gripper(0.0))
        far = arm.move((2.0, 0.0, 0.1), (0, 0, -1))
        if not far:
            print(far.message, '| nearest:', *far.nearest[0].round(3))
finally:
    ik_node.terminate()
    ik_node.wait()
