# SPDX-License-Identifier: Apache-2.0
"""ik_node itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracles.arms import solver_for
from oracles.chain import Array

from ik_node import Arm, Goal, Solution

TITLE = 'ik_node'


class Peer:
    """IkSolver.solve at the benchmark's tolerances, from a Goal made before, as the peers' targets are."""

    def __init__(self, arm: dict[str, Any]) -> None:
        self.arm = Arm.from_urdf(
            arm['xml'], arm['tip'], tool_axis=arm['axis'], tool_point=arm['point'], base_link=arm['base']
        )
        self.solver = solver_for(self.arm)
        self.call = self.solver.solve

    def prepare(self, position: Array, direction: Array, seed: Array) -> tuple[Any, ...]:
        """Return the arguments of the call; the seed may be left out where it is the mid-range."""
        goal = Goal(position, direction)
        return (goal,) if np.array_equal(seed, self.arm.middle) else (goal, seed)

    def answers(self, solution: Solution) -> list[list[float]]:
        """Return the configuration that was found."""
        return [solution.q.tolist()]
