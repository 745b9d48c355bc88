# SPDX-License-Identifier: Apache-2.0
"""Read an arm of your own: python examples/06_your_own_arm.py my_arm.urdf [TIP_LINK]

Without arguments it reads an arm like the SO-101. A .xacro file is a program: open only those that you trust.
"""

import sys
from pathlib import Path

import numpy as np

from ik_node import Arm, Goal, IkError, IkSolver

URDF = Path(__file__).parents[1] / 'urdf'

file, tip = [*sys.argv[1:], *[''] * 2][:2]
try:
    arm = Arm.from_file(file or URDF / 'so101_like.urdf.xacro', tip or None)
except IkError as error:
    sys.exit(f'error: {error}')

print(arm.describe())
for name, lower, upper in zip(arm.joint_names, arm.lower, arm.upper, strict=True):
    print(f'  {name}: {lower:.3f} to {upper:.3f}')

# Every pose that the arm takes somewhere within its limits is a goal that it can reach.
solver = IkSolver(arm)
configurations = arm.sample(np.random.default_rng(0), 200)
solved = [solver.solve(Goal(*arm.fk(q))).solved for q in configurations]
print(f'{sum(solved)} of {len(solved)} reachable goals solved')
