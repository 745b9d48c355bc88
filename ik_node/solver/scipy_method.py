"""The reference: scipy's bounded least_squares under the same random-restart annealing."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from ik_node import kernels
from ik_node.checks import Vector
from ik_node.extras import load
from ik_node.solver.goal import Goal
from ik_node.solver.restarts import (
    BEST_EFFORT_WEIGHTS,
    Annealing,
    Found,
)

EVALUATIONS = 100  # per descent
FARTHEST = 1e50  # m; the square of more overflows in scipy
BEST_EFFORT_STARTS = 3  # each takes a tenth of a second
PRECISION = 1e-12  # of steps and gradients at which a descent ends


class LeastSquares(Annealing):
    """The search of Annealing with its descents by scipy (trf: trust region, reflective at the bounds).

    Same residuals, start points, schedule and random numbers; a loop in Python, hundreds of times
    slower. What it finds is what a careful user of scipy would find.
    """

    def __init__(self, *arguments: Any) -> None:
        """As Annealing. Raises MissingError where scipy is not installed."""
        super().__init__(*arguments)
        self._least_squares = load('scipy.optimize', 'method scipy').least_squares

    def search(
        self,
        goal: Goal,
        q: Vector,
        start: float,
        most: int | None = None,  # noqa: ARG002 - only arms with a formula ask for few
    ) -> Found:
        """As Annealing.search, but looks at the clock after every descent."""
        state = self._random_state()
        best, restart, out_of_time = math.inf, 0, False
        trial, distances = q.copy(), np.empty(self.table.shape[1])
        for restart in range(self.restarts + 1):
            kernels.next_start(
                restart,
                self.arm.limits,
                goal.packed,
                self.options,
                self.table,
                distances,
                state,
                q,
                trial,
            )
            self._descend(goal.packed, self.weight, trial)
            position_error, direction_error = self._errors(goal.packed, trial)
            solved = self.met(position_error, direction_error)
            cost = position_error**2 + (self.weight * 2.0 * math.sin(direction_error / 2.0)) ** 2
            if solved or cost < best:
                best = cost
                q[:] = trial
            out_of_time = time.perf_counter() - start > self.time_budget
            if solved:
                return Found(True, position_error, direction_error, restart)
            if out_of_time:
                break
        return Found(False, *self._errors(goal.packed, q), restart, out_of_time)

    def search_many(self, *arguments: Any) -> None:
        """As Annealing.search_many: here nothing is solved soon."""
        arguments[-1][:] = False

    def approach(
        self,
        goal: Goal,
        q: Vector,
        out_of_reach: bool = False,  # noqa: ARG002 - the starts are few anyway
    ) -> tuple[float, float]:
        """As Annealing.approach, from fewer starts."""
        state = self._random_state()
        kernels.clip(q, self.arm.limits)
        trial = q.copy()
        best, least = self._errors(goal.packed, q), math.inf
        for start in range(BEST_EFFORT_STARTS):
            if start > 0:
                kernels.perturb(q, self.arm.limits, 1.0, state, trial)
            for weight in BEST_EFFORT_WEIGHTS:
                self._descend(goal.packed, self.weight * weight, trial)
            errors = self._errors(goal.packed, trial)
            nearer = errors[0] < least - self.options[0]
            if nearer or (errors[0] < least + self.options[0] and errors[1] < best[1]):
                best = errors
                q[:] = trial
            least = min(least, errors[0])
        return best

    def _errors(self, goal: Vector, q: Vector) -> tuple[float, float]:
        position_error, direction_error = kernels.goal_errors(self.arm.joints, self.arm.frames(q), goal)
        return position_error, direction_error

    def _descend(self, goal: Vector, weight: float, q: Vector) -> None:
        """One descent from q (n,), in place, within the limits. Joints without a range stay."""
        arm = self.arm
        kernels.clip(q, arm.limits)
        free = arm.lower < arm.upper
        frames, jacobian, at = np.empty((2 * len(arm.joints) + 3, 3)), np.empty((arm.n, 6)), q.copy()
        rows = slice(0, 3) if np.isnan(goal[3]) else slice(0, 6)

        def residuals(values: Vector) -> Vector:
            at[free] = values
            kernels.forward(arm.joints, arm.tool, at, frames)
            return np.concatenate([frames[-3] - goal[:3], weight * (frames[-2] - goal[3:6])])[rows]

        def derivatives(values: Vector) -> Vector:
            at[free] = values
            kernels.forward(arm.joints, arm.tool, at, frames)
            kernels.jacobian(arm.joints, frames, jacobian)
            return (jacobian[free] * np.repeat([1.0, weight], 3))[:, rows].T

        if not free.any() or not np.abs(residuals(q[free])).max() < FARTHEST:
            return
        q[free] = self._least_squares(
            residuals,
            q[free],
            derivatives,
            (arm.lower[free], arm.upper[free]),
            xtol=PRECISION,
            gtol=PRECISION,
            max_nfev=EVALUATIONS,
        ).x
        kernels.clip(q, arm.limits)
