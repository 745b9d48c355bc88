# SPDX-License-Identifier: Apache-2.0
"""EAIK's call for many poses, on one thread."""

from __future__ import annotations

from typing import Any

from oracles.chain import Array

from benchmarks.peers import eaik_closed

TITLE = 'EAIK IK_batched'


class Peer(eaik_closed.Peer):
    """All solutions of all goals."""

    def prepare_batch(self, positions: Array, directions: Array, seed: Array) -> tuple[list[Array]]:
        """Return the poses."""
        pairs = zip(positions, directions, strict=True)
        return ([self.rolled.target(position, direction, seed) for position, direction in pairs],)

    def call_batch(self, poses: list[Array]) -> Any:
        """Solve all goals."""
        return self.robot.IK_batched(poses, 1)

    def batch_answers(self, found: Any) -> list[list[list[float]]]:
        """Return every solution of each goal."""
        return [self.answers(solution) for solution in found]
