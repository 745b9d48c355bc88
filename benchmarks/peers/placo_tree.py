# SPDX-License-Identifier: Apache-2.0
"""PlaCo: a position task and an axis-align task per tool."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import placo

from benchmarks.chain import Array
from benchmarks.peers.stepping import AXIS, Stepping

TITLE = 'placo, axis tasks'
REGULARIZATION = 1e-4  # as in its examples


class Peer(Stepping):
    """Soft tasks of weight 1, joint limits on, full steps: solve(True), update_kinematics()."""

    def __init__(self, robot: dict[str, Any]) -> None:
        super().__init__(robot)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, 'robot.urdf')
            path.write_text(robot['xml'])
            self.robot = placo.RobotWrapper(str(path), placo.Flags.ignore_collisions)
        self.solver = placo.KinematicsSolver(self.robot)
        self.solver.mask_fbase(True)
        self.solver.enable_joint_limits(True)
        self.solver.add_regularization_task(REGULARIZATION)
        self.tasks = {}
        for tool, tip in self.tips.items():
            position, turn = self.solver.add_position_task(tip, np.zeros(3)), self.turn_task(tip)
            position.configure(f'{tool} position', 'soft', 1.0)
            turn.configure(f'{tool} turn', 'soft', 1.0)
            self.tasks[tool] = position, turn

    def turn_task(self, tip: str) -> Any:
        """Add the task for the direction of a tip."""
        return self.solver.add_axisalign_task(tip, np.eye(3)[AXIS], np.eye(3)[AXIS])

    def set(self, q: Array) -> None:
        """Move to q (n,)."""
        for name, value in zip(self.names, q, strict=True):
            self.robot.set_joint(name, value)
        self.robot.update_kinematics()

    def get(self) -> Array:
        """Return where it is (n,)."""
        return np.array([self.robot.get_joint(name) for name in self.names])

    def pose(self, tool: str) -> Array:
        """Return the pose of a tip (4, 4)."""
        return self.robot.get_T_world_frame(self.tips[tool])

    def aim(self, goals: dict[str, Array]) -> None:
        """Set the targets."""
        for tool, goal in goals.items():
            position, axis = self.tasks[tool]
            position.target_world, axis.targetAxis_world = goal[:3], goal[3:]

    def step(self, _: dict[str, Array]) -> None:
        """Make one step."""
        self.solver.solve(True)
        self.robot.update_kinematics()
