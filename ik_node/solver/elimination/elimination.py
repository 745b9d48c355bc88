# SPDX-License-Identifier: Apache-2.0
"""All solutions of arms with up to five joints by elimination, whatever their geometry."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays.layout import DIRECTION, LATERAL
from ik_node.model.arm import Arm, frozen
from ik_node.solver.closed_form import EXACT_TOLERANCE
from ik_node.solver.elimination.any_geometry import any_form
from ik_node.solver.elimination.form import EliminationForm
from ik_node.solver.elimination.general import general_form
from ik_node.solver.elimination.pair import pair_form
from ik_node.solver.elimination.task_joints import chain_of

FORMS: WeakKeyDictionary[Arm, dict[bool, tuple[EliminationForm, ...]]] = WeakKeyDictionary()  # by arm
FORMS_LOCK = Lock()
MOST_SOLUTIONS = 64  # distinct ones, whole turns not counted
TRIALS = 12  # random goals that a form must solve before it is conclusive
MOST_JOINTS = 5  # position and direction determine no more


class Elimination:
    """Finds all solutions of an arm at once, if its geometry has a finite number of them."""

    def __init__(self, arm: Arm, options: Array) -> None:
        """options: of the search."""
        self._arm, self._options = arm, options
        self._unlimited = frozen(np.array([[-np.inf], [np.inf]]) * np.ones(arm.n))
        self._has_idle = bool(arm.idle.any())
        self._level = _constant_axis(arm)

    def _directed(self, goal: Array) -> Array:
        """Return goal (9,), without a direction with the constant direction of the tool."""
        if self._level is None or not math.isnan(goal[DIRECTION]):
            return goal
        goal = goal.copy()
        goal[DIRECTION:LATERAL] = self._level
        return goal

    def may_serve(self, goal: Array) -> bool:
        """Whether there may be a form for goals such as goal (9,), without constructing it."""
        return chain_of(self._arm, not math.isnan(self._directed(goal)[DIRECTION])) is not None

    def forms(self, goal: Array) -> tuple[EliminationForm, ...]:
        """Return the forms for goals such as goal (9,), in the order in which they are tried."""
        direction = not math.isnan(self._directed(goal)[DIRECTION])
        with FORMS_LOCK:
            known = FORMS.setdefault(self._arm, {})
            if direction not in known:
                known[direction] = tuple(map(partial(self._tried, direction), forms_of(self._arm, direction)))
            return known[direction]

    def _tried(self, direction: bool, form: EliminationForm) -> EliminationForm:
        """Return form, marked inconclusive if it misses the configuration of some goal."""
        arm, found = self._arm, np.empty((MOST_SOLUTIONS, self._arm.n))
        counts = ~arm.idle
        for q in arm.sample(np.random.default_rng(0), TRIALS):
            goal = np.full(9, math.nan)
            goal[:3], axis = arm.fk(q)
            if direction:
                goal[DIRECTION:LATERAL] = axis
            count, certain = self._solve(form, goal, q, found, 0, None)
            gaps = [kernels.largest_move(arm.period[counts], row[counts], q[counts]) for row in found[:count]]
            if certain and not min(gaps, default=math.inf) < kernels.DISTINCT:
                return replace(form, deviation=math.inf)
        return form

    def solutions(
        self, goal: Array, seed: Array, found: Array, limits: Array | None = None
    ) -> tuple[int, EliminationForm | None]:
        """Write every solution of goal (9,) to found (k, n), with whole turns nearest to seed (n,).

        limits: None for no limits. Returns (their number, the form that shows completeness, if any).
        """
        count, goal = 0, self._directed(goal)
        for form in self.forms(goal):
            before = count
            count, certain = self._solve(form, goal, seed, found, count, limits)
            if certain and form.exact:
                own = self._solve(form, goal, seed, np.empty_like(found), 0, limits)[0] if before else count
                return count, form if own == count else None  # it has lost what another form found
        return count, None

    def _solve(
        self, form: EliminationForm, goal: Array, seed: Array, found: Array, count: int, limits: Array | None
    ) -> tuple[int, bool]:
        arm, opened = self._arm, self._unlimited
        if self._has_idle:  # they stay, even if rounding in a file lets them move the tool slightly
            opened = opened.copy()
            opened[:, arm.idle] = np.clip(seed, arm.lower, arm.upper)[arm.idle]
        within = opened if limits is None else limits
        model = arm.joints, arm.tool, within, opened, arm.period, form.constants
        solved: tuple[int, bool] = kernels.eliminated(*model, goal, self._options, seed, found, count)
        return solved


def _constant_axis(arm: Arm) -> Array | None:
    """Return the tool axis (3,) if mimic joints keep it constant, else None: fewer joints then decide."""
    if arm.is_plain:
        return None
    axes = np.array([arm.fk(q)[1] for q in arm.sample(np.random.default_rng(0), TRIALS)])
    return frozen(axes[0]) if np.ptp(axes, axis=0).max() < EXACT_TOLERANCE else None


def forms_of(arm: Arm, direction: bool) -> tuple[EliminationForm, ...]:
    """Return the ways to solve goals with or without direction: what is fast first, what is sure last.

    That takes milliseconds, a fifth of a second for some, so it is done for the first goal that needs it.
    """
    special = pair_form(arm, direction)
    if not direction or not arm.is_plain or (special is not None and special.exact):
        return () if special is None else (special,)
    forms = special, general_form(arm), any_form(arm)
    return tuple(form for form in forms if form is not None)


def elimination_of(arm: Arm, options: Array) -> Elimination | None:
    """Return the elimination for arm; None for balls with limits and too many joints."""
    if arm.has_cones or np.count_nonzero(~arm.idle) > MOST_JOINTS:
        return None
    return Elimination(arm, options)
