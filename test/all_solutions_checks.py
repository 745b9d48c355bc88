# SPDX-License-Identifier: Apache-2.0
"""What holds for every list of solutions."""

from __future__ import annotations

import itertools

import numpy as np
from cases import TOLERANCE

from ik_node import Arm, Goal, IkSolver
from ik_node.kernels.arrays import DISTINCT
from ik_node.solver.redundancy import is_redundant


def least_gap(arm: Arm, q, solutions) -> float:
    """Least largest joint difference of q (n,) from any solution; whole turns and idle joints left out."""
    difference = np.array([solution.q for solution in solutions]).reshape(-1, arm.n) - q
    turned = np.where(arm.period > 0.0, np.remainder(difference + np.pi, 2 * np.pi) - np.pi, difference)
    return np.abs(turned * ~arm.idle).max(axis=1).min(initial=np.inf)


def assert_in_order(arm: Arm, solutions, seed) -> None:
    """Least largest joint move first; among equal ones the farthest from the limits first."""
    keys = []
    for solution in solutions:
        move = round(float(np.abs(solution.q - seed).max()), 9)
        keys.append((move, -float(np.minimum(solution.q - arm.lower, arm.upper - solution.q).min())))
    assert keys == sorted(keys)


def assert_good(solver: IkSolver, goal: Goal, solutions, seed) -> None:
    """What holds for every list of solutions."""
    arm = solver.arm
    for solution in solutions:
        assert solution.solved
        assert solution.reason is None
        position_error, direction_error = solver.errors(goal, solution.q)
        assert (solution.position_error, solution.direction_error) == (position_error, direction_error)
        assert position_error <= TOLERANCE
        assert direction_error <= TOLERANCE
        assert ((solution.q >= arm.lower) & (solution.q <= arm.upper)).all()
        assert solution.self_motion == is_redundant(arm, goal)
    for one, other in itertools.combinations(solutions, 2):
        assert np.abs(one.q - other.q).max() > DISTINCT
    assert_in_order(arm, solutions, seed)
