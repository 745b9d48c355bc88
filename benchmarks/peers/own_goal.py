# SPDX-License-Identifier: Apache-2.0
"""ik_node from bare arrays: making and checking the Goal is part of the time."""

from __future__ import annotations

from typing import Any

from oracles.chain import Array

from benchmarks.peers import own
from ik_node import Goal, Solution

TITLE = 'ik_node, making the Goal too'


class Peer(own.Peer):
    """IkSolver.solve(Goal(position, direction)), mid-range seed."""

    def __init__(self, arm: dict[str, Any]) -> None:
        super().__init__(arm)
        solve = self.solver.solve

        def call(position: Array, direction: Array) -> Solution:
            return solve(Goal(position, direction))

        self.call = call

    def prepare(self, position: Array, direction: Array, _: Array) -> tuple[Array, Array]:
        """Return the arguments of the call."""
        return position, direction
