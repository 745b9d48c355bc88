# SPDX-License-Identifier: Apache-2.0
"""The best placements of a base: a grid, then steps that become smaller from the best of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.kernels.arrays.layout import DIRECTION, LATERAL
from ik_node.model.arm import Arm
from ik_node.placement.region import SIZE, Region
from ik_node.solver.cores import usable_cores
from ik_node.solver.limit_distances import STARTS, LimitDistances

GRID = 40_000  # placements
SPREAD = 20_000  # more of them, between those of the grid
COARSE_STARTS = 8  # descents at a goal that no formula decides, in the first look at a placement
PART = 20_000  # goals that one thread judges at a time
DIRECTIONS = 16  # at random, beside those along the axes: the worst goal makes ridges
SMALLEST = 2e-4  # [m], and rad times the reach: steps end there
ROUNDS = ((80, 0.02), (24, SMALLEST))  # how many distinct placements are improved, until steps are smaller
DISTINCT = 0.05  # share of the region by which places differ that count as two


@dataclass(frozen=True)
class Judged:
    """Placements (N, 6), the number of goals unmet at each (N,), and the distance to the limits (N,).

    The latter [rad or m] of the solution farthest from the joint limits, at the worst goal that is met; inf
    if none is met. complete: the share of goals for which all solutions were compared.
    """

    bases: Array
    unmet: NDArray[np.int64]
    distances: Array
    complete: float

    @property
    def order(self) -> NDArray[np.intp]:
        """Which rows are best first: fewer goals unmet, then farther from the limits."""
        return np.lexsort((-np.where(np.isinf(self.distances), 0.0, self.distances), self.unmet))

    def __getitem__(self, rows: NDArray[np.intp]) -> Judged:
        return Judged(self.bases[rows], self.unmet[rows], self.distances[rows], self.complete)

    def better(self, other: Judged) -> NDArray[np.bool_]:
        """Whether each row is better than the same row of other."""
        return (self.unmet < other.unmet) | (
            (self.unmet == other.unmet) & (self.distances > other.distances) & np.isfinite(self.distances)
        )


def joined(*parts: Judged) -> Judged:
    """Return the rows of all parts."""
    counts = [len(part.bases) for part in parts]
    return Judged(
        np.concatenate([part.bases for part in parts]),
        np.concatenate([part.unmet for part in parts]),
        np.concatenate([part.distances for part in parts]),
        float(np.average([part.complete for part in parts], weights=counts)),
    )


class PlacementSearch:
    """Judges placements of an arm for goals (N, 3) [m] and directions (N, 3) unit or None, in one frame.

    A direction of NaN is free. count: of the goals.
    """

    def __init__(self, arm: Arm, positions: Array, directions: Array | None, region: Region) -> None:
        """Raises KernelError if the kernels cannot be compiled."""
        self.arm, self.region, self._reach = arm, region, arm.reach
        self.count = len(positions)
        self._positions, self._directions = positions, directions
        self.limit_distances = LimitDistances(arm)
        self._threads = usable_cores()

    def goals(self, bases: Array) -> Array:
        """Return the goals (N, goals, 9) as the arm sees them from bases (N, 6)."""
        places, R = self.region.poses(bases)
        packed = np.full((len(bases), len(self._positions), 9), np.nan)
        packed[:, :, :DIRECTION] = (self._positions - places[:, None]) @ R
        if self._directions is not None:
            packed[:, :, DIRECTION:LATERAL] = self._directions @ R
        return packed

    def judged(
        self, bases: Array, starts: int = STARTS, done: Callable[[int], object] = lambda _: None
    ) -> Judged:
        """Return how well the goals are met with the base at each of bases (N, 6); done: given numbers."""
        rows = max(1, PART // len(self._positions))

        def part(first: int) -> tuple[NDArray[np.int64], Array, int]:
            goals = self.goals(bases[first : first + rows])
            _, found, complete = self.limit_distances.find(goals.reshape(-1, 9), starts)
            found = found.reshape(goals.shape[:2])
            met = found > -np.inf
            return (~met).sum(axis=1), np.where(met, found, np.inf).min(axis=1), int(complete.sum())

        def all_parts() -> Iterator[tuple[NDArray[np.int64], Array, int]]:
            with ThreadPoolExecutor(self._threads) as pool:
                try:
                    for one in pool.map(part, range(0, len(bases), rows)):
                        done(len(one[0]))
                        yield one
                except BaseException:  # Ctrl-C: only the parts in progress are waited for
                    pool.shutdown(cancel_futures=True)
                    raise

        unmet, distances, complete = zip(*all_parts(), strict=True)
        share = sum(complete) / (len(bases) * len(self._positions))
        return Judged(bases, np.concatenate(unmet), np.concatenate(distances), share)

    def coarse(self, most: int, done: Callable[[int], object]) -> tuple[Judged, Array]:
        """Return the placements of a grid of about `most`, and its distances (6,)."""
        grid, steps = self.region.grid(most, self._reach)
        return self.judged(grid, COARSE_STARTS, done), steps

    def best(self, grid: Judged, steps: Array, done: Callable[[int], object] = lambda _: None) -> Judged:
        """Return improved placements and where they started, best first; grid, steps, done: as for coarse.

        More starts than those of the grid come from placements spread between them.
        """
        between = self.judged(self.region.spread(1 + SPREAD * len(grid.bases) // GRID), COARSE_STARTS, done)
        both = joined(grid, between)
        both = both[both.order]
        starts = here = both[distinct(self.region, both.bases, ROUNDS[0][0])]
        step = np.tile(steps / 2.0, (len(here.bases), 1))
        for count, smallest in ROUNDS:
            order = here.order
            rows = order[distinct(self.region, here.bases[order], count)]
            here, step = here[rows], step[rows]
            self._improve(here, step, smallest)
        both = joined(here, starts)
        return both[both.order]

    def _improve(self, here: Judged, step: Array, smallest: float) -> None:
        """Move placements to where it is better, in place, until their steps (N, 6) are smaller.

        Along the axes and in random directions, by steps that are halved where nothing is better.
        """
        rng = np.random.default_rng(0)  # the same search gives the same placements
        scale = np.repeat([1.0, self._reach], 3)
        axes = np.vstack([np.eye(SIZE), -np.eye(SIZE)])[np.tile(step[0] > 0.0, 2)]
        while len(rows := np.flatnonzero((step * scale).max(axis=1) > smallest)):
            ways = np.vstack([axes, rng.normal(size=(DIRECTIONS, SIZE)) / 2.0])
            tried = here.bases[rows, None] + ways * step[rows, None]
            trial = self.judged(self.region.within(tried.reshape(-1, SIZE)), COARSE_STARTS)
            rank = np.empty(len(trial.bases), dtype=np.int64)
            rank[trial.order] = np.arange(len(rank))
            first = rank.reshape(len(rows), -1).argmin(axis=1) + len(ways) * np.arange(len(rows))
            chosen = trial[first]
            better = chosen.better(here[rows])
            for name in ('bases', 'unmet', 'distances'):
                getattr(here, name)[rows[better]] = getattr(chosen, name)[better]
            step[rows[~better]] /= 2.0


def distinct(region: Region, bases: Array, count: int) -> NDArray[np.intp]:
    """Return the first rows of bases (N, 6) at different places, at different angles if there is one."""
    size = region.size * DISTINCT
    axes = slice(0, 3) if size[:3].any() else slice(3, SIZE)
    kept: list[int] = []
    for row in range(len(bases)):
        if not kept or (region.apart(bases[kept], bases[row]) > size)[:, axes].any(axis=1).all():
            kept.append(row)
        if len(kept) == count:
            break
    return np.array(kept, dtype=np.intp)
