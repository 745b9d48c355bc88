"""The configuration closest to a goal that cannot be met."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.model.arm import frozen
from ik_node.solver.closed_form import ClosedForm, Family
from ik_node.solver.goal import Goal
from ik_node.solver.restarts import RandomRestarts
from ik_node.solver.workspace_bounds import reach_shells

WIDE = (0.3, 0.03, 3e-3, 1e-4, 1e-5)  # decreasing weights, times the reach: the direction dominates at first
NARROW = (0.02, 1e-3, 1e-4, 1e-5)  # the position dominates throughout
STARTS = 64  # of the numeric search
REACHED = 1e-6  # m: below this position error a whole family of configurations is free for the direction
STARTS_PER_CHECK = 8  # between two checks of the clock, a quarter of a millisecond
FAR = 1e6  # times the reach: goals farther away are moved in to here, so that squares stay finite
TABLE = 64  # rows that the formula may fill
KNOWN = 2048  # start configurations for the position, the same for every goal and seed
PLACES = 16  # equally close ones that are kept
DISTANCES = 128  # distinct ones that are counted
DESCENTS_PER_CHECK = 32  # between two checks of the clock, half a millisecond


@dataclass(frozen=True, eq=False)
class ClosestConfiguration:
    """q (n,), its errors in m and rad, and in_place: whether the formula reaches the position.

    in_place is None if no formula was used.
    """

    q: Array
    position_error: float
    direction_error: float
    in_place: bool | None


class ClosestSearch:
    """Finds the least position error and, among configurations that have it, the least direction error.

    Remaining freedom is used to stay near the seed. The position is minimised first and alone, so that its
    error depends neither on the direction nor on the seed: by formula if axes 2, 3, 4 are parallel, else by
    descents until another minimum is unlikely (see docs).
    compromise [m/rad]: minimise position_error^2 + (compromise * direction_error)^2 instead.
    """

    def __init__(self, search: RandomRestarts, form: ClosedForm | None, compromise: float | None) -> None:
        """search: provides the arm, the random seed and the local method."""
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
        self._shells = reach_shells(arm)
        samples = arm.sample(np.random.default_rng((search.random_seed, KNOWN)), KNOWN)
        self._known = np.empty((arm.n + 6, KNOWN))
        kernels.tabulate_poses(arm.joints, arm.tool, samples, 0.0, self._known)
        # Limits a whole turn or more apart do not stop a descent: the result is wrapped back into them.
        bounds = np.array([arm.lower, arm.upper])
        whole_turns = (arm.period > 0.0) & (arm.upper - arm.lower >= arm.period)
        held = [name for ball in arm.balls if ball.limited for name in ball.joints]
        whole_turns &= ~np.isin(arm.joint_names, held)  # the twist of a ball may be a sum of two joints
        opened = np.where(whole_turns, [[-math.inf], [math.inf]], bounds)
        self._opened = frozen(np.vstack([opened, arm.limits[2:]]))
        self.endless = frozen(np.where(arm.period > 0.0, [[-math.inf], [math.inf]], bounds))

    def find(
        self,
        goal: Goal,
        seed: Array,
        found: Array,
        deadline: float = math.inf,
        beyond: bool = False,
        endless: bool = False,
    ) -> ClosestConfiguration:
        """Return the closest configuration to goal, near seed (n,); found (n,) is one more start.

        deadline: time.perf_counter() after which the numeric search starts no more descents. beyond: the
        position is known to be out of reach. endless: ignore the limits of revolute joints.
        """
        arm, packed = self.arm, self._within_far(goal)
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
        else:
            given = np.array([seed, found])
            if self.compromise is not None:
                table, errors, count = self._multistart(packed, opened, given, deadline, math.inf)
            else:
                bound = kernels.least_possible(self._shells, packed)
                table, errors, count = self._places(packed, opened, bound, given, deadline)
                if beyond or errors[:count, 0].min() > REACHED:
                    count = kernels.closest_out_of_reach(
                        arm.joints, arm.tool, opened, packed, self._narrow, seed, table, errors, count
                    )
                elif goal.direction is not None:
                    place, error = table[:1], errors[0]
                    given = np.vstack([given, place])
                    table, errors, count = self._multistart(packed, opened, given, deadline, 0.0)
                    table[count], errors[count] = place, error  # in case every descent has left the position
                    count += 1
            kernels.wrap_rows_into_limits(limits, arm.period, seed, table, count)
        if self.compromise is not None:
            errors[:, 0], errors[:, 1] = np.hypot(errors[:, 0], self.compromise * errors[:, 1]), 0.0
        q = table[kernels.best_row(errors, table, count, seed)].copy()
        kernels.keep_unused_joints(arm.joints, arm.tool, limits, goal.packed, seed, q)
        position_error, direction_error = kernels.goal_errors(arm.joints, arm.frames(q), goal.packed)
        return ClosestConfiguration(q, position_error, direction_error, in_place)

    def _places(
        self, goal: Array, limits: Array, bound: float, given: Array, deadline: float
    ) -> tuple[Array, Array, int]:
        """Minimise the position error from given (k, n): (table, errors (j, 2), number of rows).

        bound [m]: lower bound of that error. The tables have room for twice as many rows plus one.
        """
        arm = self.arm
        table, errors = np.empty((2 * PLACES + 1, arm.n)), np.empty((2 * PLACES + 1, 2))
        distances, values = np.empty(KNOWN), np.empty(DISTANCES)
        progress = np.zeros(3, dtype=np.int64)
        ended = False
        while not ended:
            ended = kernels.nearest_places(
                arm.joints,
                arm.tool,
                limits,
                goal,
                bound,
                self._known,
                given,
                DESCENTS_PER_CHECK,
                distances,
                progress,
                values,
                table[:PLACES],
                errors[:PLACES],
            )
            ended = ended or time.perf_counter() > deadline
        return table, errors, int(progress[2])

    def _multistart(
        self, goal: Array, limits: Array, given: Array, deadline: float, least: float
    ) -> tuple[Array, Array, int]:
        """Minimise both errors at once from given (k, n): (table (j, n), errors (j, 2), number of rows < j).

        least [m]: the smallest position error known to be attainable, infinite for a compromise.
        """
        arm = self.arm
        table, errors = np.empty((STARTS + 2, arm.n)), np.empty((STARTS + 2, 2))
        marks = np.empty((2, STARTS, arm.n))
        state = np.array([self.search.random_seed], dtype=np.uint64)
        count, step = 0, STARTS if deadline == math.inf else STARTS_PER_CHECK
        for first in range(0, STARTS, step):
            count = kernels.multistart(
                arm.joints,
                arm.tool,
                limits,
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
                least,
            )
            if time.perf_counter() > deadline:
                break
        return table, errors, count

    def _within_far(self, goal: Goal) -> Array:
        """Return the packed goal with a position that is at most FAR reaches away."""
        base = self.arm.joints[0, 3:6]
        distance = math.dist(goal.position, base)
        if distance <= self._far:
            return goal.packed
        packed = goal.packed.copy()
        packed[:3] = base + self._far * (goal.position / distance - base / distance)
        return packed


class ClosestByMethod(ClosestSearch):
    """The closest configuration that a local method finds on its own, for comparing methods."""

    def __init__(self, search: RandomRestarts) -> None:
        """search: the random restarts of the method."""
        super().__init__(search, None, None)

    def find(
        self,
        goal: Goal,
        seed: Array,  # noqa: ARG002 - the search started there
        found: Array,
        deadline: float = math.inf,  # noqa: ARG002
        beyond: bool = False,
        endless: bool = False,  # noqa: ARG002
    ) -> ClosestConfiguration:
        """As ClosestSearch.find, by descents of the method from found (n,)."""
        q = found.copy()
        return ClosestConfiguration(q, *self.search.approach(goal, q, beyond), None)
