# SPDX-License-Identifier: Apache-2.0
"""EAIK: closed forms for 6R arms by subproblem decomposition, all solutions, limits ignored."""

from __future__ import annotations

from typing import Any

import numpy as np
from eaik.IK_HP import HPRobot
from oracles.chain import Array

from benchmarks.peers.virtual_roll import RolledArm, UnsupportedError

TITLE = 'EAIK'


class UnknownFamilyError(UnsupportedError):
    """EAIK finds no decomposition for the axes that it was given."""


class Peer:
    """The bare IK call on the arm with the virtual roll joint, its axes as the URDF has them."""

    def __init__(self, arm: dict[str, Any]) -> None:
        self.rolled = RolledArm(arm)
        if self.rolled.slides.any():
            raise UnsupportedError('prismatic joint')
        self.kept = np.arange(self.rolled.chain.n)
        self.sense = np.ones(len(self.rolled.axes))
        self.build(self.rolled.axes, self.rolled.points)

    def build(self, axes: Array, points: Array) -> None:
        """Make the robot from axes and points at the zero pose (k, 3), the roll joint last."""
        offsets = np.vstack([np.diff(points, axis=0, prepend=np.zeros((1, 3))), np.zeros((1, 3))])
        try:
            self.robot = HPRobot(axes, offsets)
        except RuntimeError as error:
            raise UnknownFamilyError(str(error)) from None
        if not self.robot.hasKnownDecomposition():
            raise UnknownFamilyError('no decomposition known')
        self.call = self.robot.IK

    def prepare(self, position: Array, direction: Array, seed: Array) -> tuple[Array]:
        """Return the argument of the call."""
        return (self.rolled.target(position, direction, seed),)

    def answers(self, solution: Any) -> list[list[float]]:
        """Return every solution, least-squares ones too."""
        found = np.array(solution.Q).reshape(-1, len(self.kept) + 1)[:, :-1]
        q = np.zeros((len(found), self.rolled.chain.n))
        q[:, self.kept] = found * self.sense[:-1]
        return q.tolist()
