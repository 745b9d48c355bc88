# SPDX-License-Identifier: Apache-2.0
"""Tracks one branch of solutions along a moving goal, and finds why a branch ends."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.solver.closed_form import NO_FORM, ClosedForm
from ik_node.solver.goal import Cause, Goal, Reason, Solution, Status

AT_LIMIT = 1e-4  # rad or m: a branch that ends this close to a limit ends at the limit


class Tracker:
    """Moves from one configuration to the next goal without changing branch."""

    def __init__(self, arm: Arm, form: ClosedForm | None, options: Array) -> None:
        """options: of the search."""
        self._arm, self._options = arm, options
        self._form = NO_FORM if form is None else form.constants
        self._work = (3 * arm.n + 8, max(arm.n, 9))  # scratch of kernels.advance

    def advance(
        self, goal: Goal, q: Array, before: Array, solve: Callable[[Goal, Array], Solution]
    ) -> Solution:
        """Move q (n,) to goal, in place; before (n,): the configuration before q. See IkSolver.track.

        solve: (goal, seed) -> Solution, called if the branch ends.
        """
        solved, position_error, direction_error = self.step(goal.packed, q, before)
        if solved:
            return Solution(Status.SOLVED, q, position_error, direction_error)
        other = solve(goal, q)
        if not other.solved:
            return other
        moves = np.abs(other.q - q)
        move = float(moves.max())
        unit = 'm' if self._arm.prismatic[int(moves.argmax())] else 'rad'
        joint = self._joint_in_the_way(goal, q)
        cause = 'at a singularity' if joint is None else f'at the limit of joint "{joint}"'
        sentence = (
            f'the current solution branch ends {cause}; continuing needs a joint motion of {move:.3g} {unit} '
            'to another branch'
        )
        reason = Reason(Cause.BRANCH_ENDS, move, sentence, joint)
        return Solution(Status.NOT_FOUND, q, position_error, direction_error, reason, other_branch=other.q)

    def step(self, goal: Array, q: Array, before: Array) -> tuple[bool, float, float]:
        """Do as advance for goal (9,), without a search if the branch ends: (solved, both errors)."""
        arm, work = self._arm, np.empty(self._work)
        found: tuple[bool, float, float] = kernels.advance(
            arm.joints, arm.tool, arm.limits, self._form, goal, self._options, q, before, work
        )
        return found

    def _joint_in_the_way(self, goal: Goal, q: Array) -> str | None:
        """Return the joint whose limit ends the branch at q (n,): without it the motion can continue."""
        arm = self._arm
        limits = np.where(
            [q - arm.lower < AT_LIMIT, arm.upper - q < AT_LIMIT],
            [[-math.inf], [math.inf]],
            [arm.lower, arm.upper],
        )
        limits.flags.writeable = False  # as those that the kernel is compiled for
        arrived, work = q.copy(), np.empty(self._work)
        model = arm.joints, arm.tool, limits
        if not kernels.follow(*model, goal.packed, self._options, arrived, work)[0]:
            return None
        beyond = np.maximum(arm.lower - arrived, arrived - arm.upper)
        return arm.joint_names[int(beyond.argmax())] if beyond.max() > 0.0 else None
