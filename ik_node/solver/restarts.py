"""The random-restart search: descents from the seed and from ever new random offsets."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Vector
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal

ITERATIONS_PER_CHECK = 1920  # at most, between two looks at the clock: about half a millisecond
CYCLE = 2  # temperatures before re-heating
COOLING = 0.5  # from one temperature to the next
WEIGHT_PER_REACH = 0.2  # one radian weighs as much as this share of the reach
KNOWN_POSES = 1024  # configurations whose tool poses are known beforehand, to restart near the goal
BEST_EFFORT_STARTS = 12
BEST_EFFORT_MOST_STARTS = 100  # while the position is not met and not shown to be out of reach
BEST_EFFORT_WEIGHTS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)  # times the usual weight


@dataclass(frozen=True)
class Descent:
    """A method of descent: its code in the kernels, and when one descent gives up.

    iterations: what has not converged by then rarely does. stall_ratio: share of the squared error
    that must be gained, by lm in each of three steps, by the others in kernels.PATIENCE iterations.
    thorough: the same two for best effort, where there is no zero to end at.
    """

    code: int
    iterations: int
    stall_ratio: float
    thorough: tuple[int, float]


DESCENTS = {
    'lm': Descent(kernels.LM, 30, 0.1, (100, 1e-9)),
    'dls': Descent(kernels.DLS, 60, 0.5, (200, 1e-6)),
    'transpose': Descent(kernels.TRANSPOSE, 1000, 0.05, (1000, 1e-3)),
    'ccd': Descent(kernels.CCD, 1000, 0.1, (1000, 1e-3)),
}


class Found(NamedTuple):
    """Where a search ended: errors in m and rad at q, descents after the first, and why it ended."""

    solved: bool
    position_error: float
    direction_error: float
    restarts: int
    out_of_time: bool = False


class Annealing:
    """Random-restart annealing for one arm; the search sees arrays and the clock only."""

    def __init__(
        self,
        arm: Arm,
        method: str,
        position_tolerance: float,
        direction_tolerance: float,
        restarts: int,
        time_budget: float,
        random_seed: int,
    ) -> None:
        """Tolerances in m and rad, time_budget in s (inf: none)."""
        self.descent = DESCENTS.get(method, DESCENTS['lm'])
        self.arm = arm
        self.direction_tolerance = direction_tolerance
        self.restarts = restarts
        self.time_budget = time_budget
        self.random_seed = random_seed
        self._first_state = np.array([random_seed], dtype=np.uint64)
        # Descents compare chords; a hair less, so that the angle itself is within its tolerance.
        chord = 2.0 * math.sin(min(direction_tolerance, math.pi) / 2.0) * (1.0 - 1e-9)
        self.weight = WEIGHT_PER_REACH * max(arm.reach, 1e-3)
        self.options = np.array(
            [
                position_tolerance,
                chord,
                self.weight,
                self.descent.iterations,
                self.descent.stall_ratio,
                CYCLE,
                COOLING,
                self.descent.code,
            ]
        )

        # The restarts from known poses stay in one part: they share one look at it.
        self._part = max(kernels.INFORMED + 1, ITERATIONS_PER_CHECK // self.descent.iterations)
        # A stream of its own: whoever draws goals by default_rng(random_seed) must not find them known.
        samples = arm.sample(np.random.default_rng((random_seed, KNOWN_POSES)), KNOWN_POSES)
        self.table = np.empty((arm.n + 6, KNOWN_POSES))
        kernels.tabulate_poses(arm.joints, arm.tool, samples, self.weight, self.table)

    def _random_state(self) -> NDArray[np.uint64]:
        return self._first_state.copy()

    def met(self, position_error: float, direction_error: float) -> bool:
        """Whether errors in m and rad are within the tolerances."""
        return bool(position_error <= self.options[0] and direction_error <= self.direction_tolerance)

    def search(self, goal: Goal, q: Vector, start: float, most: int | None = None) -> Found:
        """Search from q (n,), in place; start: time.perf_counter() when the budget began.

        most: restarts, if fewer than the budget allows.
        """
        restarts_allowed = self.restarts if most is None else min(most, self.restarts)
        state = self._random_state()
        first = 0
        while True:
            last = min(first + self._part, restarts_allowed + 1)
            restarts, position_error, direction_error, solved = kernels.anneal(
                self.arm.joints,
                self.arm.tool,
                self.arm.limits,
                goal.packed,
                self.options,
                self.table,
                first,
                last,
                state,
                q,
            )
            out_of_time = time.perf_counter() - start > self.time_budget
            if solved or out_of_time or last > restarts_allowed:
                return Found(
                    solved,
                    position_error,
                    direction_error,
                    restarts,
                    out_of_time and not solved,
                )
            first = last

    def search_many(
        self,
        form: Vector,
        trusted: bool,
        goals: Vector,
        shells: Vector,
        most: int | None,
        seeds: Vector,
        q: Vector,
        errors: Vector,
        solved: NDArray[np.bool_],
    ) -> None:
        """Solve those of goals (N, 9) that are solved soon: as kernels.solve_many.

        Where search solves a goal before it first looks at the clock, this gives the same bits.
        """
        restarts_allowed = self.restarts if most is None else min(most, self.restarts)
        kernels.solve_many(
            self.arm.joints,
            self.arm.tool,
            self.arm.limits,
            form,
            trusted,
            goals,
            shells,
            self.options,
            self.table,
            min(self._part, restarts_allowed + 1),
            self.random_seed,
            seeds,
            q,
            errors,
            solved,
        )

    def approach(self, goal: Goal, q: Vector, out_of_reach: bool = False) -> tuple[float, float]:
        """Best effort from q (n,), in place: position first, then direction. Returns both errors."""
        options = self.options.copy()
        options[3:5] = self.descent.thorough
        weights = self.weight * np.array(BEST_EFFORT_WEIGHTS)
        position_error, direction_error = kernels.approach(
            self.arm.joints,
            self.arm.tool,
            self.arm.limits,
            goal.packed,
            options,
            weights,
            BEST_EFFORT_STARTS,
            BEST_EFFORT_STARTS if out_of_reach else BEST_EFFORT_MOST_STARTS,
            self._random_state(),
            q,
        )
        return position_error, direction_error
