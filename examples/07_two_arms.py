# SPDX-License-Identifier: Apache-2.0
"""Solve for two tools at once: two arms on a torso that turns, which both arms share."""

from pathlib import Path

import numpy as np

from ik_node import Goal, Tool, Tree, TreeSolver

URDF = Path(__file__).parents[1] / 'urdf'

tree = Tree.from_file(URDF / 'torso_arms.urdf.xacro', {'left': Tool('left_tool0'), 'right': Tool('right_tool0')})
solver = TreeSolver(tree)
print(f'{len(tree.joint_names)} joints: {", ".join(tree.joint_names)}')

# Goals that a configuration with a turned torso meets: they can be met together.
turned = tree.middle.copy()
turned[tree.joint_names.index('torso_yaw')] += 1.0
goals = {name: Goal(*pose) for name, pose in tree.fk(turned).items()}
solution = solver.solve(goals, seed=tree.middle)
print(f'both: {solution.status.value}')
for name, tool in solution.tools.items():
    print(f'  {name}: {tool.status.value}, {tool.position_error:.1e} m off')
moved = np.abs(solution.q - tree.middle)
print(f'largest joint move: {moved.max():.3f} rad, {tree.joint_names[moved.argmax()]}')

# The right arm gets a goal out of reach. Both arms still have a result and a reason of their own.
goals['right'] = Goal(position=(2.0, 0.3, 1.0))
solution = solver.solve(goals, seed=tree.middle)
for name, tool in solution.tools.items():
    print(f'  {name}: {tool.status.value}, {tool.reason}')
