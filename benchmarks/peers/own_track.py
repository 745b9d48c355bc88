# SPDX-License-Identifier: Apache-2.0
"""ik_node following a path: IkSolver.track from the configuration before."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracles.chain import Array

from benchmarks.peers import own
from ik_node import Goal, Solution

TITLE = 'ik_node track'


class Peer(own.Peer):
    """Where a branch ends, the change to the other one that is offered is taken."""

    def __init__(self, arm: dict[str, Any]) -> None:
        super().__init__(arm)
        self.call = self.solver.track
        self.before = self.now = self.arm.middle

    def prepare(self, position: Array, direction: Array, seed: Array) -> tuple[Any, ...]:
        """Return the arguments of the call: where the arm is, and where it was if it came here by itself."""
        before = self.before if np.array_equal(seed, self.now) else None
        self.before = seed
        return Goal(position, direction), seed, before

    def answers(self, solution: Solution) -> list[list[float]]:
        """Return where to go next."""
        self.now = solution.q
        return [(solution.q if solution.other_branch is None else solution.other_branch).tolist()]

    def announced(self, solution: Solution) -> bool:
        """Whether the answer is said to be on another branch."""
        return solution.other_branch is not None
