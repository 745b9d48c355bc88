# SPDX-License-Identifier: Apache-2.0
"""scipy's bounded least_squares, given ik_node's compiled FK and Jacobian and as many restarts."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracles.chain import Array
from scipy.optimize import least_squares

from ik_node import Arm, IkSolver

TITLE = 'scipy least_squares'
TOLERANCE = 1e-6
RESTARTS = IkSolver.__init__.__kwdefaults__['restarts']
CLOSE_ENOUGH = 1e-9  # least_squares cannot be told our tolerances; its gradient's is the nearest thing


class Peer:
    """Trust-region reflective; after the seed, uniform random starts until the goal is met."""

    def __init__(self, arm: dict[str, Any]) -> None:
        self.arm = Arm.from_urdf(
            arm['xml'], arm['tip'], tool_axis=arm['axis'], tool_point=arm['point'], base_link=arm['base']
        )
        self.weight = 0.3 * self.arm.reach

    def prepare(self, position: Array, direction: Array, seed: Array) -> tuple[Array, Array, Array]:
        """Return the arguments of the call."""
        return position, direction, seed

    def call(self, position: Array, direction: Array, seed: Array) -> Array:
        """Solve one goal."""
        arm, weight = self.arm, self.weight

        def residual(q: Array) -> Array:
            point, axis = arm.fk(q)
            return np.concatenate([point - position, weight * (axis - direction)])

        def jacobian(q: Array) -> Array:
            rows = arm.jacobian(q)
            rows[3:] *= weight
            return rows

        rng = np.random.default_rng(0)
        start = np.clip(seed, arm.lower, arm.upper)
        for _ in range(RESTARTS + 1):
            found = least_squares(
                residual, start, jacobian, (arm.lower, arm.upper), ftol=1e-12, xtol=1e-12, gtol=CLOSE_ENOUGH
            )
            if np.abs(found.fun[:3]).max() < TOLERANCE and np.abs(found.fun[3:]).max() < TOLERANCE * weight:
                break
            start = arm.sample(rng, 1)[0]
        return found.x

    def answers(self, q: Array) -> list[list[float]]:
        """Return the configuration that was found."""
        return [q.tolist()]
