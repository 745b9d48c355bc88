# SPDX-License-Identifier: Apache-2.0
"""roboticstoolbox-python's C++ Levenberg-Marquardt solver, ETS.ik_LM."""

from __future__ import annotations

from typing import Any

import numpy as np
import roboticstoolbox
from oracles.chain import Array
from spatialmath import SE3

from benchmarks.peers.virtual_roll import RolledArm, least_rotation

TITLE = 'rtb ik_LM'
# E = e'e / 2 of the pose error e: 1e-14 is 1.4e-7 m or rad.
OPTIONS = {'ilimit': 30, 'slimit': 100, 'tol': 1e-14, 'joint_limits': True, 'k': 0.1, 'method': 'chan'}


class Peer:
    """One call with the solver's own random restarts, at most 100."""

    def __init__(self, arm: dict[str, Any]) -> None:
        self.rolled = RolledArm(arm)
        et = roboticstoolbox.ET
        sequence = roboticstoolbox.ETS()
        last = np.eye(4)
        for i, (axis, offset) in enumerate(zip(self.rolled.axes, self.rolled.offsets, strict=True)):
            mount = np.eye(4)
            mount[:3, :3], mount[:3, 3] = least_rotation(np.array([0.0, 0.0, 1.0]), axis), offset
            limits = [self.rolled.lower[i], self.rolled.upper[i]]
            joint = et.tz(qlim=limits) if self.rolled.slides[i] else et.Rz(qlim=limits)
            sequence = sequence * et.SE3(SE3(last @ mount, check=False)) * joint
            last[:3, :3] = mount[:3, :3].T
        self.sequence = sequence * et.SE3(SE3(last, check=False))

    def prepare(self, position: Array, direction: Array, seed: Array) -> tuple[Array, Array]:
        """Return the arguments of the call."""
        return self.rolled.target(position, direction, seed), np.append(seed, 0.0)

    def call(self, target: Array, seed: Array) -> Any:
        """Solve one goal."""
        return self.sequence.ik_LM(target, q0=seed, **OPTIONS)

    def answers(self, solution: Any) -> list[list[float]]:
        """Return the configuration that was found, whether or not it is called a success."""
        return [solution.q[:-1].tolist()]
