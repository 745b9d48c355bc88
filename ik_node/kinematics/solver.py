"""IkSolver: the pipeline from goal to solution."""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import ArrayLike

from ik_node.kinematics import kernels
from ik_node.kinematics.annealing import Annealing, Found
from ik_node.kinematics.arm import Arm
from ik_node.kinematics.closed_form import recognise
from ik_node.kinematics.errors import InputError
from ik_node.kinematics.goal import Block, Goal, Reason, Solution, Status, Vector

METHODS = ('lm',)


class IkSolver:
    """Solves goals for one arm; safe to call from several threads."""

    def __init__(
        self,
        arm: Arm,
        *,
        method: str = 'lm',
        position_tolerance: float = 1e-6,
        direction_tolerance: float = 1e-6,
        restarts: int = 1000,
        time_budget: float = math.inf,
        random_seed: int = 0,
    ) -> None:
        """Compile or load the kernels for this arm.

        method: one of METHODS. Tolerances in m and rad. restarts: random restarts after the descent
        from the seed. time_budget: seconds after which the search gives up; the only option that
        makes answers depend on the machine. Raises InputError for values out of range.
        """
        if method not in METHODS:
            raise InputError(f'method must be one of {", ".join(METHODS)}, got {method!r}')
        for name, value in [
            ('position_tolerance', position_tolerance),
            ('direction_tolerance', direction_tolerance),
            ('time_budget', time_budget),
        ]:
            if not value > 0:
                raise InputError(f'{name} must be greater than 0, got {value!r}')
        if restarts < 0:
            raise InputError(f'restarts must be 0 or more, got {restarts!r}')
        if not 0 <= random_seed < 2**63:
            raise InputError(f'random_seed must be from 0 to 2**63 - 1, got {random_seed!r}')
        self.arm = arm
        self.method = method
        self.closed_form = recognise(arm)
        self._search = Annealing(
            arm,
            position_tolerance,
            direction_tolerance,
            restarts,
            time_budget,
            random_seed,
        )
        self._warm_up()

    def _warm_up(self) -> None:
        """Run every kernel once with this arm's arrays, so that the first goal waits for no compiler."""
        position, direction = self.arm.fk(self.arm.middle)
        self.solve(Goal(position, direction))
        self._search.search(Goal(position, direction), self.arm.middle.copy(), 0.0)
        self._search.approach(Goal(position, direction), self.arm.middle.copy())

    def _start(self, seed: ArrayLike | None) -> Vector:
        """Return the seed (n,) as a new array; outside the limits is allowed, descents clip it."""
        if seed is None:
            return self.arm.middle.copy()
        return self.arm.checked(seed, 'seed')

    def solve(self, goal: Goal, seed: ArrayLike | None = None) -> Solution:
        """Find one configuration for goal, near seed (n,) where possible (default: mid-range).

        The seed may lie outside the limits, the answer never does. Never raises for a goal that
        cannot be met: see Solution.status and reason. Raises InputError for a seed of the wrong
        length or with NaN.
        """
        start = time.perf_counter()
        q = self._start(seed)
        form = self.closed_form
        if form is not None and goal.direction is not None:
            solved, position_error, direction_error, _ = kernels.nearest_solution(
                self.arm.joints,
                self.arm.tool,
                self.arm.limits,
                form.constants,
                goal.packed,
                self._search.settings,
                q,
                answer := np.empty(self.arm.n),
            )
            if solved:
                return Solution(Status.SOLVED, answer, position_error, direction_error)
        beyond = self._beyond_reach(goal)
        if beyond <= 0.0:
            found = self._search.search(goal, q, start)
            if found.solved:
                return Solution(
                    Status.SOLVED,
                    q,
                    found.position_error,
                    found.direction_error,
                    None,
                    found.restarts,
                )
        else:
            found = Found(False, math.inf, math.inf, 0)
        position_error, direction_error = self._search.approach(goal, q)
        status = Status.UNREACHABLE if beyond > 0.0 else Status.NOT_FOUND
        reason = self._reason(beyond, found)
        return Solution(status, q, position_error, direction_error, reason, found.restarts)

    def _beyond_reach(self, goal: Goal) -> float:
        """Distance [m] from the goal to the sphere that no joint values can leave; > 0 is a proof."""
        first = self.arm.joints[0, 3:6]
        distance = float(np.linalg.norm(goal.position - first))
        return distance - self.arm.reach - self._search.settings[0]

    def _reason(self, beyond: float, found: Found) -> Reason:
        if beyond > 0.0:
            return Reason(
                Block.TOO_FAR,
                beyond,
                f'the goal is at least {beyond:.4g} m out of reach',
            )
        if found.out_of_time:
            budget = self._search.time_budget
            return Reason(
                Block.TIME,
                budget,
                f'nothing found within the time budget of {budget:g} s',
            )
        return Reason(
            Block.SEARCH_ENDED,
            found.restarts,
            f'nothing found from the seed and {found.restarts} restarts',
        )
