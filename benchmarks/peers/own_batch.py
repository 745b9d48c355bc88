# SPDX-License-Identifier: Apache-2.0
"""ik_node, many goals in one call on one thread."""

from __future__ import annotations

from typing import Any

from oracles.chain import Array

from benchmarks.peers import own

TITLE = 'ik_node solve_batch'


class Peer(own.Peer):
    """IkSolver.solve_batch at the benchmark's tolerances."""

    def prepare_batch(self, positions: Array, directions: Array, _: Array) -> tuple[Array, Array]:
        """Return the arguments of the call."""
        return positions, directions

    def call_batch(self, positions: Array, directions: Array) -> Any:
        """Solve all goals."""
        return self.solver.solve_batch(positions, directions, workers=1)

    def batch_answers(self, found: Any) -> list[list[list[float]]]:
        """Return one configuration per goal."""
        return [[q] for q in found.q.tolist()]
