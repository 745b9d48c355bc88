# SPDX-License-Identifier: Apache-2.0
"""ssik: all solutions of six revolute joints by elimination, derived for an arm when it is loaded."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from oracles.chain import Array
from ssik import Manipulator

from benchmarks.peers.virtual_roll import RolledArm, UnsupportedError

TITLE = 'ssik, every solution'


class Peer:
    """The bare call on the arm with the virtual roll joint; the warm-up takes its derivation."""

    def __init__(self, arm: dict[str, Any]) -> None:
        self.rolled = RolledArm(arm)
        if self.rolled.slides.any() or len(self.rolled.axes) != 6:
            raise UnsupportedError('not five revolute joints')
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / 'arm.urdf'
            path.write_text(self.rolled.urdf('continuous'))
            self.call = Manipulator.from_urdf(str(path), base='base_link', ee='tool').solve

    def prepare(self, position: Array, direction: Array, seed: Array) -> tuple[Array]:
        """Return the argument of the call."""
        return (self.rolled.target(position, direction, seed),)

    def answers(self, solutions: Any) -> list[list[float]]:
        """Return every solution without the roll joint."""
        return [solution.q[:5].tolist() for solution in solutions]
