# SPDX-License-Identifier: Apache-2.0
"""Self-motions of arms with one joint more than a position and a direction need."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.arrays.layout import DIRECTION, LATERAL
from ik_node.model.arm import Arm, frozen
from ik_node.solver.elimination.elimination import MOST_SOLUTIONS
from ik_node.solver.goal import Goal
from ik_node.solver.redundancy.locked_joints import LockedJoints, ReducedArm
from ik_node.steady import steady

SPACING = 0.1  # [rad] of the values of joint 1, at most
SLIDES = 64  # values of a prismatic joint 1
FEWEST = 16  # values
DESCENTS = 64  # that search for self-motions between these values


def is_redundant(arm: Arm, goal: Goal, locked: int = 0) -> bool:
    """Whether the solutions of goal form self-motions while the locked joints stay."""
    return arm.n - locked > (arm.position_dof if math.isnan(goal.packed[DIRECTION]) else arm.effective_dof)


class SelfMotions:
    """Finds the self-motions of an arm with one spare joint, for goals with a direction.

    Joint 1 takes values within its limits, and at each all solutions of the other joints are found: it is
    next to the base, so that a value changes the goal and nothing of what was prepared for the others.
    """

    def __init__(self, arm: Arm, locked: LockedJoints, options: Array) -> None:
        """options: of the search."""
        self._arm, self._locked, self._options = arm, locked, options
        opened = arm.period > 0.0
        opened[0] = kernels.turns_freely(arm.limits, arm.period, 0)
        self._opened = np.where(opened, [[-math.inf], [math.inf]], arm.limits[:2])

    @cached_property
    def _reduced(self) -> ReducedArm:
        """The other joints."""
        return self._locked.reduced([0], self._arm.middle)

    @cached_property
    def _grid(self) -> Array:
        """Values (k,) of joint 1 [rad or m], evenly spaced; of one turn if it has more."""
        low, high = self._opened[:, 0]
        if math.isinf(high - low):
            return np.linspace(-math.pi, math.pi, math.ceil(2.0 * math.pi / SPACING), endpoint=False)
        count = SLIDES if self._arm.prismatic[0] else math.ceil((high - low) / SPACING)
        return np.linspace(low, high, max(count, FEWEST))

    @cached_property
    def _poses(self) -> Array:
        """The poses (k, 4, 4) of the other joints' base."""
        return frozen(np.array([self._reduced.pose([value]) for value in self._grid]))

    def find(
        self,
        goal: Array,
        limits: Array,
        start: Array,
        state: NDArray[np.uint64],
        found: Array,
        deadline: float,
    ) -> int:
        """Write the configuration nearest to start (n,) of each self-motion to found (k, n); their number.

        goal (9,). limits (2, n): equal for idle joints. state: of random numbers. deadline:
        steady() at which it gives up. None are found where the other joints have no elimination.
        """
        elimination, arm = self._reduced.solver.elimination, self._arm
        if math.isnan(goal[DIRECTION]) or elimination is None or not elimination.forms(goal):
            return 0
        opened = self._opened.copy()
        opened[:, arm.idle] = limits[:2, arm.idle]
        low, high = opened[:, 1:]
        near = start[1:].copy()
        rows = np.empty((MOST_SOLUTIONS, arm.n - 1))
        known, first = [], [0]
        for value, seen in zip(self._grid, self._seen(goal), strict=True):
            count = elimination.solutions(seen, near, rows)[0]
            inside = rows[:count][((rows[:count] >= low) & (rows[:count] <= high)).all(axis=1)]
            known.append(np.column_stack([np.full(len(inside), value), inside]))
            first.append(first[-1] + len(inside))
            if steady() > deadline:
                return 0
        model = arm.joints, arm.tool, limits, opened, arm.period
        curves = self._grid, np.array(first), np.vstack(known)
        number: int = kernels.find_families(
            *model, goal, self._options, *curves, DESCENTS, state, start, found
        )
        return number

    def _seen(self, goal: Array) -> Array:
        """Return goal (9,) as seen from the other joints' base at each of the values, (k, 9)."""
        turns, places = self._poses[:, :3, :3], self._poses[:, :3, 3]
        seen = np.full((len(turns), 9), math.nan)
        seen[:, :3] = np.einsum('ki,kij->kj', goal[:3] - places, turns)
        seen[:, DIRECTION:LATERAL] = goal[DIRECTION:LATERAL] @ turns
        return seen


def self_motions_of(arm: Arm, locked: LockedJoints, options: Array) -> SelfMotions | None:
    """Return the self-motions of arm; None unless it has one spare joint, and joint 1 moves the tool."""
    if arm.has_cones or not arm.is_plain or arm.idle[0] or arm.lower[0] == arm.upper[0]:
        return None
    return SelfMotions(arm, locked, options) if np.count_nonzero(~arm.idle) == arm.effective_dof + 1 else None
