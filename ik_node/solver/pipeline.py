# SPDX-License-Identifier: Apache-2.0
"""The stages from a goal to its solution, in the order in which IkSolver tries them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import DIRECTION, LATERAL, POSITION_TOLERANCE
from ik_node.model.arm import Arm, frozen
from ik_node.model.ball import Ball, Order
from ik_node.solver.closed_form import NO_FORM, RESIDUAL_MARGIN, ROLL_TOLERANCE, ClosedForm, Family
from ik_node.solver.goal import Cause, Goal, Reason, Solution, Status
from ik_node.solver.restarts import RandomRestarts, SearchResult
from ik_node.solver.unreachable import NearMiss, UnreachableGoals, least_miss
from ik_node.steady import steady

from .closest import ClosestConfiguration, ClosestSearch
from .elimination import MOST_SOLUTIONS, Elimination
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


def ball_in_the_way(search: RandomRestarts, goal: Goal, seed: Array, deadline: float) -> Reason | None:
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
SOLVED = Status.SOLVED  # looking it up in the enumeration takes longer
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
    next search, and the best of the last one. found: result of the last search. closest: the closest one.
    """

    goal: Goal
    seed: Array
    deadline: float
    budget: float
    excluded: bool
    near_miss: NearMiss | None
    q: Array
    found: SearchResult = NO_SEARCH
    closest: ClosestConfiguration | None = None

    @property
    def late(self) -> bool:
        """Whether the time budget has ended."""
        return steady() > self.deadline


class Stage(Protocol):
    """One way to solve a goal; None passes it to the next stage."""

    def __call__(self, task: Task) -> Solution | None: ...


class ByFormula:
    """The closed form: the solution nearest to the seed, within a few microseconds.

    Most goals end here, so this stage runs before a Task is made. Only for some arms (trusted) does a formula
    without a solution mean that there is none, and only if no other stage gets close to the goal.
    """

    def __init__(self, arm: Arm, form: ClosedForm | None, options: Array) -> None:
        """options: of the search."""
        self.form = form
        # Whether a formula without a solution is conclusive.
        self.trusted = form is not None and form.exact
        # Whether the formula decides which positions, without a direction, are reachable: the least position
        # error is off by no more than the geometry is, which is below RESIDUAL_MARGIN.
        self.decides_positions = (
            form is not None and form.family is Family.PARALLEL_ROLL and form.deviation < ROLL_TOLERANCE
        )
        constants = NO_FORM if form is None else form.constants
        parts = arm.joints, arm.tool, arm.limits, constants, options  # writable, as the kernels take options
        self._model = np.concatenate([part.ravel() for part in parts])
        self._redundant = arm.n > arm.effective_dof

    def nearest(self, packed: Array, q: Array) -> Solution | bool:
        """Return the solution of goal (9,) nearest to q (n,), or whether the formula excludes one.

        q becomes that of the solution.
        """
        if self.form is None or math.isnan(packed[DIRECTION]):
            return False
        solved, position_error, direction_error, regular = kernels.nearest_by_formula(self._model, packed, q)
        if solved:
            return Solution(SOLVED, q, position_error, direction_error, None, 0, self._redundant)
        return regular and self.trusted

    def decides(self, packed: Array) -> bool:
        """Whether the closest configuration by formula decides if goal (9,), a position, is reachable."""
        return self.decides_positions and math.isnan(packed[DIRECTION])


class OutsideWorkspace:
    """Positions that no joint positions reach, by the link lengths alone."""

    def __init__(self, unreachable: UnreachableGoals, closest: ClosestSearch, search: RandomRestarts) -> None:
        self._unreachable, self._closest, self._search = unreachable, closest, search

    def __call__(self, task: Task) -> Solution | None:
        if self._unreachable.by_reach(task.goal) is None:
            return None
        closest = self._closest.find(task.goal, task.seed, task.q, task.deadline, beyond=True)
        if self._search.met(closest.position_error, closest.direction_error):
            return _solved(self._search, task, closest.q, closest.position_error, closest.direction_error)
        return _unreached(self._unreachable, task, closest)


class Restarts:
    """The search from the seed with random restarts, unless the formula finds no solution.

    Only a few restarts if a later stage decides whether there is a solution.
    """

    def __init__(self, search: RandomRestarts, few: Callable[[Array], bool]) -> None:
        self._search, self._few = search, few

    def __call__(self, task: Task) -> Solution | None:
        if task.excluded:
            return None
        return _searched(self._search, task, FEW_RESTARTS if self._few(task.goal.packed) else None)


