# SPDX-License-Identifier: Apache-2.0
"""Why a goal is unreachable, as data and as a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays import CHORD_TOLERANCE, DIRECTION, POSITION_TOLERANCE
from ik_node.model.arm import Arm
from ik_node.solver.closed_form import ClosedForm
from ik_node.solver.goal import Cause, Goal, Reason
from ik_node.solver.workspace_bounds import radial_bounds

from .closest import ClosestConfiguration, ClosestSearch, without_stops

CAUSES = {0: None, 1: Cause.TOO_FAR, -1: Cause.TOO_NEAR}  # by the return value of kernels.out_of_reach


@dataclass(frozen=True, eq=False)
class NearMiss:
    """A solution that exceeds limits: q (n,) clipped to them, and the largest excess [rad] with its joint."""

    q: Array
    excess: float
    joint: int


class UnreachableGoals:
    """Decides which goals an arm cannot reach, and why."""

    def __init__(self, arm: Arm, form: ClosedForm | None, closest_search: ClosestSearch, options: Array) -> None:
        self.arm = arm
        self.form = form
        self.shells = radial_bounds(arm)
        self._closest_search = closest_search
        self._unlimited = without_stops(arm.limits, arm.period)
        self._options = options
        self._tolerance = float(options[POSITION_TOLERANCE])  # m

    def by_reach(self, goal: Goal) -> Cause | None:
        """Return why no joint positions reach the position, by link lengths; None if that is not proven."""
        return CAUSES[kernels.out_of_reach(self.shells, goal.packed, self._tolerance)]

    def by_formula(self, packed: Array, seed: Array, loosely: float = 1.0) -> Array:
        """Return the solutions (k, n) of goal packed (9,) by formula, whatever the limits; seed (n,).

        loosely: factor of the tolerances that they must meet.
        """
        arm, rows = self.arm, np.empty((kernels.MOST_CANDIDATES, self.arm.n))
        if self.form is None or math.isnan(packed[DIRECTION]):
            return rows[:0]
        options = self._options.copy()
        options[[POSITION_TOLERANCE, CHORD_TOLERANCE]] *= loosely
        start = np.clip(seed, arm.lower, arm.upper)
        model = arm.joints, arm.tool, self._unlimited, arm.period, self.form.constants
        count, _ = kernels.formula_solutions(*model, packed, options, start, rows)
        return rows[:count]

    def reason(self, goal: Goal, seed: Array, closest: ClosestConfiguration, miss: NearMiss | None) -> Reason:
        """Return why a goal that is proven to be impossible cannot be met.

        closest: the closest configuration. miss: as returned by nearest_miss.
        """
        cause = self.by_reach(goal)
        if cause is not None:
            return self._out_of_reach(goal, cause, closest.position_error)
        if miss is not None:
            return self._beyond_a_limit(miss)
        if closest.position_error <= self._options[POSITION_TOLERANCE]:
            amount = closest.direction_error
            return Reason(Cause.DIRECTION_CONSTRAINED, amount, cannot_point(amount))
        free = self._closest_search.find(goal, seed, closest.q, ignore_limits=True)
        if free.position_error <= self._options[POSITION_TOLERANCE]:
            miss = nearest_miss(self.arm, free.q[None])
            assert miss is not None
            return self._beyond_a_limit(miss)
        reached = self.arm.fk(free.q)[0]
        outward = (goal.position - reached) @ (reached - self.shells[-1, :3]) > 0.0
        return self._out_of_reach(goal, Cause.TOO_FAR if outward else Cause.TOO_NEAR, closest.position_error)

    def _out_of_reach(self, goal: Goal, cause: Cause, amount: float) -> Reason:
        where = 'beyond the workspace'
        if cause is Cause.TOO_NEAR:
            where = 'inside the inner boundary of the workspace'
        doubt = self.arm.too_far(goal.position)
        where += f', {doubt}' if doubt else ''
        return Reason(cause, amount, f'the position is out of reach, {amount:.4g} m {where}')

    def _beyond_a_limit(self, miss: NearMiss) -> Reason:
        name = self.arm.joint_names[miss.joint]
        unit = 'm' if self.arm.prismatic[miss.joint] else 'rad'
        sentence = f'joint "{name}" would exceed its limit by {miss.excess:.4g} {unit}'
        return Reason(Cause.JOINT_LIMIT, miss.excess, sentence, name)


def cannot_point(amount: float) -> str:
    """Return in words that the closest direction at a position is off by amount [rad]."""
    return f'the tool cannot point that way here: the closest direction found is {amount:.4g} rad off'


def nearest_miss(arm: Arm, rows: Array) -> NearMiss | None:
    """Return which of (k, n) exceeds the limits least, whole turns removed; None of none."""
    if not len(rows):
        return None
    low, high = arm.lower, arm.upper
    turns = (arm.period > 0.0) & np.isfinite(high - low)
    within, period = rows.copy(), arm.period[turns]
    within[:, turns] -= period * np.round((rows[:, turns] - 0.5 * (low[turns] + high[turns])) / period)
    clipped = np.minimum(np.maximum(within, low), high)
    excess = np.abs(within - clipped)
    nearest = int(excess.max(axis=1).argmin())
    joint = int(excess[nearest].argmax())
    return NearMiss(clipped[nearest], float(excess[nearest, joint]), joint)
