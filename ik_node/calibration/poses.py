# SPDX-License-Identifier: Apache-2.0
"""How to hold an arm at the next cross, so that the touch tells most about where its tool will be near the sheet."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.solver.goal import Goal, Status
from ik_node.solver.solver import IkSolver

from .estimator import FRAMES, START_NOISE, Touches, TouchModel

SEEDS = 150  # random starts for each cross
FEW_SEEDS = 25  # likewise, to see whether a sheet is in reach
DOWN = -0.2  # z of the tool axis in the sheet's frame, at most
ABOVE = 0.015  # [m] that all joints but those at the tool keep from the table
MARGIN = math.radians(8.0)  # to the limits of joints that turn
NEAR, HIGH = 0.25, 0.2  # [m] for an arm with REACH: the goals that count are so near to the sheet's middle, and so high
REACH = 0.48  # [m]
GOALS = 80


class Poses:
    """Configurations in which an arm touches the crosses of a sheet, and the choice among them.

    q (k, n) [rad or m], crosses (k,). seeds: random starts for each cross. Raises InputError if fewer than four
    crosses can be touched.
    """

    def __init__(self, model: TouchModel, seeds: int = SEEDS) -> None:
        self._model, arm = model, model.arm
        rng, solver = np.random.default_rng(0), IkSolver(arm)
        rows, crosses = [], []
        for cross, place in enumerate(model.places):
            goal = Goal(model.sheet[:3, :3] @ place + model.sheet[:3, 3])
            for seed in arm.sample(rng, seeds):
                found = solver.solve(goal, seed)
                if found.status is Status.UNREACHABLE:
                    break  # from any seed
                if found.solved and self._can_be_held(found.q):
                    rows.append(found.q)
                    crosses.append(cross)
        self.q, self.crosses = np.array(rows).reshape(-1, arm.n), np.array(crosses, dtype=np.int64)
        if len(np.unique(self.crosses)) < 4:
            raise InputError(
                f'{arm.name} can touch {len(np.unique(self.crosses))} of {len(model.places)} crosses of this sheet, at '
                'least 4 are needed: is it the sheet of this arm?'
            )
        self._slopes = self._scaled(self.q)
        self._weights = self._goals(rng)

    def _scaled(self, q: Array) -> Array:
        """Return the derivatives (k, 3, f) [m] of the tool point at q (k, n), by deviations of what is estimated."""
        model = self._model
        sigma = model.deviations(FRAMES)
        return model.points(q, np.zeros(model.pose.stop))[1][:, :, sigma > 0.0] * sigma[sigma > 0.0]

    def _can_be_held(self, q: Array) -> bool:
        """Whether the tool comes from above, no joint touches the table, and none is at its limit."""
        arm, frame = self._model.arm, self._model.sheet
        _, axis = arm.fk(q)
        margin = np.where(self._model.slides, 0.0, MARGIN)
        if frame[:3, 2] @ axis > DOWN or (q < arm.lower + margin).any() or (q > arm.upper - margin).any():
            return False
        heights = (arm.skeleton(q)[1:-1] - frame[:3, 3]) @ frame[:3, 2]
        return bool((heights > ABOVE).all())

    def _goals(self, rng: np.random.Generator) -> Array:
        """Return the sum (f, f) of squared derivatives of the tool point at goals near the sheet."""
        arm, q = self._model.arm, self._model.arm.sample(rng, 50 * GOALS)
        points, scale = self._model.points(q, np.zeros(self._model.pose.stop))[0], max(1.0, arm.reach / REACH)
        near = np.linalg.norm(points, axis=1) < NEAR * scale
        near &= (points[:, 2] > 0.0) & (points[:, 2] < HIGH * scale)
        rows = self._scaled(q[near][:GOALS])
        return np.einsum('kia,kib->ab', rows, rows)

    def next(self, touches: Touches) -> int:
        """Return the row to touch after touches, at a cross with the fewest of them.

        The one after which the goals near the sheet are known best: the least sum of their variances (I-optimal).
        """
        counts = np.bincount(touches.crosses, minlength=len(self._model.places))
        can = np.unique(self.crosses)
        rows = np.flatnonzero(np.isin(self.crosses, can[counts[can] == counts[can].min()]))
        seen = self._scaled(touches.q).reshape(-1, self._slopes.shape[2]) / START_NOISE
        covariance = np.linalg.inv(np.eye(seen.shape[1]) + seen.T @ seen)
        A = self._slopes[rows] @ covariance
        spread = A @ self._slopes[rows].transpose(0, 2, 1) + START_NOISE**2 * np.eye(3)
        gains = np.einsum('kij,kji->k', np.linalg.inv(spread), A @ self._weights @ A.transpose(0, 2, 1))
        return int(rows[gains.argmax()])