class ByElimination:
    """All solutions by elimination: the one nearest to the seed, or none and thus an excluded goal."""

    def __init__(self, elimination: Elimination | None, search: RandomRestarts) -> None:
        self._elimination, self._search = elimination, search

    def __call__(self, task: Task) -> Solution | None:
        if task.excluded or task.late or self._elimination is None:
            return None
        arm, packed = self._search.arm, task.goal.packed
        rows = np.empty((MOST_SOLUTIONS, arm.n))
        count, proof = self._elimination.solutions(packed, task.seed, rows, arm.limits)
        if count:
            q = rows[np.abs(rows[:count] - task.seed).max(axis=1).argmin()].copy()
            return _solved(self._search, task, q, *errors_of(arm, packed, q))
        task.excluded = proof is not None
        count, _ = self._elimination.solutions(packed, task.seed, rows)
        task.near_miss = least_miss(arm, rows[:count])
        if task.near_miss is not None:
            task.q = task.near_miss.q
        return None


class Closest:
    """The closest configuration; its errors may be within the tolerances after all."""

    def __init__(self, closest: ClosestSearch, search: RandomRestarts) -> None:
        self._closest, self._search = closest, search

    def __call__(self, task: Task) -> Solution | None:
        task.closest = closest = self._closest.find(task.goal, task.seed, task.q, task.deadline)
        if not self._search.met(closest.position_error, closest.direction_error):
            return None
        return _solved(self._search, task, closest.q, closest.position_error, closest.direction_error)


class WithinTolerances:
    """Configurations within both tolerances of a goal that none meets exactly.

    Where two solutions have just become complex, descents also start at solutions of nearby goals.
    """

    def __init__(
        self,
        unreachable: UnreachableGoals,
        elimination: Elimination | None,
        closest: ClosestSearch,
        search: RandomRestarts,
    ) -> None:
        self._unreachable, self._elimination = unreachable, elimination
        self._closest, self._search = closest, search
        rng = np.random.default_rng((search.random_seed, NEARBY))
        turns = rng.normal(size=(2, NEARBY, 3))
        self._shifts = AWAY * turns / np.linalg.norm(turns, axis=2)[:, :, None]

    def __call__(self, task: Task) -> Solution | None:
        closest, search = task.closest, self._search
        assert closest is not None
        least = search.options[POSITION_TOLERANCE] + self._closest.equal
        if self._closest.direction_weight is None and closest.position_error > least:
            return None
        given = np.vstack([task.seed, closest.q, task.q, *self._nearby(task)])
        q = self._closest.within(task.goal, task.seed, given, task.deadline)
        if q is None:
            return None
        return _solved(search, task, q, *errors_of(search.arm, task.goal.packed, q))

    def _nearby(self, task: Task) -> list[Array]:
        """Return solutions of nearby goals that are slightly outside the limits, clipped to them."""
        arm, packed, found = self._search.arm, task.goal.packed, []
        if math.isnan(packed[DIRECTION]):
            return []
        sizes = self._search.options[POSITION_TOLERANCE], self._search.direction_tolerance
        for shift, turn in zip(*self._shifts, strict=True):
            goal = packed.copy()
            goal[:DIRECTION] += sizes[0] * shift
            axis = goal[DIRECTION:LATERAL] + sizes[1] * turn
            goal[DIRECTION:LATERAL] = axis / np.linalg.norm(axis)
            misses = (least_miss(arm, row[None]) for row in self._by_algebra(goal, task.seed))
            found += [miss.q for miss in misses if miss is not None and miss.excess < OUTSIDE]
            if task.late:
                break
        return found

    def _by_algebra(self, packed: Array, seed: Array) -> Array:
        """Return the solutions (k, n) of goal packed (9,) by elimination or formula, whatever the limits."""
        if self._elimination is None or not self._elimination.forms(packed):
            return self._unreachable.by_formula(packed, seed, LOOSELY)
        rows = np.empty((MOST_SOLUTIONS, self._search.arm.n))
        return rows[: self._elimination.solutions(packed, seed, rows)[0]]


class ReportUnreachable:
    """Report UNREACHABLE unless the closest configuration is within rounding of a solution.

    If time has run out, a configuration within the tolerances may have been missed: nothing is proven then.
    """

    def __init__(self, formula: ByFormula, unreachable: UnreachableGoals) -> None:
        self._formula, self._unreachable = formula, unreachable

    def __call__(self, task: Task) -> Solution | None:
        closest, near_miss = task.closest, task.near_miss
        assert closest is not None
        excluded = task.excluded or (self._formula.decides(task.goal.packed) and not closest.in_place)
        near = max(closest.position_error, closest.direction_error) < RESIDUAL_MARGIN
        near = near or (near_miss is not None and near_miss.excess < LIMIT_MARGIN)
        if not excluded or near or task.late:
            return None
        answer = _unreached(self._unreachable, task, closest)
        reason = answer.reason
        assert reason is not None
        return None if reason.cause is Cause.JOINT_LIMIT and reason.amount < LIMIT_MARGIN else answer


class RestartsAfterDoubt:
    """The full search, if it was shortened or skipped although there may be a solution."""

    def __init__(self, search: RandomRestarts, few: Callable[[Array], bool]) -> None:
        self._search, self._few = search, few

    def __call__(self, task: Task) -> Solution | None:
        if task.late or (not task.excluded and not self._few(task.goal.packed)):
            return None
        assert task.closest is not None
        task.q = task.closest.q.copy() if task.near_miss is None else task.near_miss.q
        return _searched(self._search, task, None)


