# SPDX-License-Identifier: Apache-2.0
"""Survey: which directions the tool axis can take at a position, and how well."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.errors import InputError, KernelError
from ik_node.kernels.arrays.layout import DIRECTION, LATERAL
from ik_node.model.arm import Arm
from ik_node.model.degrees_of_freedom import least_singular_values
from ik_node.solver.goal import Goal
from ik_node.solver.limit_distances import LimitDistances, distances_to_limits
from ik_node.solver.reachable_directions import configurations_at, fibonacci_sphere
from ik_node.solver.solver import IkSolver

STARTS = 8  # descents per direction that no formula decides


@dataclass(frozen=True)
class Reached:
    """What an arm can do at one position, for each of K directions.

    to_limits (K,) [rad or m]: distance to the joint limits in the configuration farthest from them, -inf
    where none was found. singular (K,): least singular value of the Jacobian there, see
    least_singular_values, else NaN. solutions (K,): how many meet the direction exactly, NaN if none; None:
    they were not counted.
    """

    to_limits: Array
    singular: Array
    solutions: Array | None


class Survey:
    """Surveys single positions. Safe to call from several threads, which run side by side.

    counts: whether it counts solutions.
    """

    def __init__(
        self,
        arm: Arm,
        directions: int,
        within: float,
        clearance: Callable[[Array], float] | None = None,
        count: bool = False,
    ) -> None:
        """directions: how many are tried. within [rad]: of the tool axis, for a direction to count.

        clearance: finds the least distance between links at q (n,), negative in collision; such
        configurations do not count. count: the solutions too, which takes many times as long. Raises
        KernelError if the kernels cannot be compiled, InputError where a joint to spare leaves no number to
        count.
        """
        served = kernels.prepare(('reached_directions',), wait=True)
        if served.stage is not kernels.Stage.READY:
            raise KernelError(str(served))
        finite = arm.n - int(arm.idle.sum()) <= arm.effective_dof
        if count and not finite:
            raise InputError(
                f'{arm.name} has a joint to spare: its solutions form self-motions and cannot be counted'
            )
        self._arm, self._cosine = arm, math.cos(within)
        self._clearance, self.counts = clearance, count
        self._limit_distances = LimitDistances(arm)
        listing = finite and (count or clearance is not None)
        self._solver = IkSolver(arm, compile='wait') if listing else None
        self.directions = fibonacci_sphere(directions)

    def at(self, place: Array, random_seed: int) -> Reached | None:
        """Return what the arm can do with the tool point at place (3,) [m], base frame; None: out of reach.

        Distances are lower bounds, except where a closed form gives all solutions.
        """
        arm, n, count = self._arm, self._arm.n, len(self.directions)
        reached = np.zeros(count, dtype=np.bool_)
        found = configurations_at(arm, place, self.directions, self._cosine, random_seed, reached)
        if not len(found):
            return None
        goals = np.full((count, 9), np.nan)
        goals[:, :DIRECTION], goals[:, DIRECTION:LATERAL] = place, self.directions
        exact, distances, _ = self._limit_distances.find(goals, STARTS)
        is_apart = _once(self._clearance)
        listed = dict(self._listed(place, exact, distances, is_apart))
        solutions = np.full(count, np.nan)
        solutions[list(listed)] = [len(one) for one in listed.values()]
        rows = np.vstack([found[:, :n], exact, *listed.values()])
        to_limits = distances_to_limits(arm, rows)
        to_limits[len(found) : len(found) + count] = distances
        serves = np.vstack(
            [
                found[:, n:] @ self.directions.T >= self._cosine,
                np.eye(count, dtype=np.bool_),
                *(np.tile(np.arange(count) == k, (len(one), 1)) for k, one in listed.items()),
            ]
        )
        best = _farthest(rows, np.where(serves, to_limits[:, None], -np.inf), is_apart)
        possible = best >= 0
        if not possible.any() and not any(map(is_apart, found[:, :n])):
            return None
        singular = np.full(count, np.nan)
        jacobians = np.array([arm.jacobian(q) for q in rows[best[possible]]]).reshape(-1, 6, n)
        singular[possible] = least_singular_values(jacobians, arm.reach, arm.effective_dof)
        return Reached(
            np.where(possible, to_limits[best], -np.inf), singular, solutions if self.counts else None
        )

    def _listed(
        self, place: Array, exact: Array, distances: Array, is_apart: Callable[[Array], bool]
    ) -> Iterator[tuple[int, Array]]:
        """Yield directions and all their solutions (m, n) without self-collision.

        Those of which exact (K, n), farthest from the limits by distances (K,), collides; to count: each.
        """
        if self._solver is None:
            return
        for k in np.flatnonzero(distances > -np.inf).tolist():
            if self.counts or not is_apart(exact[k]):
                goal = Goal(place, self.directions[k])
                found = [one.q for one in self._solver.solve_all(goal, time_budget=math.inf)]
                yield k, np.array([q for q in found if is_apart(q)]).reshape(-1, self._arm.n)


def _once(clearance: Callable[[Array], float] | None) -> Callable[[Array], bool]:
    """Return what tells whether links are apart at q (n,), which is found once for each q."""
    known: dict[bytes, bool] = {}

    def is_apart(q: Array) -> bool:
        if clearance is None:
            return True
        key = q.tobytes()
        if key not in known:
            known[key] = clearance(q) >= 0.0
        return known[key]

    return is_apart


def _farthest(rows: Array, scores: Array, is_apart: Callable[[Array], bool]) -> NDArray[np.int64]:
    """Return for each direction (K,) the row (c) of the largest score without self-collision, or -1."""
    while True:
        best = np.where(scores.max(axis=0) > -np.inf, scores.argmax(axis=0), -1)
        colliding = [row for row in set(best.tolist()) - {-1} if not is_apart(rows[row])]
        if not colliding:
            return best
        scores[colliding] = -np.inf
