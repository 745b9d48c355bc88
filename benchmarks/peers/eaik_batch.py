# SPDX-License-Identifier: Apache-2.0
"""EAIK, many goals in one call on one thread, on the arm rewritten for it."""

from __future__ import annotations

from typing import Any

from oracles.chain import Array

from benchmarks.peers import eaik_helped

TITLE = 'EAIK IK_batched'


class Peer(eaik_helped.Peer):
    """IK_batched with one worker thread."""

    def prepare_batch(self, positions: Array, directions: Array, seed: Array) -> tuple[list[Array]]:
        """Return the arguments of the call."""
        return ([self.rolled.target(*goal, seed) for goal in zip(positions, directions, strict=True)],)

    def call_batch(self, targets: list[Array]) -> Any:
        """Solve all goals."""
        return self.robot.IK_batched(targets, 1)

    def batch_answers(self, solutions: Any) -> list[list[list[float]]]:
        """Return every solution of every goal."""
        return [self.answers(solution) for solution in solutions]
