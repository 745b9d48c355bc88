# SPDX-License-Identifier: Apache-2.0
"""EAIK: closed forms for 6R arms by subproblem decomposition, all solutions, limits ignored."""

from __future__ import annotations

from typing import Any

import numpy as np
from eaik.IK_HP import HPRobot
from oracles.chain import Array

from benchmarks.peers.virtual_roll import RolledArm, UnsupportedError

TITLE = 'EAIK'


class Peer:
    """The bare IK call on the arm with the virtual roll joint, its axes as the URDF has them.

    An arm whose last joint is that roll already gets no second one. Where EAIK finds no decomposition, axes are
    rounded to 1e-4: descriptions write 1.5708 for a right angle.
    """

    def __init__(self, arm: dict[str, Any]) -> None:
        self.rolled = RolledArm(arm)
        if self.rolled.slides.any():
            raise UnsupportedError('prismatic joint')
        axes, points = self.rolled.axes, self.rolled.points
        beside = np.cross(axes[-2], [axes[-1], points[-1] - points[-2]])
        self.count = len(axes) - int(np.abs(beside).max() < 1e-5)
        joints = points[: self.count]
        offsets = np.vstack([np.diff(joints, axis=0, prepend=np.zeros((1, 3))), points[-1] - joints[-1]])
        rounded = np.round(axes[: self.count], 4)
        rounded /= np.linalg.norm(rounded, axis=1)[:, None]
        for tried in (axes[: self.count], rounded):
            try:
                self.robot = HPRobot(tried, offsets)
            except RuntimeError as error:
                reason = str(error)
                continue
            if self.robot.hasKnownDecomposition():
                break
            reason = 'no decomposition known'
        else:
            raise UnsupportedError(reason)
        self.call = self.robot.IK

    def prepare(self, position: Array, direction: Array, seed: Array) -> tuple[Array]:
        """Return the argument of the call."""
        return (self.rolled.target(position, direction, seed),)

    def answers(self, solution: Any) -> list[list[float]]:
        """Return every solution, least-squares ones too."""
        return np.array(solution.Q).reshape(-1, self.count)[:, : self.rolled.chain.n].tolist()
