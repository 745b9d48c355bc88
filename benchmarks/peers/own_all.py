# SPDX-License-Identifier: Apache-2.0
"""ik_node: every solution."""

from __future__ import annotations

from typing import Any

from oracles.arms import solver_for

from benchmarks.peers import own
from ik_node import Solution

TITLE = 'ik_node, every solution'


class Peer(own.Peer):
    """IkSolver.solve_all."""

    search_only = False

    def __init__(self, arm: dict[str, Any]) -> None:
        super().__init__(arm)
        self.call = solver_for(self.arm, closed_form=not self.search_only).solve_all

    def answers(self, solutions: list[Solution]) -> list[list[float]]:
        """Return the configurations."""
        return [solution.q.tolist() for solution in solutions]
