"""Why a goal cannot be met, as data and as a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ik_node import kernels
from ik_node.checks import Vector
from ik_node.model.arm import Arm
from ik_node.solver.closed_form import ClosedForm
from ik_node.solver.closest import BestEffort, Effort
from ik_node.solver.goal import Cause, Goal, Reason
from ik_node.solver.workspace_bounds import reach_shells

OUT_OF_REACH = {0: None, 1: Cause.TOO_FAR, -1: Cause.TOO_NEAR}  # what kernels.out_of_reach says


@dataclass(frozen=True, eq=False)
class NearMiss:
    """A solution but for limits: q (n,) brought inside them, and the joint that exceeds them most [rad]."""

    q: Vector
    excess: float
    joint: int


class Refusal:
    """Says which goals are impossible for an arm, and why."""

    def __init__(self, arm: Arm, form: ClosedForm | None, best_effort: BestEffort, options: Vector) -> None:
        self.arm = arm
        self.form = form
        self.shells = reach_shells(arm)
        self._best_effort = best_effort
        self._options = options
        self._tolerance = float(options[0])  # m
        self._tied = (
            ''
            if arm.effective_dof >= 5
            else (f': with {arm.effective_dof} effective DoF the position ties the direction')
        )

    def by_reach(self, goal: Goal) -> Cause | None:
        """Return what puts the position out of reach of any joint values, None if nothing is shown to."""
        return OUT_OF_REACH[kernels.out_of_reach(self.shells, goal.packed, self._tolerance)]

    def near_miss(self, goal: Goal, seed: Vector) -> NearMiss | None:
        """Return the formula's solution that exceeds the limits least; None where it has none at all."""
        arm, rows = self.arm, np.empty((kernels.MOST_CANDIDATES, self.arm.n))
        if self.form is None or goal.direction is None:
            return None
        count = kernels.formula_solutions(
            arm.joints,
            arm.tool,
            self._best_effort.endless,
            arm.period,
            self.form.constants,
            goal.packed,
            self._options,
            np.clip(seed, arm.lower, arm.upper),
            rows,
        )
        return min((near_miss(arm, q) for q in rows[:count]), key=lambda miss: miss.excess, default=None)

    def reason(self, goal: Goal, seed: Vector, effort: Effort, miss: NearMiss | None) -> Reason:
        """Name what blocks a goal that is shown to be impossible.

        effort: the best that can be done. miss: what near_miss returned.
        """
        block = self.by_reach(goal)
        if block is not None:
            return _out_of_reach(block, effort.position_error)
        if miss is not None:
            return self._beyond_a_limit(miss)
        if effort.position_error <= self._options[0]:
            amount = effort.direction_error
            sentence = f'at this position the nearest possible direction is {amount:.4g} rad away{self._tied}'
            return Reason(Cause.DIRECTION_TIED, amount, sentence)
        free = self._best_effort.find(goal, seed, effort.q, endless=True)
        if free.position_error <= self._options[0]:
            return self._beyond_a_limit(near_miss(self.arm, free.q))
        reached = self.arm.fk(free.q)[0]
        outward = (goal.position - reached) @ (reached - self.shells[-1, :3]) > 0.0
        return _out_of_reach(Cause.TOO_FAR if outward else Cause.TOO_NEAR, effort.position_error)

    def _beyond_a_limit(self, miss: NearMiss) -> Reason:
        name = self.arm.joint_names[miss.joint]
        sentence = f'joint {name} would have to go {miss.excess:.4g} rad beyond its limit'
        return Reason(Cause.JOINT_LIMIT, miss.excess, sentence, name)


def _out_of_reach(block: Cause, amount: float) -> Reason:
    side = 'far' if block is Cause.TOO_FAR else 'near'
    return Reason(block, amount, f'out of reach: the position is too {side} by {amount:.4g} m')


def near_miss(arm: Arm, q: Vector) -> NearMiss:
    """Say how far q (n,) is beyond the limits, whole turns aside, and which joint is furthest."""
    within, excess = q.copy(), np.zeros(arm.n)
    for i, (low, high, period) in enumerate(zip(arm.lower, arm.upper, arm.period, strict=True)):
        if math.isfinite(high - low) and period > 0.0:
            within[i] -= period * round((q[i] - (low + high) / 2) / period)
        excess[i] = max(low - within[i], within[i] - high, 0.0)
    joint = int(excess.argmax())
    return NearMiss(np.clip(within, arm.lower, arm.upper), float(excess[joint]), joint)
