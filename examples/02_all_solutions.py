# SPDX-License-Identifier: Apache-2.0
"""List all solutions of a goal: the same tool pose with the elbow up, the elbow down, and so on."""

from pathlib import Path

import numpy as np

from ik_node import Arm, Goal, IkSolver

URDF = Path(__file__).parents[1] / 'urdf'

arm = Arm.from_file(URDF / 'seed_arm.urdf.xacro')
solver = IkSolver(arm)
goal = Goal(position=(0.3, 0.1, 0.3), direction=(0, 0, -1))

# Best first: the solution nearest to the seed, here mid-range of all joints.
solutions = solver.solve_all(goal)
print(f'{len(solutions)} solutions within the joint limits')
print('there are no others' if solutions.complete else 'there may be others')

print('  '.join(arm.joint_names))
for solution in solutions:
    position, direction = arm.fk(solution.q)
    error = np.linalg.norm(position - goal.position) + np.linalg.norm(direction - goal.direction)
    print(*(f'{value:8.4f}' for value in solution.q), f'  error {error:.1e}')
