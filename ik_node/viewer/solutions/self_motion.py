# SPDX-License-Identifier: Apache-2.0
"""SelfMotion: the configurations that a spare joint can reach while the tool stays where it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.solver.goal import Goal

STEP = 0.04  # of all joints together [rad or m]
LONGEST = 12.0  # of a curve in one direction, the same unit
STRAIGHT = 0.5  # least cosine between two tangents: at a sharper bend curves may cross
CORRECTIONS = 4  # Newton steps back to the goal after each step along the curve
MET = 1e-7  # [m and 1] from the goal
RANK = 1e-6  # singular values below this share of the largest count as 0
FLAT = 1e-6  # a part of a unit vector that is shorter has no direction


@dataclass(frozen=True, eq=False)
class SelfMotion:
    """A curve of configurations q (k, n) that meet one goal, about STEP apart.

    start: the row that was given. closed: the last row leads to the first.
    """

    q: Array
    start: int
    closed: bool

    def at(self, share: float) -> Array:
        """Return the configuration (n,) at a share of the curve from 0 to 1: one of its rows."""
        return self.q[round(share * (len(self.q) - 1))]

    @property
    def share(self) -> float:
        """Where on the curve the given configuration is."""
        return self.start / max(len(self.q) - 1, 1)


def trace_self_motion(arm: Arm, goal: Goal, q: Array, spare: int) -> SelfMotion:
    """Trace the self-motion through q (n,), a solution of goal, both ways up to the limits.

    It begins in the direction in which the joint number spare moves most. With several spare joints it is one
    curve of many, the straightest. By predictor and corrector: Allgower and Georg, Numerical Continuation
    Methods, 1990.
    """
    forwards, closed = _traced(arm, goal, q, spare, 1.0)
    if closed:
        return SelfMotion(np.array([q, *forwards]), 0, True)
    backwards, _ = _traced(arm, goal, q, spare, -1.0)
    return SelfMotion(np.array([*reversed(backwards), q, *forwards]), len(backwards), False)


def _traced(arm: Arm, goal: Goal, start: Array, spare: int, sign: float) -> tuple[list[Array], bool]:
    """Return the configurations behind start in one direction, and whether they lead back to it."""
    along = np.zeros(arm.n)
    along[spare] = sign
    q, rows = start, list[Array]()
    first: Array | None = None
    for _ in range(round(LONGEST / STEP)):
        tangent = _still(arm, goal, q, along)
        if tangent is None or (first is not None and tangent @ along < STRAIGHT):
            break
        first = tangent if first is None else first
        ahead = _corrected(arm, goal, q + STEP * tangent)
        if ahead is None or (ahead < arm.lower).any() or (ahead > arm.upper).any():
            break
        along, q = tangent, ahead
        if len(rows) > 2 and _meets(arm, start - q) and tangent @ first > 0.5:
            return rows, True
        rows.append(q)
    return rows, False


def _meets(arm: Arm, gap: Array) -> bool:
    """Whether a difference (n,) of two configurations is less than a step, without whole turns."""
    turns = arm.turning_period > 0.0
    periods = np.where(turns, arm.turning_period, 1.0)
    rest = np.where(turns, gap - periods * np.round(gap / periods), gap)
    return bool(np.linalg.norm(rest) < 0.75 * STEP)


def _equations(arm: Arm, goal: Goal, q: Array) -> tuple[Array, Array]:
    """Return the errors (3,) or (6,) of position and tool axis at q, and their Jacobian."""
    position, direction = arm.fk(q)
    jacobian = arm.jacobian(q)
    if goal.direction is None:
        return position - goal.position, jacobian[:3]
    return np.concatenate([position - goal.position, direction - goal.direction]), jacobian


def _still(arm: Arm, goal: Goal, q: Array, along: Array) -> Array | None:
    """Return the unit vector nearest to along (n,) that leaves the tool still, None if there is none."""
    _, jacobian = _equations(arm, goal, q)
    _, values, rows = np.linalg.svd(jacobian)
    still = rows[int((values > RANK * values[0]).sum()) :]
    if not len(still):
        return None
    tangent = still.T @ (still @ along)
    length = float(np.linalg.norm(tangent))
    return tangent / length if length > FLAT else np.sign(along.sum()) * still[0]


def _corrected(arm: Arm, goal: Goal, q: Array) -> Array | None:
    """Return the solution near q (n,), None if Newton's method does not find it."""
    for _ in range(CORRECTIONS):
        errors, jacobian = _equations(arm, goal, q)
        if np.abs(errors).max() < MET:
            return q
        q = q - np.linalg.pinv(jacobian, RANK) @ errors
    errors, _ = _equations(arm, goal, q)
    return q if np.abs(errors).max() < MET else None
