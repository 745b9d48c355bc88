# SPDX-License-Identifier: Apache-2.0
"""The best placements of a base: a grid, then steps that become smaller from the best of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.placement.region import Region
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver

GRID = 40_000  # placements
BUDGET = 0.01  # [s] for all solutions of a goal; arms with a formula need a thousandth of it
DIRECTIONS = 12  # at random, beside those along the axes: the worst goal makes ridges
STARTS = 60  # of the grid, from which the search goes on
SMALLEST = 1e-3  # [m], and rad times the reach: steps end there
DISTINCT = 0.05  # share of the region by which places differ that count as two


@dataclass(frozen=True)
class Placement:
    """A placement of the base, and how well the goals are met there.

    base (4,): x, y, z [m] and yaw [rad]. unmet: rows of goals without a solution. margin [rad or m]: the
    distance to the joint limits, of the best solution of the worst goal that is met.
    """

    base: Array
    unmet: tuple[int, ...]
    margin: float

    @property
    def score(self) -> tuple[int, float]:
        """The less, the better."""
        return len(self.unmet), -self.margin


class PlacementSearch:
    """Judges placements of an arm for goals (N, 3) [m] and directions (N, 3) unit or None, in one frame."""

    def __init__(self, solver: IkSolver, positions: Array, directions: Array | None, region: Region) -> None:
        self._solver, self._positions, self._directions = solver, positions, directions
        self._region = region
        arm = solver.arm
        self._bounded = ~arm.continuous & (arm.upper > arm.lower)

    def judge(self, base: Array) -> Placement:
        """Return how well the goals are met with the base (4,) there."""
        R = self._region.rotation(float(base[3]))
        places = (self._positions - base[:3]) @ R
        axes = [None] * len(places) if self._directions is None else self._directions @ R
        unmet, margin = [], np.inf
        for row, (place, axis) in enumerate(zip(places, axes, strict=True)):
            every = self._solver.solve_all(Goal(place, axis), time_budget=BUDGET)
            if every:
                margin = min(margin, max(self._gap(one.q) for one in every))
            else:
                unmet.append(row)
        return Placement(base, tuple(unmet), 0.0 if margin == np.inf else margin)

    def _gap(self, q: Array) -> float:
        """Return the least distance of q (n,) to a limit [rad or m]."""
        arm = self._solver.arm
        gaps = np.minimum(q - arm.lower, arm.upper - q)[self._bounded]
        return float(gaps.min()) if gaps.size else np.inf

    def best(self, count: int, done: Callable[[int], None]) -> tuple[list[Placement], list[Placement], Array]:
        """Return the best distinct placements, those of the grid, and its distances (4,).

        done: called with numbers of placements of the grid.
        """
        reach = self._solver.arm.reach
        grid, steps = self._region.grid(GRID, reach)
        coarse = []
        for base in grid:
            coarse.append(self.judge(base))
            done(1)
        starts = self._distinct(sorted(coarse, key=lambda one: one.score), STARTS)
        scale = np.array([1.0, 1.0, 1.0, reach])
        refined = [self._refined(start, steps, scale) for start in starts]
        return self._distinct(sorted(refined, key=lambda one: one.score), count), coarse, steps

    def _refined(self, start: Placement, steps: Array, scale: Array) -> Placement:
        """Go where it is better, along the axes and in random directions, with steps that are halved."""
        here, step = start, steps / 2.0
        rng = np.random.default_rng(0)  # the same search gives the same placements
        while (step * scale).max() > SMALLEST:
            axes = np.vstack([np.eye(4), -np.eye(4)])[np.tile(step > 0.0, 2)]
            ways = np.vstack([axes, rng.normal(size=(DIRECTIONS, 4)) / 2.0]) * step
            places = np.clip(here.base + ways, self._region.lower, self._region.upper)
            better = min(map(self.judge, places), key=lambda one: one.score)
            if better.score < here.score:
                here = better
            else:
                step = step / 2.0
        return here

    def _distinct(self, placements: list[Placement], count: int) -> list[Placement]:
        """Return the first placements at different places; at different angles if there is one place only."""
        size = (self._region.upper - self._region.lower) * DISTINCT
        axes = slice(0, 3) if size[:3].any() else slice(3, 4)
        kept: list[Placement] = []
        for one in placements:
            if all((np.abs(one.base - other.base) > size)[axes].any() for other in kept):
                kept.append(one)
            if len(kept) == count:
                break
        return kept
