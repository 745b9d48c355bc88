# SPDX-License-Identifier: Apache-2.0
"""Every solution of a goal: by formula or elimination, or by restarts until a missing one is unlikely."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import CHORD_TOLERANCE, DIRECTION, POSITION_TOLERANCE
from ik_node.model.arm import Arm, frozen
from ik_node.solver.closed_form import ClosedForm
from ik_node.solver.goal import SOLVED, Goal, Solution, Solutions, Solve, Status
from ik_node.solver.limit_distances import without_idle
from ik_node.solver.restarts import RandomRestarts
from ik_node.solver.unreachable import UnreachableGoals
from ik_node.steady import steady

from .elimination import MAX_SOLUTIONS, Elimination
from .redundancy import SelfMotions, is_redundant

MISSED_SHARE = 1e-3  # restarts continue until the estimated share of missed solutions is below this
DESCENTS_PER_ESTIMATE = 256
DESCENTS_PER_CHECK = 16  # of the clock: a fifth of a millisecond
REDUNDANT_PER_CHECK = 1  # likewise, where each solution is moved along its self-motion: milliseconds
SEARCH_SHARE = 0.85  # of the time budget for restarts; the rest is for the list of what they found
FAMILIES_SHARE = 0.5  # of the time; the rest is for restarts if that was not enough
MOVED = 0.05  # along a self-motion [rad or m]
SHARES = 1.0, 0.5, 0.25  # of such a motion: a shorter one may be that of a double solution
SHORTEST = 3e-3  # likewise, where its end is near
MIN_MOVED = 1e-4  # likewise, where the member nearest to the seed is
GAIN = 1e-3  # of squared distance to the seed by a step of length 1
CORRECTIONS, CORRECTED = 6, 1e-9  # Newton steps back to the goal after each; the last one [rad or m]
MAX_MOVES = 250  # along a self-motion, one way
SLIGHT = 2e-5  # rad: direction error along a self-motion, a few times what files that round pi cause
PLACED = 10.0  # weight of the position there: its tolerance is smaller
NO_MOTION = 1e-4  # share of the largest singular value: below this the joints may move
BESIDE = 0.01  # rad or m: a solution this near a self-motion is part of it
MAX_LISTED = 20_000  # configurations, whole turns included
DESCENTS_OF_CHECK = 32  # of an elimination that finds nothing or is rough
MAX_DESCENTS = 300_000  # even for the hardest goal


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
        self._slight = min(SLIGHT, self._options[CHORD_TOLERANCE])
        self._idle = int(arm.idle.sum())
        turning = (arm.turning_period > 0.0) & np.isfinite(arm.upper - arm.lower)
        spans = np.where(turning, arm.upper - arm.lower, 0.0) / np.where(turning, arm.period, 1.0)
        self._turns = np.floor(spans) + 1.0  # of each joint, at most
        self._variants = float(self._turns.prod())  # of a configuration by whole turns, at most
        self._opened = np.where(self._turns > 1.0, [[-math.inf], [math.inf]], arm.limits[:2])

    def find(self, goal: Goal, seed: Array, time_budget: float, solve: Solve) -> tuple[Array, Array, bool, bool]:
        """Return configurations (k, n), best first as IkSolver.solve_all, and their errors (k, 2) [m, rad].

        Also whether the list is shown to be complete, and whether joints may be free at a solution.
        time_budget: seconds after which restarts stop. solve: IkSolver.solve. Of a self-motion the
        configuration nearest to seed (n,) is returned.
        """
        began = steady()
        deadline = began + time_budget
        arm, elimination, packed = self._arm, self._elimination, goal.packed
        form = None if math.isnan(packed[DIRECTION]) else self._form
        found, start = np.empty((MAX_SOLUTIONS, arm.n)), np.empty(arm.n)
        kernels.start_within(arm.limits, seed, start)
        limits = without_idle(arm, start) if self._idle else arm.limits  # all their positions are one solution
        count, regular = 0, True
        if form is not None:
            count, regular = kernels.formula_solutions(
                arm.joints, arm.tool, limits, arm.period, form.constants, packed, self._options, start, found
            )
        if not count and self._unreachable.by_reach(goal) is not None:
            return *self._listed(packed, start, seed, found, 0, True), False
        if form is not None and form.exact and regular:
            count, complete = self._or_solved(goal, seed, found, count, deadline, solve)
            return *self._listed(packed, start, seed, found, count, complete), False
        state = self._search.first_state.copy()
        if elimination is not None and elimination.forms(packed):
            count, proof = elimination.solutions(packed, start, found, limits)
            regular = proof is not None
            if proof is not None and (proof.rough or not count):  # a few descents may find others
                before = count
                count, _ = self._explored(packed, limits, start, DESCENTS_OF_CHECK, state, False, found, count)
                regular = count == before
            if regular:
                count, complete = self._or_solved(goal, seed, found, count, deadline, solve)
                return *self._listed(packed, start, seed, found, count, complete), False
        if self._self_motions is not None:
            count = self._self_motions.find(packed, limits, start, state, found, began + FAMILIES_SHARE * time_budget)
            if count:
                return *self._listed(packed, start, seed, found, count, False), True
        # A goal that is singular for the formula or the elimination may leave a joint free.
        spare = is_redundant(arm, goal, self._idle)
        deadline = began + SEARCH_SHARE * time_budget
        count = self._searched(packed, limits, start, state, spare or not regular, not spare, found, count, deadline)
        return *self._listed(packed, start, seed, found, count, False), True

    def solutions(self, goal: Goal, seed: Array, time_budget: float, solve: Solve) -> Solutions:
        """Return what find does, each marked if it belongs to a self-motion."""
        rows, errors, complete, may_be_free = self.find(goal, seed, time_budget, solve)
        redundant = is_redundant(self._arm, goal)
        found = [
            Solution(SOLVED, q, position_error, direction_error, None, 0, redundant)
            for q, (position_error, direction_error) in zip(rows, errors.tolist(), strict=True)
        ]
        if may_be_free and not redundant:
            for solution, moves in zip(found, self.movable(goal, rows), strict=True):
                solution.self_motion = moves
        return Solutions(found, complete)

    def movable(self, goal: Goal, rows: Array) -> list[bool]:
        """Whether the joints of each solution (k, n) can move while goal stays met: a self-motion.

        Whole turns of joints change nothing, and there may be thousands of them.
        """
        period, alike = self._arm.turning_period, rows.copy()
        turning = period > 0.0
        alike[:, turning] -= period[turning] * np.round(rows[:, turning] / period[turning])
        _, first, which = np.unique(np.round(alike, 6), axis=0, return_index=True, return_inverse=True)
        found = np.array([self._is_movable(goal, rows[k]) for k in first], dtype=bool)
        return found[which.ravel()].tolist()

    def _is_movable(self, goal: Goal, q: Array) -> bool:
        tried = ((sign, MOVED * share) for share in SHARES for sign in (1.0, -1.0))
        return any(self._moved(goal.packed, q, *one) is not None for one in tried)

    def _moved(self, goal: Array, q: Array, along: Array | float, length: float) -> tuple[Array, Array] | None:
        """Move q (n,) by about length along its self-motion; (the solution there, the unit motion (n,)).

        along: the motion so far (n,), or the sign of the first one. None without solution of goal (9,) there.
        """
        arm, rows = self._arm, 3 if math.isnan(goal[DIRECTION]) else 6
        scale = np.repeat([PLACED / max(arm.reach, 1e-9), 1.0], 3)[:rows]
        free, motion = ~arm.idle & (arm.lower < arm.upper), np.zeros(arm.n)
        if not free.any():
            return None
        left, values, turns = np.linalg.svd(scale[:, None] * arm.jacobian(q)[:rows, free])
        rank = int((values > NO_MOTION * values[0]).sum())
        if rank == turns.shape[0]:
            return None
        if isinstance(along, float):
            motion[free] = along * turns[-1]
        else:
            motion[free] = turns[rank:].T @ (turns[rank:] @ along[free])
            motion /= max(float(np.linalg.norm(motion)), 1e-9)
        moved, low, high = q + length * motion, *self._opened
        for _ in range(CORRECTIONS):  # never along the self-motion, where nearly singular equations lead far
            error = scale * (goal[:rows] - np.concatenate(arm.fk(moved))[:rows])
            correction = left[:, :rank].T @ error / values[:rank]
            moved[free] += turns[:rank].T @ correction
            if np.abs(correction).max(initial=0.0) < CORRECTED:
                break
        if not ((low <= moved) & (moved <= high)).all() or (arm.has_cones and arm.ball_excess(moved) > 0.0):
            return None
        position_error, direction_error = kernels.goal_errors(arm.joints, arm.frames(moved), goal)
        met = position_error <= self._options[POSITION_TOLERANCE] and direction_error <= self._slight
        return (moved, motion) if met and (moved - q) @ motion > 0.5 * length else None

    def _self_motion(self, goal: Array, q: Array) -> Array:
        """Return members (k, n) of the self-motion through q (n,), MOVED apart, in order; k = 1: none."""
        ways = list[list[Array]]()
        for sign in (1.0, -1.0):
            way, length = [q], MOVED
            along: Array | float = sign
            ways.append(way)
            while length > SHORTEST and len(way) < MAX_MOVES:
                step = self._moved(goal, way[-1], along, length)
                if step is None:  # its end is nearer
                    length *= 0.5
                    if len(way) == 1 and length < SHARES[-1] * MOVED:
                        break
                    continue
                way.append(step[0])
                along, length = step[1], min(1.5 * length, MOVED)
                if len(way) > 3 and np.abs(self._gap(way[-1], q)).max() < MOVED:  # closed
                    return np.array([*way, q])
        return np.array([*ways[1][:0:-1], *ways[0]])

    def _gap(self, rows: Array, q: Array) -> Array:
        """Return rows (..., n) less q (n,), without whole turns."""
        period, gap = self._arm.turning_period, rows - q
        return gap - period * np.round(gap / np.where(period > 0.0, period, 1.0))

    def _nearest_member(self, goal: Array, members: Array, start: Array) -> Array:
        """Return the member of a self-motion, of which members (k, n) are given, nearest to start (n,)."""
        squares = (self._gap(members, start) ** 2).sum(axis=1)
        q, least, length = members[squares.argmin()], float(squares.min()), 0.5 * MOVED
        for _ in range(MAX_MOVES):
            steps = [self._moved(goal, q, sign, length) for sign in (1.0, -1.0)]
            ends = [step[0] for step in steps if step is not None]
            square, nearest = min(
                ((float((self._gap(end, start) ** 2).sum()), k) for k, end in enumerate(ends)),
                default=(math.inf, 0),
            )
            if square < least - GAIN * length**2:
                q, least = ends[nearest], square
            elif length < MIN_MOVED:
                break
            else:
                length *= 0.5
        return q

    def _united(
        self,
        goal: Array,
        start: Array,
        found: Array,
        first: int,
        count: int,
        curves: list[Array],
        deadline: float,
    ) -> int:
        """Leave one row of found (k, n), from row first to count, for each self-motion; the new count.

        That nearest to start (n,). curves: the members of those that are known, to which others are added
        until deadline.
        """
        kept = first
        for q in found[first:count].copy():
            if any(self._is_beside(q, curve) for curve in curves):
                continue
            found[kept] = q
            members = self._self_motion(goal, q) if steady() < deadline else q[None]
            if len(members) > 1:
                curves.append(members)
                found[kept] = self._nearest_member(goal, members, start)
            kept += 1
        return kept

    def _is_beside(self, q: Array, curve: Array) -> bool:
        """Whether q (n,) is on the polyline of members (k, n) of a self-motion."""
        back, steps = self._gap(curve[:-1], q), np.diff(curve, axis=0)
        share = np.clip(-(back * steps).sum(axis=1) / np.maximum((steps**2).sum(axis=1), 1e-18), 0.0, 1.0)
        return bool(np.abs(back + share[:, None] * steps).max(axis=1).min() < BESIDE)

    def _searched(
        self,
        goal: Array,
        limits: Array,
        start: Array,
        state: NDArray[np.uint64],
        redundant: bool,
        unite: bool,
        found: Array,
        count: int,
        deadline: float,
    ) -> int:
        """Append what restarts find until a missing solution is unlikely; return the new count.

        unite: the arm has no joint to spare, so a self-motion is a curve, of which one row is kept.
        """
        descents, successes, curves = 0, 0, list[Array]()
        per_check = REDUNDANT_PER_CHECK if redundant else DESCENTS_PER_CHECK
        if unite:
            count = self._united(goal, start, found, 0, count, curves, deadline)
        while descents < MAX_DESCENTS and steady() < deadline:
            known = count
            count, hits = self._explored(goal, limits, start, per_check, state, redundant, found, count)
            if unite:
                count = self._united(goal, start, found, known, count, curves, deadline)
            descents += per_check
            successes += hits
            if descents % DESCENTS_PER_ESTIMATE:
                continue
            hopeless = count == 0 and descents >= self._search.restarts
            if hopeless or missed_share(count, successes) < MISSED_SHARE:
                break
        return count

    def _or_solved(
        self, goal: Goal, seed: Array, found: Array, count: int, deadline: float, solve: Solve
    ) -> tuple[int, bool]:
        """Write what solve finds into found (k, n) if it is empty; return its count, and if it is complete.

        Formula and elimination find what meets goal exactly. Next to a limit, or where two solutions have just
        become one, a configuration may meet it within the tolerances only; others such may be beside it.
        """
        if count:
            return count, True
        asked = goal if goal.lateral is None else Goal(goal.position, goal.direction)
        answer = solve(asked, seed, max(deadline - steady(), 1e-6))
        found[0] = answer.q
        return int(answer.solved), answer.status is Status.UNREACHABLE

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
        if count * self._variants > MAX_LISTED:
            complete, turns = False, int(self._turns.max())
            while turns > 1 and count * np.minimum(self._turns, turns).prod() > MAX_LISTED:
                turns -= 1
            many = self._turns > turns
            near = 0.5 * turns * arm.period
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
