# SPDX-License-Identifier: Apache-2.0
"""TRAC-IK, by its PyPI package pytracik."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytracik
from oracles.chain import Array

from benchmarks.peers.virtual_roll import RolledArm

TITLE = 'TRAC-IK'
SECONDS = 0.02
EPSILON = 5e-7


class Peer:
    """Mode Speed, at most 20 ms, on the two threads that it always takes."""

    def __init__(self, arm: dict[str, Any]) -> None:
        self.rolled = RolledArm(arm)
        self.solver = pytracik.TRAC_IK(
            'base_link', 'tool', self.rolled.urdf('continuous'), SECONDS, EPSILON, pytracik.SolveType.Speed
        )

    def prepare(self, position: Array, direction: Array, seed: Array) -> tuple[Any, ...]:
        """Return the arguments of the call."""
        target = self.rolled.target(position, direction, seed)
        return self.solver, np.append(seed, 0.0), *position.tolist(), *quaternion_xyzw(target[:3, :3])

    def call(self, *arguments: Any) -> Any:
        """Solve one goal."""
        return pytracik.ik(*arguments)

    def answers(self, solution: Array) -> list[list[float]]:
        """Return the configuration that was found; its first number says whether there is one."""
        return [] if solution[0] < 0 else [list(solution[1:-1])]


def quaternion_xyzw(turn: Array) -> list[float]:
    """Return the unit quaternion of a rotation (3, 3): the eigenvector of Bar-Itzhack's matrix (2000)."""
    (a, b, c), (d, e, f), (g, h, i) = turn
    matrix = [
        [a - e - i, b + d, g + c, h - f],
        [b + d, e - a - i, f + h, c - g],
        [g + c, f + h, i - a - e, d - b],
        [h - f, c - g, d - b, a + e + i],
    ]
    return np.linalg.eigh(matrix)[1][:, -1].tolist()
