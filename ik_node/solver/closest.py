"""The configuration that comes nearest to a goal that cannot be met."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from ik_node import kernels
from ik_node.checks import Vector
from ik_node.model.arm import frozen
from ik_node.solver.closed_form import ClosedForm, Family
from ik_node.solver.goal import Goal
from ik_node.solver.restarts import Annealing

WIDE = (0.3, 0.03, 3e-3, 1e-4, 1e-5)  # falling weights, times the reach: the direction leads at first
NARROW = (0.02, 1e-3, 1e-4, 1e-5)  # the position leads all the way
STARTS = 64  # of the numeric way
STARTS_PER_CHECK = 8  # between two looks at the clock, a quarter of a millisecond
FAR = 1e6  # times the reach: goals further off are drawn in to here, where squares stay finite
TABLE = 24  # rows that the formula may fill
OUT_OF_REACH = 20  # rows for a goal beyond reach, where the position leaves few minima


@dataclass(frozen=True, eq=False)
class Effort:
    """A best effort: q (n,), its errors in m and rad, and whether the formula reaches the position.

    in_place is None where no formula was asked.
    """

    q: Vector
    position_error: float
    direction_error: float
    in_place: bool | None


class BestEffort:
    """Finds the least position error and, among configurations that have it, the least direction error.

    What is still free then stays near the seed. Arms with axes 2, 3, 4 parallel have a formula (a
    one-dimensional problem, see docs); elsewhere Newton descents start from the seed and random places.
    compromise [m/rad]: minimise position_error^2 + (compromise * direction_error)^2 instead.
    """

    def __init__(self, search: Annealing, form: ClosedForm | None, compromise: float | None) -> None:
        """search: what it knows about arm and task is used here too."""
        arm = search.arm
        self.arm = arm
        self.search = search
        self.form = form if form is not None and form.family is not Family.WRIST else None
        self.compromise = compromise
        reach = min(max(arm.reach, 1e-3), 1e3)
        if compromise is None:
            self._wide, self._narrow = reach * np.array(WIDE), reach * np.array(NARROW)
        else:
            falling = [reach * weight for weight in WIDE if reach * weight > compromise]
            self._wide = self._narrow = np.array([*falling, compromise])
        self._far = FAR * reach
        # Limits that are a turn or more apart stop no descent: what crosses them is turned back.
        whole_turns = (arm.period > 0.0) & (arm.upper - arm.lower >= arm.period)
        self._opened = frozen(np.where(whole_turns, [[-math.inf], [math.inf]], arm.limits))
        self.endless = frozen(np.where(arm.period > 0.0, [[-math.inf], [math.inf]], arm.limits))

    def find(
        self,
        goal: Goal,
        seed: Vector,
        found: Vector,
        deadline: float = math.inf,
        beyond: bool = False,
        endless: bool = False,
    ) -> Effort:
        """Return the best effort for goal near seed (n,); found (n,) is one more place to start from.

        deadline: time.perf_counter() after which the numeric way starts no more descents. beyond: the
        position is known to be out of reach. endless: as if hinges had no limits.
        """
        arm, packed = self.arm, self._drawn_in(goal)
        limits, opened = (self.endless, self.endless) if endless else (arm.limits, self._opened)
        in_place = None
        if self.form is not None and self.compromise is None:
            table, errors = np.empty((TABLE, arm.n)), np.empty((TABLE, 2))
            count, in_place = kernels.closest_parallel(
                arm.joints,
                arm.tool,
                limits,
                opened,
                arm.period,
                self.form.constants,
                packed,
                self._narrow,
                seed,
                found,
                table,
                errors,
            )
        elif beyond and self.compromise is None:
            table, errors = np.empty((OUT_OF_REACH, arm.n)), np.empty((OUT_OF_REACH, 2))
            count = kernels.closest_out_of_reach(
                arm.joints,
                arm.tool,
                opened,
                packed,
                self._narrow,
                self.search.table,
                self.search.weight,
                np.array([seed, found]),
                table,
                errors,
            )
            kernels.wrap_rows_into_limits(limits, arm.period, seed, table, count)
        else:
            table, errors, count = self._scatter(packed, limits, opened, np.array([seed, found]), deadline)
        if self.compromise is not None:
            errors[:, 0], errors[:, 1] = np.hypot(errors[:, 0], self.compromise * errors[:, 1]), 0.0
        q = table[kernels.best_row(errors, table, count, seed)].copy()
        kernels.keep_unused_joints(arm.joints, arm.tool, limits, goal.packed, seed, q)
        position_error, direction_error = kernels.goal_errors(arm.joints, arm.frames(q), goal.packed)
        return Effort(q, position_error, direction_error, in_place)

    def _scatter(
        self, goal: Vector, limits: Vector, opened: Vector, given: Vector, deadline: float
    ) -> tuple[Vector, Vector, int]:
        """The numeric way, from given (2, n) on: (table (k, n), errors (k, 2), number of rows)."""
        arm = self.arm
        table, errors = np.empty((STARTS + 1, arm.n)), np.empty((STARTS + 1, 2))
        marks = np.empty((2, STARTS, arm.n))
        state = np.array([self.search.random_seed], dtype=np.uint64)
        count, step = 0, STARTS if deadline == math.inf else STARTS_PER_CHECK
        for first in range(0, STARTS, step):
            count = kernels.multistart(
                arm.joints,
                arm.tool,
                opened,
                goal,
                self._wide,
                self._narrow,
                given,
                first,
                first + step,
                state,
                table,
                errors,
                marks,
                count,
            )
            if time.perf_counter() > deadline:
                break
        kernels.wrap_rows_into_limits(limits, arm.period, given[0], table, count)
        return table, errors, count

    def _drawn_in(self, goal: Goal) -> Vector:
        """The packed goal, its position drawn in where it is absurdly far away."""
        base = self.arm.joints[0, 3:6]
        distance = math.dist(goal.position, base)
        if distance <= self._far:
            return goal.packed
        packed = goal.packed.copy()
        packed[:3] = base + self._far * (goal.position / distance - base / distance)
        return frozen(packed)


class OwnBestEffort(BestEffort):
    """What a method of descent reaches by itself, where methods are compared."""

    def __init__(self, search: Annealing) -> None:
        """search: of the method."""
        super().__init__(search, None, None)

    def find(
        self,
        goal: Goal,
        seed: Vector,  # noqa: ARG002 - the search has been there
        found: Vector,
        deadline: float = math.inf,  # noqa: ARG002
        beyond: bool = False,
        endless: bool = False,  # noqa: ARG002
    ) -> Effort:
        """As BestEffort.find, by the descents of the method from found (n,) on."""
        q = found.copy()
        return Effort(q, *self.search.approach(goal, q, beyond), None)
