# SPDX-License-Identifier: Apache-2.0
"""Ask for what the arm cannot reach: the reason, and the closest configuration."""

from pathlib import Path

from ik_node import Arm, Goal, IkSolver, Status

URDF = Path(__file__).parents[1] / 'urdf'

arm = Arm.from_file(URDF / 'seed_arm.urdf.xacro')
solver = IkSolver(arm)

GOALS = {
    'two metres away': Goal(position=(2.0, 0.0, 0.2)),
    'at the edge, pointing back': Goal(position=(0.6, 0.0, 0.3), direction=(-1, 0, 0)),
}
for name, goal in GOALS.items():
    solution = solver.solve(goal)  # no exception: an unreachable goal is a result
    print(f'{name}: {solution.status.value}')
    assert solution.status is not Status.SOLVED
    print(f'  {solution.reason}')
    if solution.reason is not None:
        print(f'  cause as data: {solution.reason.cause.name}, amount {solution.reason.amount:.4f}')
    # Best effort: the least position error first, then the least direction error.
    position, _ = arm.fk(solution.q)
    print(f'  closest tool point {position.round(4) + 0.0} m, {solution.position_error:.4f} m off')
