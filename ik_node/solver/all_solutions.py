# SPDX-License-Identifier: Apache-2.0
"""Every solution of a goal: by formula or elimination, or by restarts until a missing one is unlikely."""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays.layout import CHORD_TOLERANCE, DIRECTION, ITERATIONS, POSITION_TOLERANCE
from ik_node.model.arm import Arm, frozen
from ik_node.solver.closed_form import ClosedForm
from ik_node.solver.elimination.elimination import MOST_SOLUTIONS, Elimination
from ik_node.solver.goal import Goal, Solution, Solutions, Status
from ik_node.solver.limit_distances import held_idle
from ik_node.solver.redundancy.self_motions import SelfMotions, is_redundant
from ik_node.solver.restarts import RandomRestarts
from ik_node.solver.unreachable import UnreachableGoals

MISSED_SHARE = 1e-3  # restarts continue until the estimated share of missed solutions is below this
DESCENTS_PER_ESTIMATE = 256
DESCENTS_PER_CHECK = 16  # of the clock: a fifth of a millisecond
REDUNDANT_PER_CHECK = (
    1  # likewise, where solutions are moved along their self-motions, which takes milliseconds each
)
SEARCH_SHARE = 0.85  # of the time budget for restarts; the rest is for the list of what they found
FAMILIES_SHARE = 0.5  # of the time; the rest is for restarts if that was not enough
MOVED, MOVED_EXACTLY = 0.05, 1e-9  # along a self-motion [rad or m], and its errors [m and rad]
NO_MOTION = 1e-6  # share of the largest singular value: below this the joints may move
MOST_LISTED = 20_000  # configurations, whole turns included
DESCENTS_OF_CHECK = 32  # of an elimination that finds nothing or is rough
MOST_DESCENTS = 300_000  # even for the hardest goal


