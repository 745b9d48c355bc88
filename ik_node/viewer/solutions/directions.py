# SPDX-License-Identifier: Apache-2.0
"""The directions in which an arm can hold its tool at one position."""

from __future__ import annotations

import numpy as np

from ik_node.checks import Array
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver

SAMPLES = 120  # directions that are tried, evenly spread
REACHED = 1e-5  # [m] from the position
BUDGET = 2e-3  # [s] for a direction
GOLDEN = np.pi * (3.0 - np.sqrt(5.0))  # turn from one sample to the next [rad]


def sphere(count: int) -> Array:
    """Return unit vectors (count, 3), evenly spread: a Fibonacci lattice."""
    z = 1.0 - (2.0 * np.arange(count) + 1.0) / count
    turn, radius = GOLDEN * np.arange(count), np.sqrt(1.0 - z * z)
    return np.column_stack([radius * np.cos(turn), radius * np.sin(turn), z])


def possible_directions(solver: IkSolver, position: Array, seed: Array) -> Array:
    """Return directions (k, 3) of the tool axis that are possible at position (3,) [m].

    The nearest possible one to each of evenly spread directions: all over a cap where the direction is free,
    on its edge, and along a curve where the position ties the direction.
    """
    found = []
    for direction in sphere(SAMPLES):
        solution = solver.solve(Goal(position, direction), seed, BUDGET)
        if solution.position_error < REACHED:
            found.append(solver.arm.fk(solution.q)[1])
    return np.array(found).reshape(-1, 3)
