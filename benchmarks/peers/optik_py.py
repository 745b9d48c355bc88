# SPDX-License-Identifier: Apache-2.0
"""optik-py."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import optik
from oracles.chain import Array

from benchmarks.peers.virtual_roll import RolledArm, UnsupportedError

TITLE = 'optik-py'
SECONDS = 0.1


class Peer:
    """Mode speed on one thread, at most 0.1 s of its own random restarts."""

    def __init__(self, arm: dict[str, Any]) -> None:
        self.rolled = RolledArm(arm)
        if self.rolled.slides.any():
            raise UnsupportedError('prismatic joint')
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, 'arm.urdf')
            path.write_text(self.rolled.urdf('revolute'))
            self.robot = optik.Robot.from_urdf_file(str(path), 'base_link', 'tool')
        self.robot.set_parallelism(1)
        self.config = optik.SolverConfig(
            solution_mode='speed', max_time=SECONDS, max_restarts=1000, tol_f=1e-13, tol_df=-1.0, tol_dx=-1.0
        )

    def prepare(self, position: Array, direction: Array, seed: Array) -> tuple[Any, ...]:
        """Return the arguments of the call."""
        start = np.clip(np.append(seed, 0.0), self.rolled.lower, self.rolled.upper)
        return self.config, self.rolled.target(position, direction, seed).tolist(), start.tolist()

    def call(self, *arguments: Any) -> Any:
        """Solve one goal."""
        return self.robot.ik(*arguments)

    def answers(self, solution: Any) -> list[list[float]]:
        """Return the configuration that was found."""
        return [] if solution is None else [list(solution[0][:-1])]
