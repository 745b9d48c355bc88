# SPDX-License-Identifier: Apache-2.0
"""LimitDistances: how far from its joint limits an arm can stay at each of many goals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.errors import KernelError
from ik_node.model.arm import Arm, frozen
from ik_node.solver.closed_form import NO_FORM, recognise
from ik_node.solver.restarts import RandomRestarts
from ik_node.solver.workspace_bounds import radial_bounds

TOLERANCES = 1e-6, 1e-4  # [m], [rad]
STARTS = 24  # descents per goal that no formula decides


class LimitDistances:
    """The solution farthest from the joint limits for each of many goals: microseconds each.

    For arms with an exact closed form and goals with a direction it compares all solutions, as
    IkSolver.solve_all lists them. For others it is the best result of a fixed number of descents. Safe to
    call from several threads, which run side by side.
    """

    def __init__(self, arm: Arm) -> None:
        """Raises KernelError if the kernels cannot be compiled."""
        served = kernels.prepare(wait=True)
        if served.stage is not kernels.Stage.READY:
            raise KernelError(str(served))
        search = RandomRestarts(arm, 'lm', *TOLERANCES, STARTS, 0)
        form = recognise(arm)
        self._middle = arm.middle
        self._model = (
            *(arm.joints, arm.tool, without_idle(arm, arm.middle), arm.period),
            NO_FORM if form is None else form.constants,
            form is not None and form.exact,
        )
        self._search = radial_bounds(arm), search.options, search.table

    def find(self, goals: Array, starts: int = STARTS) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return the joints (N, n) at goals (N, 9) and their distances (N,) [rad or m].

        -inf where there is no solution; the joints mean nothing there. Also whether (N,) all solutions were
        compared, or none can exist. starts: descents per goal that no formula decides.
        """
        found, distances = np.empty((len(goals), len(self._middle))), np.empty(len(goals))
        complete = np.empty(len(goals), dtype=np.bool_)
        kernels.limit_distances(
            *self._model, goals, *self._search, starts, self._middle.copy(), found, distances, complete
        )
        return found, distances, complete

    def misses(self, goals: Array, distances: Array) -> Array:
        """Return by how much [m] goals (N, 9) of distance -inf are missed, 0 for others: a quick estimate.

        A chord of 1 between the directions counts as 0.2 of the reach. distances (N,): as find returns them.
        """
        misses = np.empty(len(goals))
        joints, tool, limits = self._model[:3]
        kernels.estimate_misses(joints, tool, limits, goals, *self._search[1:], distances, misses)
        return misses


def without_idle(arm: Arm, q: Array) -> Array:
    """Return the limits of arm with the joints held at q (n,) that move neither tool point nor axis."""
    limits = arm.limits.copy()
    np.copyto(limits[:2], q, where=arm.idle)
    return frozen(limits)


def distances_to_limits(arm: Arm, rows: Array) -> Array:
    """Return the least distance (N,) [rad or m] of configurations (N, n) to a limit of a joint not idle."""
    bounded = ~arm.continuous & (arm.upper > arm.lower) & ~arm.idle
    of = rows[:, bounded]
    gaps = np.minimum(of - arm.lower[bounded], arm.upper[bounded] - of)
    least: Array = gaps.min(axis=1, initial=np.inf)
    return least
