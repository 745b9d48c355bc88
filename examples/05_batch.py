# SPDX-License-Identifier: Apache-2.0
"""Solve many goals at once, as arrays, on all cores: which part of a box can the tool reach from above?"""

from collections import Counter
from pathlib import Path

import numpy as np

from ik_node import Arm, IkSolver

URDF = Path(__file__).parents[1] / 'urdf'

arm = Arm.from_file(URDF / 'seed_arm.urdf.xacro')
solver = IkSolver(arm)

# A grid of 13 x 13 x 4 positions, each with the tool pointing down.
axes = np.linspace(-0.6, 0.6, 13), np.linspace(-0.6, 0.6, 13), np.linspace(0.05, 0.35, 4)
positions = np.stack(np.meshgrid(*axes, indexing='ij'), axis=-1).reshape(-1, 3)
directions = np.tile([0.0, 0.0, -1.0], (len(positions), 1))
batch = solver.solve_batch(positions, directions)

print(f'{len(positions)} goals, {batch.solved.sum()} solved')
for height in axes[2]:
    layer = np.isclose(positions[:, 2], height)
    print(f'height {height:.2f} m: {batch.solved[layer].sum()} of {layer.sum()}')
print('reasons of the others:')
for cause, count in Counter(reason.cause.name for reason in batch.reasons.values()).most_common():
    print(f'  {cause}: {count}')
