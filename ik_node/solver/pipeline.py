"""The stages from a goal to its answer, in the order in which IkSolver tries them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ik_node import kernels
from ik_node.checks import Vector
from ik_node.kernels.layout import DIRECTION
from ik_node.model.arm import Arm
from ik_node.solver.all_solutions import is_redundant
from ik_node.solver.closed_form import NO_FORM, ClosedForm, Family
from ik_node.solver.closest import BestEffort, Effort
from ik_node.solver.goal import Cause, Goal, Reason, Solution, Status
from ik_node.solver.infeasible import NearMiss, Refusal
from ik_node.solver.restarts import RandomRestarts, SearchResult

LIMIT_DOUBT = 1e-3  # rad: a solution beyond its limits by less casts doubt on the formula
SOLVED = Status.SOLVED  # the enumeration takes longer to look it up
FEW_RESTARTS = 8  # before the formula is asked whether a position can be reached


@dataclass(eq=False)
class Task:
    """A goal on its way through the stages, and what they have found out about it.

    seed (n,). start: time.perf_counter() when the time budget began. excluded: the formula shows no
    solution within the limits; rounding near double roots and limits may hide one. near_miss: its solution
    that exceeds the limits least. q (n,): where searches start and, after the last one, its best. found: how
    that one ended. closest: the closest configuration.
    """

    goal: Goal
    seed: Vector
    start: float
    excluded: bool
    near_miss: NearMiss | None
    q: Vector
    found: SearchResult
    closest: Effort | None = None


class Stage(Protocol):
    """One way to answer a goal; None hands it on to the next stage."""

    def __call__(self, task: Task) -> Solution | None: ...


class ByFormula:
    """The closed form: the solution nearest to the seed, a few microseconds after the call.

    Most goals end here, so this stage is asked before there is a Task. Whether what it does not find is
    not there is known only of some arms (trusted), and believed only if nothing else comes near.
    """

    def __init__(self, arm: Arm, form: ClosedForm | None, options: Vector) -> None:
        """options: of the search."""
        self.form = form
        # Whether it is believed that what the formula does not find is not there.
        self.trusted = form is not None and form.doubt < math.inf
        # Whether the formula can tell which positions, without a direction, are within reach.
        self.tells_positions = self.trusted and form is not None and form.family is Family.PARALLEL_ROLL
        constants = NO_FORM if form is None else form.constants
        self._arrays, self._options, self._n = (arm.joints, arm.tool, arm.limits, constants), options, arm.n
        self._redundant = arm.n > arm.effective_dof

    def nearest(self, packed: Vector, seed: Vector) -> Solution | bool:
        """Return the solution of goal (9,) nearest to seed (n,), or whether it is shown that none is."""
        if self.form is None or math.isnan(packed[DIRECTION]):
            return False
        answer = np.empty(self._n)
        solved, position_error, direction_error, regular = kernels.nearest_solution(
            *self._arrays, packed, self._options, seed, answer
        )
        if solved:
            return Solution(SOLVED, answer, position_error, direction_error, None, 0, self._redundant)
        return regular and self.trusted

    def tells(self, goal: Goal) -> bool:
        """Whether the closest configuration by formula shows if goal, a position alone, is within reach."""
        return self.tells_positions and goal.direction is None


class OutsideWorkspace:
    """Positions that no joint values reach, by the lengths of the arm alone."""

    def __init__(self, refusal: Refusal, closest: BestEffort, search: RandomRestarts) -> None:
        self._refusal, self._closest, self._search = refusal, closest, search

    def __call__(self, task: Task) -> Solution | None:
        if self._refusal.by_reach(task.goal) is None:
            return None
        deadline = task.start + self._search.time_budget
        closest = self._closest.find(task.goal, task.seed, task.q, deadline, beyond=True)
        if self._search.met(closest.position_error, closest.direction_error):
            return _solved(self._search, task, closest.q, closest.position_error, closest.direction_error)
        return _unreachable(self._refusal, task, closest)


class Restarts:
    """The search from the seed and random restarts, unless the formula shows that there is nothing.

    For a position alone that the formula can judge in the end, few restarts come first.
    """

    def __init__(self, search: RandomRestarts, formula: ByFormula) -> None:
        self._search, self._formula = search, formula

    def __call__(self, task: Task) -> Solution | None:
        if task.excluded:
            return None
        most = FEW_RESTARTS if self._formula.tells(task.goal) else None
        return _searched(self._search, task, most)


class Closest:
    """The closest configuration, whose errors may after all be within the tolerances."""

    def __init__(self, closest: BestEffort, search: RandomRestarts) -> None:
        self._closest, self._search = closest, search

    def __call__(self, task: Task) -> Solution | None:
        deadline = task.start + self._search.time_budget
        task.closest = closest = self._closest.find(task.goal, task.seed, task.q, deadline)
        if not self._search.met(closest.position_error, closest.direction_error):
            return None
        return _solved(self._search, task, closest.q, closest.position_error, closest.direction_error)


class FormulaBelieved:
    """Believe the formula that there is no solution, but only if nothing else comes near the goal either."""

    def __init__(self, formula: ByFormula, refusal: Refusal) -> None:
        self._formula, self._refusal = formula, refusal
        self._doubt = math.inf if formula.form is None else formula.form.doubt

    def __call__(self, task: Task) -> Solution | None:
        closest, near_miss = task.closest, task.near_miss
        assert closest is not None
        excluded = task.excluded or (self._formula.tells(task.goal) and not closest.in_place)
        near = max(closest.position_error, closest.direction_error) < self._doubt
        near = near or (near_miss is not None and near_miss.excess < max(self._doubt, LIMIT_DOUBT))
        return _unreachable(self._refusal, task, closest) if excluded and not near else None


class RestartsAfterDoubt:
    """The whole search where the formula has cut it short or put it off, but is not believed."""

    def __init__(self, search: RandomRestarts, formula: ByFormula) -> None:
        self._search, self._formula = search, formula

    def __call__(self, task: Task) -> Solution | None:
        if not task.excluded and not self._formula.tells(task.goal):
            return None
        assert task.closest is not None
        task.q = task.closest.q.copy() if task.near_miss is None else task.near_miss.q
        return _searched(self._search, task, None)


class GivenUp:
    """Neither solved nor shown to be impossible: the closest configuration, and what ran out."""

    def __init__(self, search: RandomRestarts) -> None:
        self._search = search

    def __call__(self, task: Task) -> Solution:
        closest, found = task.closest, task.found
        assert closest is not None
        if found.out_of_time:
            budget = self._search.time_budget
            reason = Reason(Cause.TIME, budget, f'nothing found within the time budget of {budget:g} s')
        else:
            sentence = f'nothing found from the seed and {found.restarts} restarts'
            reason = Reason(Cause.SEARCH_ENDED, found.restarts, sentence)
        errors = closest.position_error, closest.direction_error
        return Solution(Status.NOT_FOUND, closest.q, *errors, reason, found.restarts)


class Pipeline:
    """The stages after the formula in their order; answers every goal."""

    def __init__(
        self, formula: ByFormula, search: RandomRestarts, closest: BestEffort, refusal: Refusal
    ) -> None:
        self._refusal = refusal
        self.stages: tuple[Stage, ...] = (
            OutsideWorkspace(refusal, closest, search),
            Restarts(search, formula),
            Closest(closest, search),
            FormulaBelieved(formula, refusal),
            RestartsAfterDoubt(search, formula),
            GivenUp(search),
        )

    def __call__(self, goal: Goal, seed: Vector, excluded: bool) -> Solution:
        """Answer goal from seed (n,). excluded: the formula shows no solution, see ByFormula.nearest."""
        start = time.perf_counter()
        near_miss = self._refusal.near_miss(goal, seed) if excluded else None
        q = seed.copy() if near_miss is None else near_miss.q
        nothing = SearchResult(False, math.inf, math.inf, 0)
        task = Task(goal, seed, start, excluded, near_miss, q, nothing)
        return next(answer for stage in self.stages if (answer := stage(task)) is not None)


def _searched(search: RandomRestarts, task: Task, most: int | None) -> Solution | None:
    found = task.found = search.search(task.goal, task.q, task.start, most)
    if not found.solved:
        return None
    return _solved(search, task, task.q, found.position_error, found.direction_error)


def _solved(
    search: RandomRestarts, task: Task, q: Vector, position_error: float, direction_error: float
) -> Solution:
    self_motion = is_redundant(search.arm, task.goal)
    restarts = task.found.restarts
    return Solution(Status.SOLVED, q, position_error, direction_error, None, restarts, self_motion)


def _unreachable(refusal: Refusal, task: Task, closest: Effort) -> Solution:
    reason = refusal.reason(task.goal, task.seed, closest, task.near_miss)
    return Solution(Status.UNREACHABLE, closest.q, closest.position_error, closest.direction_error, reason)
