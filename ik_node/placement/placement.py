# SPDX-License-Identifier: Apache-2.0
"""Placement: what the arm does at each goal from one placement of its base, and with which margins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.kernels.arrays.layout import DIRECTION, LATERAL
from ik_node.placement.search import PlacementSearch
from ik_node.solver.goal import Goal
from ik_node.solver.limit_distances import distances_to_limits
from ik_node.solver.solver import IkSolver
from ik_node.solver.workspace_bounds import radial_bounds

ANOTHER = 0.1  # [s] for other solutions of a goal where the one farthest from the limits collides


@dataclass(frozen=True)
class Placement:
    """A placement of the base, and how well the goals are met from there.

    base (6,): as in Region. position (3,) [m], R (3, 3): of the base in the frame of the goals. unmet: rows
    of goals without a solution. joints (N, n): NaN for these. Margins, each at the worst goal that is met,
    inf if none is: to_limits [rad or m]: from the joint limits; to_reach [m]: from the spheres that bound the
    workspace by the link lengths; clearance [m]: between links, None if that is not known. breaks: points of
    paths that the arm comes to only by a jump to another branch.
    """

    base: Array
    position: Array
    R: Array
    unmet: tuple[int, ...]
    joints: Array
    to_limits: float
    to_reach: float
    clearance: float | None
    breaks: int

    @property
    def score(self) -> tuple[int, int, float]:
        """The less, the better."""
        return len(self.unmet), self.breaks, -self.to_limits


class PlacementJudge:
    """Judges few placements thoroughly: self-collision too, and paths."""

    def __init__(
        self,
        search: PlacementSearch,
        solver: IkSolver,
        clearance: Callable[[Array], float] | None,
        paths: Sequence[NDArray[np.int64]] = (),
    ) -> None:
        """clearance: finds the least distance [m] between links, negative in collision, at q (n,).

        paths: rows of goals in the order in which the tool goes there.
        """
        self._search, self._solver, self._clearance, self._paths = search, solver, clearance, paths
        self._shells = radial_bounds(solver.arm)

    def judged(self, base: Array) -> Placement:
        """Return the placement base (6,)."""
        (goals,) = self._search.goals(base[None])
        joints, distances, _ = self._search.limit_distances.find(goals)
        met = distances > -np.inf
        joints[~met] = np.nan
        clearances = np.full(len(goals), np.inf)
        if self._clearance is not None:
            for row in np.flatnonzero(met):
                joints[row], clearances[row] = self._apart(self._clearance, goals[row], joints[row])
            met &= clearances >= 0.0
            joints[~met] = np.nan
        (position,), (R,) = self._search.region.poses(base[None])
        return Placement(
            base,
            position,
            R,
            tuple(np.flatnonzero(~met).tolist()),
            joints,
            float(distances_to_limits(self._solver.arm, joints[met]).min(initial=np.inf)),
            float(self._within_reach(goals[met]).min(initial=np.inf)),
            None if self._clearance is None else float(clearances[met].min(initial=np.inf)),
            sum(self._breaks(goals[rows]) for rows in self._paths),
        )

    def _apart(self, clearance_at: Callable[[Array], float], goal: Array, q: Array) -> tuple[Array, float]:
        """Return the solution farthest from the limits whose links are apart, and their distance [m].

        q (n,): the first of all solutions. A negative distance if none was found.
        """
        clearance = clearance_at(q)
        if clearance >= 0.0:
            return q, clearance
        others = self._solver.solve_all(Goal.unpacked(goal), q, time_budget=ANOTHER)
        rows = np.array([one.q for one in others]).reshape(-1, len(q))
        for row in rows[np.argsort(-distances_to_limits(self._solver.arm, rows))]:
            if (distance := clearance_at(row)) >= 0.0:
                return row, distance
        return q, clearance

    def _within_reach(self, goals: Array) -> Array:
        """Return how far (N,) [m] the positions of goals (N, 9) are inside the spheres."""
        distances = np.linalg.norm(goals[:, None, :DIRECTION] - self._shells[:, :3], axis=2)
        inside = np.minimum(self._shells[:, 4] - distances, distances - self._shells[:, 3])
        return inside.min(axis=1, initial=np.inf)

    def _breaks(self, goals: Array) -> int:
        """Return how many points of a path the arm does not come to on one branch."""
        free = np.isnan(goals[:, DIRECTION]).all()
        directions = None if free else goals[:, DIRECTION:LATERAL]
        path = self._solver.solve_path(goals[:, :DIRECTION], directions, time_budget=math.inf)
        return len(path.breaks)
