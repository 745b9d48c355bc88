# SPDX-License-Identifier: Apache-2.0
"""Solve one goal: where the tool point should be, and where the tool axis should point."""

from pathlib import Path

from ik_node import Arm, Goal, IkSolver

URDF = Path(__file__).parents[1] / 'urdf'

arm = Arm.from_file(URDF / 'seed_arm.urdf.xacro')
solver = IkSolver(arm)

# Metres in the frame of the base link; the tool points straight down, and its roll is free.
goal = Goal(position=(0.4, 0.1, 0.2), direction=(0, 0, -1))
solution = solver.solve(goal)

print(f'status: {solution.status.value}')
for name, value in zip(arm.joint_names, solution.q, strict=True):
    print(f'{name}: {value:.6f} rad')

# Forward kinematics of the result leads back to the goal.
position, direction = arm.fk(solution.q)
print(f'tool point: {position.round(6) + 0.0} m')
print(f'tool axis: {direction.round(6) + 0.0}')