class ReportNotFound:
    """Report NOT_FOUND with the closest configuration, and which budget was exhausted."""

    def __init__(self, search: RandomRestarts) -> None:
        self._search = search

    def __call__(self, task: Task) -> Solution:
        closest, found = task.closest, task.found
        assert closest is not None
        if found.out_of_time or task.late:
            budget = task.budget
            reason = Reason(Cause.TIME, budget, f'no solution found within the time budget of {budget:g} s')
        else:
            sentence = f'no solution found from the seed and {found.restarts} random restarts'
            reason = Reason(Cause.SEARCH_ENDED, found.restarts, sentence)
            has_cones = self._search.arm.has_cones
            ball = ball_in_the_way(self._search, task.goal, task.seed, task.deadline) if has_cones else None
            if ball is not None:
                reason = replace(ball, sentence=f'{sentence}; without its limits {ball.sentence}')
        errors = closest.position_error, closest.direction_error
        return Solution(Status.NOT_FOUND, closest.q, *errors, reason, found.restarts)


class Decides:
    """Whether algebra decides if goals have a solution, so that few restarts come before it."""

    def __init__(self, formula: ByFormula, elimination: Elimination | None) -> None:
        self._formula, self._elimination = formula, elimination
        self._known: dict[bool, bool] = {}  # of goals without direction, and of others

    def __call__(self, packed: Array) -> bool:
        """Whether it does for goal (9,)."""
        position_only = math.isnan(packed[DIRECTION])
        if position_only not in self._known:
            self._known[position_only] = self._formula.decides(packed) or (
                self._elimination is not None and self._elimination.may_serve(packed)
            )
        return self._known[position_only]


class Pipeline:
    """The stages after the formula, in order; returns a Solution for every goal.

    formula, search: as given. shells: bounds of the reach, as in kernels.out_of_reach.
    """

    def __init__(
        self,
        formula: ByFormula,
        elimination: Elimination | None,
        search: RandomRestarts,
        closest: ClosestSearch,
        unreachable: UnreachableGoals,
    ) -> None:
        self.formula, self.search, self.shells = formula, search, unreachable.shells
        self._unreachable, self._decides = unreachable, Decides(formula, elimination)
        self.stages: tuple[Stage, ...] = (
            OutsideWorkspace(unreachable, closest, search),
            Restarts(search, self._decides),
            ByElimination(elimination, search),
            Closest(closest, search),
            WithinTolerances(unreachable, elimination, closest, search),
            ReportUnreachable(formula, unreachable),
            RestartsAfterDoubt(search, self._decides),
            ReportNotFound(search),
        )

    def restarts_before_algebra(self, goals: Array) -> int | None:
        """Return how many restarts goals (N, 9) get before algebra decides, None for all."""
        return FEW_RESTARTS if len(goals) and self._decides(goals[0]) else None

    def __call__(self, goal: Goal, seed: Array, excluded: bool, budget: float) -> Solution:
        """Solve goal from seed (n,) within a time budget [s].

        excluded: the formula finds no solution, see ByFormula.nearest.
        """
        deadline = steady() + budget
        near_miss = None
        if excluded:
            near_miss = least_miss(self.search.arm, self._unreachable.by_formula(goal.packed, seed))
        q = seed.copy() if near_miss is None else near_miss.q
        task = Task(goal, seed, deadline, budget, excluded, near_miss, q)
        for stage in self.stages:
            answer = stage(task)
            if answer is not None:
                return answer
        raise AssertionError('ReportNotFound answers every goal')


def _searched(search: RandomRestarts, task: Task, most: int | None) -> Solution | None:
    found = task.found = search.search(task.goal, task.q, task.deadline, most)
    if not found.solved:
        return None
    return _solved(search, task, task.q, found.position_error, found.direction_error)


def errors_of(arm: Arm, packed: Array, q: ArrayLike) -> tuple[float, float]:
    """Return (position error [m], direction error [rad]) of q (n,) for goal (9,), by FK."""
    position_error, direction_error = kernels.goal_errors(arm.joints, arm.frames(q), packed)
    return position_error, direction_error


def _solved(
    search: RandomRestarts, task: Task, q: Array, position_error: float, direction_error: float
) -> Solution:
    self_motion = is_redundant(search.arm, task.goal)
    restarts = task.found.restarts
    return Solution(SOLVED, q, position_error, direction_error, None, restarts, self_motion)


def _unreached(unreachable: UnreachableGoals, task: Task, closest: ClosestConfiguration) -> Solution:
    reason = unreachable.reason(task.goal, task.seed, closest, task.near_miss)
    return Solution(Status.UNREACHABLE, closest.q, closest.position_error, closest.direction_error, reason)
