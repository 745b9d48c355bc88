# SPDX-License-Identifier: Apache-2.0
"""PlaCo: a position task per tool, and an orientation task that leaves out the turn about the tool axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.chain import Array
from benchmarks.peers import placo_tree

TITLE = 'placo, masked tasks'


class Peer(placo_tree.Peer):
    """As placo_tree, for its axis-align task fails where the axis is aligned already."""

    def turn_task(self, tip: str) -> Any:
        """Add the task for the direction of a tip."""
        task = self.solver.add_orientation_task(tip, np.eye(3))
        task.mask.set_axises('xy', 'local')
        return task

    def aim(self, goals: dict[str, Array]) -> None:
        """Leave it to the steps."""

    def step(self, goals: dict[str, Array]) -> None:
        """Make one step; the target has the roll of the tip, as the task leaves that out."""
        for tool, goal in goals.items():
            position, turn = self.tasks[tool]
            position.target_world, turn.R_world_frame = goal[:3], self.target(tool, goal)[:3, :3]
        super().step(goals)