class AllSolutions:
    """Finds the configurations that meet a goal within the limits, whole turns included."""

    def __init__(
        self,
        arm: Arm,
        form: ClosedForm | None,
        elimination: Elimination | None,
        self_motions: SelfMotions | None,
        search: RandomRestarts,
        unreachable: UnreachableGoals,
    ) -> None:
        self._arm, self._form, self._elimination, self._self_motions = arm, form, elimination, self_motions
        self._search, self._options, self._unreachable = search, search.options, unreachable
        self._idle = int(arm.idle.sum())
        turning = (arm.turning_period > 0.0) & np.isfinite(arm.upper - arm.lower)
        spans = np.where(turning, arm.upper - arm.lower, 0.0) / np.where(turning, arm.period, 1.0)
        self._turns = np.floor(spans) + 1.0  # of each joint, at most
        self._variants = float(self._turns.prod())  # of a configuration by whole turns, at most

    def find(self, goal: Goal, seed: Array, time_budget: float) -> tuple[Array, Array, bool]:
        """Return configurations (k, n), best first as IkSolver.solve_all, and their errors (k, 2) [m, rad].

        Also whether the list is shown to be complete. time_budget: seconds after which restarts stop. Of a
        self-motion the configuration nearest to seed (n,) is returned.
        """
        began = time.perf_counter()
        arm, elimination, packed = self._arm, self._elimination, goal.packed
        form = None if math.isnan(packed[DIRECTION]) else self._form
        found, start = np.empty((MOST_SOLUTIONS, arm.n)), np.empty(arm.n)
        kernels.start_within(arm.limits, seed, start)
        limits = held_idle(arm, start) if self._idle else arm.limits  # all their positions are one solution
        count, regular = 0, True
        if form is not None:
            count, regular = kernels.formula_solutions(
                arm.joints, arm.tool, limits, arm.period, form.constants, packed, self._options, start, found
            )
        if not count and self._unreachable.by_reach(goal) is not None:
            return self._listed(packed, start, seed, found, 0, True)
        if form is not None and form.exact and regular:
            lost = not count and self._is_met(goal, start, found[0], began + time_budget)
            return self._listed(packed, start, seed, found, count + lost, not lost)
        state = np.array([self._search.random_seed], dtype=np.uint64)
        if elimination is not None and elimination.forms(packed):
            count, proof = elimination.solutions(packed, start, found, limits)
            regular = proof is not None
            if proof is not None and (proof.rough or not count):  # a few descents may find others
                before = count
                count, _ = self._explored(
                    packed, limits, start, DESCENTS_OF_CHECK, state, False, found, count
                )
                count += not count and self._is_met(goal, start, found[0], began + time_budget)
                regular = count == before
            if regular:
                return self._listed(packed, start, seed, found, count, True)
        if self._self_motions is not None:
            deadline = began + FAMILIES_SHARE * time_budget
            count = self._self_motions.find(packed, limits, start, state, found, deadline)
            if count:
                return self._listed(packed, start, seed, found, count, False)
        # A goal that is singular for the formula or the elimination may leave a joint free.
        redundant = is_redundant(arm, goal, self._idle) or not regular
        deadline = began + SEARCH_SHARE * time_budget
        count = self._searched(packed, limits, start, state, redundant, found, count, deadline)
        return self._listed(packed, start, seed, found, count, False)

    def solutions(self, goal: Goal, seed: Array, time_budget: float) -> Solutions:
        """Return what find does, each marked if it belongs to a self-motion."""
        deadline = time.perf_counter() + time_budget
        rows, errors, complete = self.find(goal, seed, time_budget)
        free = [is_redundant(self._arm, goal)] * len(rows)
        if not complete and not any(free):
            free = self.movable(goal, rows, deadline)
        found = [
            Solution(Status.SOLVED, q, position_error, direction_error, None, 0, moves)
            for q, (position_error, direction_error), moves in zip(rows, errors.tolist(), free, strict=True)
        ]
        return Solutions(found, complete)

    def movable(self, goal: Goal, rows: Array, deadline: float = math.inf) -> list[bool]:
        """Whether the joints of each solution (k, n) can move while goal stays met: a self-motion.

        False for those that are not looked at before the deadline (time.perf_counter).
        Whole turns of joints change nothing, and there may be thousands of them.
        """
        period, alike = self._arm.turning_period, rows.copy()
        turning = period > 0.0
        alike[:, turning] -= period[turning] * np.round(rows[:, turning] / period[turning])
        _, first, which = np.unique(np.round(alike, 6), axis=0, return_index=True, return_inverse=True)
        found = np.array(
            [time.perf_counter() < deadline and self._is_movable(goal, rows[k]) for k in first], dtype=bool
        )
        return found[which.ravel()].tolist()

    def _is_movable(self, goal: Goal, q: Array) -> bool:
        arm, options = self._arm, self._options.copy()
        options[[POSITION_TOLERANCE, CHORD_TOLERANCE]], options[ITERATIONS] = MOVED_EXACTLY, 30.0
        rows = 3 if math.isnan(goal.packed[DIRECTION]) else 6
        scale = np.repeat([1.0 / max(arm.reach, 1e-9), 1.0], 3)[:rows, None]
        free = ~arm.idle & (arm.lower < arm.upper)
        _, values, turns = np.linalg.svd(scale * arm.jacobian(q)[:rows, free])
        if len(values) == turns.shape[0] and values[-1] > NO_MOTION * values[0]:
            return False
        table, state = np.empty((arm.n + 6, 0)), np.zeros(1, dtype=np.uint64)
        for step in (MOVED, -MOVED):
            moved = q.copy()
            moved[free] += step * turns[-1]
            start, scratch = moved.copy(), np.empty(arm.n)
            model = arm.joints, arm.tool, arm.limits
            met = kernels.search_lm(*model, goal.packed, options, table, 0, 1, state, scratch, start)[3]
            if met and np.abs(start - q).max() > 0.5 * MOVED * np.abs(turns[-1]).max():
                return True
        return False

    def _searched(
        self,
        goal: Array,
        limits: Array,
        start: Array,
        state: NDArray[np.uint64],
        redundant: bool,
        found: Array,
        count: int,
        deadline: float,
    ) -> int:
        """Append what restarts find until a missing solution is unlikely; return the new count."""
        descents = successes = 0
        per_check = REDUNDANT_PER_CHECK if redundant else DESCENTS_PER_CHECK
        while descents < MOST_DESCENTS and time.perf_counter() < deadline:
            count, hits = self._explored(goal, limits, start, per_check, state, redundant, found, count)
            descents += per_check
            successes += hits
            if descents % DESCENTS_PER_ESTIMATE:
                continue
            hopeless = count == 0 and descents >= self._search.restarts
            if hopeless or missed_share(count, successes) < MISSED_SHARE:
                break
        return count

    def _is_met(self, goal: Goal, start: Array, q: Array, deadline: float) -> bool:
        """Search from start (n,) and the nearest known poses, write the end into q (n,); whether goal is met.

        Where two solutions have just become one, formula and elimination may lose both.
        """
        q[:] = start
        return self._search.search(goal, q, deadline, kernels.INFORMED).solved

    def _explored(
        self,
        goal: Array,
        limits: Array,
        start: Array,
        descents: int,
        state: NDArray[np.uint64],
        redundant: bool,
        found: Array,
        count: int,
    ) -> tuple[int, int]:
        """Append what descents find; return the new count, and how many descents met goal (9,)."""
        model = self._arm.joints, self._arm.tool, limits, self._arm.period
        explored: tuple[int, int] = kernels.explore(
            *model, goal, self._options, descents, state, start, redundant, found, count
        )
        return explored

    def _listed(
        self, goal: Array, start: Array, seed: Array, found: Array, count: int, complete: bool
    ) -> tuple[Array, Array, bool]:
        """Return all solutions with their whole turns (k, n), best first, and their errors (k, 2).

        Also complete, or False if there are so many that only turns around start (n,) are listed.
        """
        arm, limits = self._arm, self._arm.limits
        if count * self._variants > MOST_LISTED:
            complete, most = False, int(self._turns.max())
            while most > 1 and count * np.minimum(self._turns, most).prod() > MOST_LISTED:
                most -= 1
            many = self._turns > most
            near = 0.5 * most * arm.period
            limits = limits.copy()
            limits[0, many] = np.maximum(limits[0], start - near)[many]
            limits[1, many] = np.minimum(limits[1], start + near)[many]
            limits = frozen(limits)
        model = arm.joints, arm.tool, limits, arm.turning_period
        rows, errors = kernels.list_solutions(*model, goal, self._options, start, seed, found, count)
        return rows, errors, complete


def missed_share(distinct: int, successes: int) -> float:
    """Estimate the share of solutions not seen yet after so many successful descents.

    The posterior mean of the number of solutions after w distinct ones in N descents is
    w (N - 1) / (N - w - 2) (Boender and Rinnooy Kan, Mathematical Programming 37, 1987), so the
    share missed is (w + 1) / (N - 1).
    """
    return (distinct + 1) / (successes - 1) if distinct and successes > distinct + 2 else math.inf
