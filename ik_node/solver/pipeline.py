# SPDX-License-Identifier: Apache-2.0
"""Pipeline: the stages from a goal to its solution, in the order in which IkSolver tries them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import DIRECTION, LATERAL, POSITION_TOLERANCE
from ik_node.model.arm import Arm, frozen
from ik_node.model.ball import Ball, Order
from ik_node.solver.closed_form import RESIDUAL_MARGIN, ROLL_TOLERANCE, ClosedForm, Family
from ik_node.solver.goal import SOLVED, Cause, Goal, Reason, Solution, Status
from ik_node.solver.restarts import RandomRestarts, SearchResult
from ik_node.solver.unreachable import NearMiss, UnreachableGoals, cannot_point, nearest_miss
from ik_node.steady import steady

from .closest import ClosestConfiguration, ClosestSearch
from .elimination import MAX_SOLUTIONS, Elimination
from .redundancy import is_redundant

RESTARTS = 16  # of the search without the limits of balls


def beyond_a_ball(arm: Arm, q: Array) -> tuple[float, Ball | None, str]:
    """Return by how much [rad] q (n,) exceeds the limits of a ball most, which ball, and a sentence."""
    worst: tuple[float, Ball | None, str] = (0.0, None, '')
    for ball in arm.balls:
        if not ball.declared:
            continue
        at = [arm.joint_names.index(name) for name in ball.joints]
        swing_x, swing_y, twist = ball.swing_twist((float(q[at[0]]), float(q[at[1]]), float(q[at[2]])))
        swing = math.hypot(swing_x, swing_y)
        low, high = ball.twist
        for excess, what, value, allowed in (
            (swing - ball.swing, 'swing', swing, f'at most {ball.swing:.4g}'),
            (max(low - twist, twist - high), 'twist', twist, f'{low:.4g} to {high:.4g}'),
        ):
            if excess > worst[0]:
                joints = ', '.join(ball.joints)
                sentence = f'the ball joint of {joints} would {what} to {value:.4g} rad, allowed: {allowed}'
                worst = excess, ball, sentence
    return worst


def blocking_ball(search: RandomRestarts, goal: Goal, seed: Array, deadline: float) -> Reason | None:
    """Return which ball's limits a solution without them exceeds, None if none is found.

    Such a solution shows what excludes it, not that there is no other. deadline: steady() at which
    the search gives up.
    """
    q = seed.copy()
    limits = _without_balls(search.arm)
    found = search.search(goal, q, deadline, min(RESTARTS, search.restarts), limits)
    excess, ball, sentence = beyond_a_ball(search.arm, q)
    if not found.solved or ball is None:
        return None
    return Reason(Cause.BALL_LIMIT, excess, sentence, ball.joints[0])


def _without_balls(arm: Arm) -> Array:
    """Return the limits (2, n) as they would be without those of the balls."""
    lower, upper = arm.lower.copy(), arm.upper.copy()
    for ball in arm.balls:
        for name, (low, high) in zip(ball.joints, ball.given, strict=True):
            j = arm.joint_names.index(name)
            span = (-ball.swing, ball.swing) if name in ball.swing_joints else ball.twist
            if ball.order is Order.PROPER and name not in ball.swing_joints:
                continue
            # Where the ball has narrowed a joint: other limits, from files of the user, stay.
            lower[j] = low if ball.declared and lower[j] == span[0] else lower[j]
            upper[j] = high if ball.declared and upper[j] == span[1] else upper[j]
    return frozen(np.array([lower, upper]))


LIMIT_MARGIN = 1e-4  # rad: if a solution exceeds limits by less, algebra is not conclusive
NO_SEARCH = SearchResult(False, math.inf, math.inf, 0)
NEARBY = 8  # goals nearby whose solutions are starts
AWAY = 4.0  # times the tolerances: how far these goals are
LOOSELY = 20.0  # times the tolerances for their solutions: with few DoF there may be no others
OUTSIDE = 0.3  # rad or m: solutions that exceed limits by less are starts
FEW_RESTARTS = 16  # before algebra decides whether there is a solution


@dataclass(eq=False, slots=True)
class Task:
    """A goal and the intermediate results of the stages.

    seed (n,). deadline: steady() when the budget [s] ends. excluded: formula or elimination find
    no solution within the limits; rounding near double roots and limits may hide one with errors
    below RESIDUAL_MARGIN. near_miss: the solution with the smallest limit violation. q (n,): start of the
    next search, and the best of the last one. found: result of the last search. closest: the closest
    configuration, known from the stage of that name on.
    """

    goal: Goal
    seed: Array
    deadline: float
    budget: float
    excluded: bool
    near_miss: NearMiss | None
    q: Array
    found: SearchResult = NO_SEARCH
    closest: ClosestConfiguration = field(init=False)

    @property
    def late(self) -> bool:
        """Whether the time budget has ended."""
        return steady() > self.deadline


class Pipeline:
    """Solves the goals of one arm in stages: the closed form, then those of __call__, in that order.

    trusted: whether a closed form without a solution shows that there is none. shells: bounds of the reach,
    as in kernels.out_of_reach.
    """

    def __init__(
        self,
        form: ClosedForm | None,
        elimination: Elimination | None,
        search: RandomRestarts,
        closest: ClosestSearch,
        unreachable: UnreachableGoals,
        is_outside: Callable[[Goal], bool],
    ) -> None:
        """is_outside: whether an arm with four effective DoF cannot take the direction of a goal, see ConeGoals."""
        self.form, self.search, self.shells = form, search, unreachable.shells
        self._elimination, self._closest, self._unreachable = elimination, closest, unreachable
        self._arm, self._is_outside = search.arm, is_outside
        self.trusted = form is not None and form.exact
        # Whether the closest configuration by formula decides which positions, without a direction, are
        # reachable: its error is off by no more than the geometry is, which is below RESIDUAL_MARGIN.
        self._form_decides_positions = (
            form is not None and form.family is Family.PARALLEL_ROLL and form.deviation < ROLL_TOLERANCE
        )
        self._algebra_decides: dict[bool, bool] = {}  # of goals without direction, and of others
        rng = np.random.default_rng((search.random_seed, NEARBY))
        turns = rng.normal(size=(2, NEARBY, 3))
        self._shifts = AWAY * turns / np.linalg.norm(turns, axis=2)[:, :, None]

    def __call__(self, goal: Goal, seed: Array, excluded: bool, budget: float) -> Solution:
        """Solve goal from seed (n,) within a time budget [s], after the closed form.

        excluded: whether that shows that there is no solution.
        """
        near_miss = None
        excluded = excluded or self._is_outside(goal)  # such as across the arm, where the formula does not decide
        if excluded:
            near_miss = nearest_miss(self._arm, self._unreachable.by_formula(goal.packed, seed))
        q = seed.copy() if near_miss is None else near_miss.q
        task = Task(goal, seed, steady() + budget, budget, excluded, near_miss, q)
        return (
            self._outside_workspace(task)
            or self._restarts(task)
            or self._by_elimination(task)
            or self._closest_configuration(task)
            or self._within_tolerances(task)
            or self._unreachable_if_certain(task)
            or self._restarts_after_doubt(task)
            or self._not_found(task)
        )

    def restarts_before_algebra(self, packed: Array) -> int | None:
        """Return how many restarts goals such as goal (9,) get before algebra decides, None for all."""
        position_only = math.isnan(packed[DIRECTION])
        if position_only not in self._algebra_decides:
            self._algebra_decides[position_only] = (position_only and self._form_decides_positions) or (
                self._elimination is not None and self._elimination.may_serve(packed)
            )
        return FEW_RESTARTS if self._algebra_decides[position_only] else None

    def _outside_workspace(self, task: Task) -> Solution | None:
        """Positions that no joint positions reach, by the link lengths alone."""
        if self._unreachable.by_reach(task.goal) is None:
            return None
        task.closest = closest = self._closest.find(task.goal, task.seed, task.q, task.deadline, beyond=True)
        if self.search.met(closest.position_error, closest.direction_error):
            return self._solution(task, closest.q, closest.position_error, closest.direction_error)
        return self._unreachable_solution(task)

    def _restarts(self, task: Task) -> Solution | None:
        """The search from the seed with random restarts: a few if a later stage decides."""
        return None if task.excluded else self._searched(task, self.restarts_before_algebra(task.goal.packed))

    def _by_elimination(self, task: Task) -> Solution | None:
        """All solutions by elimination: the one nearest to the seed, or none and thus an excluded goal."""
        if task.excluded or task.late or self._elimination is None:
            return None
        arm, packed = self._arm, task.goal.packed
        rows = np.empty((MAX_SOLUTIONS, arm.n))
        count, proof = self._elimination.solutions(packed, task.seed, rows, arm.limits)
        if count:
            q = rows[np.abs(rows[:count] - task.seed).max(axis=1).argmin()].copy()
            return self._solution(task, q, *errors_of(arm, packed, q))
        task.excluded = proof is not None
        count, _ = self._elimination.solutions(packed, task.seed, rows)
        task.near_miss = nearest_miss(arm, rows[:count])
        if task.near_miss is not None:
            task.q = task.near_miss.q
        return None

    def _closest_configuration(self, task: Task) -> Solution | None:
        """The closest configuration; its errors may be within the tolerances after all."""
        task.closest = closest = self._closest.find(task.goal, task.seed, task.q, task.deadline)
        if not self.search.met(closest.position_error, closest.direction_error):
            return None
        return self._solution(task, closest.q, closest.position_error, closest.direction_error)

    def _within_tolerances(self, task: Task) -> Solution | None:
        """Configurations within both tolerances of a goal that none meets exactly.

        Where two solutions have just become complex, descents also start at solutions of nearby goals.
        """
        closest, search = task.closest, self.search
        least = search.options[POSITION_TOLERANCE] + self._closest.equal
        if self._closest.direction_weight is None and closest.position_error > least:
            return None
        given = np.vstack([task.seed, closest.q, task.q, *self._solutions_nearby(task)])
        q = self._closest.within(task.goal, task.seed, given, task.deadline)
        return None if q is None else self._solution(task, q, *errors_of(self._arm, task.goal.packed, q))

    def _solutions_nearby(self, task: Task) -> list[Array]:
        """Return solutions of nearby goals that are slightly outside the limits, clipped to them."""
        packed, found = task.goal.packed, list[Array]()
        if math.isnan(packed[DIRECTION]):
            return found
        tolerances = self.search.options[POSITION_TOLERANCE], self.search.direction_tolerance
        for shift, turn in zip(*self._shifts, strict=True):
            goal = packed.copy()
            goal[:DIRECTION] += tolerances[0] * shift
            axis = goal[DIRECTION:LATERAL] + tolerances[1] * turn
            goal[DIRECTION:LATERAL] = axis / np.linalg.norm(axis)
            misses = (nearest_miss(self._arm, row[None]) for row in self._by_algebra(goal, task.seed))
            found += [miss.q for miss in misses if miss is not None and miss.excess < OUTSIDE]
            if task.late:
                break
        return found

    def _by_algebra(self, packed: Array, seed: Array) -> Array:
        """Return the solutions (k, n) of goal packed (9,) by elimination or formula, whatever the limits."""
        if self._elimination is None or not self._elimination.forms(packed):
            return self._unreachable.by_formula(packed, seed, LOOSELY)
        rows = np.empty((MAX_SOLUTIONS, self._arm.n))
        return rows[: self._elimination.solutions(packed, seed, rows)[0]]

    def _unreachable_if_certain(self, task: Task) -> Solution | None:
        """UNREACHABLE, unless the closest configuration is within rounding of a solution.

        If time has run out, a configuration within the tolerances may have been missed: nothing is proven.
        """
        closest, near_miss = task.closest, task.near_miss
        by_formula = self._form_decides_positions and task.goal.direction is None and not closest.in_place
        near = max(closest.position_error, closest.direction_error) < RESIDUAL_MARGIN
        near = near or (near_miss is not None and near_miss.excess < LIMIT_MARGIN)
        if not (task.excluded or by_formula) or near or task.late:
            return None
        answer = self._unreachable_solution(task)
        reason = answer.reason
        assert reason is not None
        return None if reason.cause is Cause.JOINT_LIMIT and reason.amount < LIMIT_MARGIN else answer

    def _restarts_after_doubt(self, task: Task) -> Solution | None:
        """The full search, if it was shortened or skipped although there may be a solution."""
        if task.late or (not task.excluded and self.restarts_before_algebra(task.goal.packed) is None):
            return None
        task.q = task.closest.q.copy() if task.near_miss is None else task.near_miss.q
        return self._searched(task, None)

    def _not_found(self, task: Task) -> Solution:
        """NOT_FOUND with the closest configuration, and which budget was exhausted."""
        closest, found, search = task.closest, task.found, self.search
        if found.out_of_time or task.late:
            budget = task.budget
            sentence = f'the computer was too slow for this goal: the search ended after {budget:g} s; try again'
            in_place = task.goal.direction is not None and closest.position_error <= search.options[POSITION_TOLERANCE]
            if task.excluded and in_place:  # what is left to search are errors within the tolerances
                sentence = (
                    f'{cannot_point(closest.direction_error)}; the search for a closer one took over {budget:g} s'
                )
            reason = Reason(Cause.TIME, budget, sentence)
        else:
            sentence = f'no solution found from the seed and {found.restarts} random restarts'
            reason = Reason(Cause.SEARCH_ENDED, found.restarts, sentence)
            has_cones = self._arm.has_cones
            ball = blocking_ball(search, task.goal, task.seed, task.deadline) if has_cones else None
            if ball is not None:
                reason = replace(ball, sentence=f'{sentence}; without its limits {ball.sentence}')
        errors = closest.position_error, closest.direction_error
        return Solution(Status.NOT_FOUND, closest.q, *errors, reason, found.restarts)

    def _searched(self, task: Task, max_restarts: int | None) -> Solution | None:
        """Search from task.q with at most this number of restarts, None: all."""
        found = task.found = self.search.search(task.goal, task.q, task.deadline, max_restarts)
        if not found.solved:
            return None
        return self._solution(task, task.q, found.position_error, found.direction_error)

    def _solution(self, task: Task, q: Array, position_error: float, direction_error: float) -> Solution:
        self_motion = is_redundant(self._arm, task.goal)
        restarts = task.found.restarts
        return Solution(SOLVED, q, position_error, direction_error, None, restarts, self_motion)

    def _unreachable_solution(self, task: Task) -> Solution:
        closest = task.closest
        reason = self._unreachable.reason(task.goal, task.seed, closest, task.near_miss)
        errors = closest.position_error, closest.direction_error
        return Solution(Status.UNREACHABLE, closest.q, *errors, reason)


def errors_of(arm: Arm, packed: Array, q: ArrayLike) -> tuple[float, float]:
    """Return (position error [m], direction error [rad]) of q (n,) for goal (9,), by FK."""
    position_error, direction_error = kernels.goal_errors(arm.joints, arm.frames(q), packed)
    return position_error, direction_error
