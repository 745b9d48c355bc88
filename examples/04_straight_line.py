# SPDX-License-Identifier: Apache-2.0
"""Move the tool along straight lines as fast as the limits of the joints allow."""

from pathlib import Path

import numpy as np

from ik_node import Arm, Bounds, Goal, IkSolver, ToolPath, plan_lines

URDF = Path(__file__).parents[1] / 'urdf'
DOWN = (0, 0, -1)

arm = Arm.from_file(URDF / 'seed_arm.urdf.xacro')
solver = IkSolver(arm)
start = solver.solve(Goal(position=(0.4, 0.1, 0.2), direction=DOWN)).q

# A square corner: 20 cm sideways, then 10 cm up. The tool stops at the corner.
path = ToolPath([[0.4, -0.1, 0.2], [0.4, -0.1, 0.3]], [DOWN, DOWN])
bounds = Bounds(
    velocity=arm.velocity,
    acceleration=np.full(arm.n, 5.0),
    jerk=np.full(arm.n, 50.0),
    tool_speed=0.25,
)
motion = plan_lines(solver, path, start, bounds)
trajectory = motion.trajectory
assert trajectory is not None
print(f'{motion.length:.3f} m in {trajectory.duration:.3f} s')

fastest = np.zeros(arm.n)
for time in np.linspace(0.0, trajectory.duration, 9):
    q, velocity, _ = trajectory.at_time(time)
    fastest = np.maximum(fastest, np.abs(velocity))
    x, y, z = arm.fk(q)[0]
    print(f'{time:6.3f} s: tool at {x:.4f} {y:+.4f} {z:.4f}')
print(f'fastest joint: {arm.joint_names[fastest.argmax()]}, {fastest.max():.3f} rad/s')
