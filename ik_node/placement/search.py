# SPDX-License-Identifier: Apache-2.0
"""The best placements of a base: a grid, then differential evolution around the best of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.kernels.arrays.layout import DIRECTION, LATERAL
from ik_node.model.arm import Arm
from ik_node.placement.region import SIZE, Region
from ik_node.solver.cores import usable_cores
from ik_node.solver.limit_distances import STARTS as DESCENTS
from ik_node.solver.limit_distances import LimitDistances

GRID = 40_000  # placements
SPREAD = 20_000  # more of them, between those of the grid
COARSE_STARTS = 8  # descents at a goal that no formula decides, in the first look at a placement
PART = 20_000  # goals that one thread judges at a time
STARTS = 40  # of the search: at distinct placements, where distinct goals are met, and where few are missed
NEAR = 2000  # placements at which is found by how much goals are missed
AIMING, FINISHING = (16, 30), (24, 40)  # members of the population around each start, and generations
FAR = 1e3  # [m] more than any goal is missed by
FACTORS, CROSSING = (0.4, 0.9), 0.9  # of differential evolution, as its authors advise
DISTINCT = 0.05  # share of the region by which places differ that count as two


def of_all(missed: Array) -> Array:
    """Return by how much [m] all goals together are missed, of misses (N, goals): where all may be met."""
    return missed.sum(axis=1)


def of_next(missed: Array) -> Array:
    """Return the same of the nearest goal unmet, and FAR for each other one: where one more may be met."""
    lack = np.where(missed > 0.0, missed, FAR).min(axis=1, initial=FAR)
    return np.where(lack < FAR, lack + FAR * (np.sum(missed > 0.0, axis=1) - 1), 0.0)


@dataclass(frozen=True)
class Judged:
    """Placements (N, 6), which goals are met at each (N, goals), and the distance to the limits (N,).

    The latter [rad or m] of the solution farthest from the joint limits, at the worst goal that is met; inf
    if none is met. lack (N,): by how much goals are missed, which counts first; 0 where that was not asked.
    complete: the share of goals for which all solutions were compared.
    """

    bases: Array
    met: NDArray[np.bool_]
    distances: Array
    lack: Array
    complete: float

    @cached_property
    def unmet(self) -> NDArray[np.int64]:
        """The number of goals unmet at each (N,)."""
        return np.sum(~self.met, axis=1)

    @property
    def order(self) -> NDArray[np.intp]:
        """Which rows are best first: a smaller lack, fewer goals unmet, then farther from the limits."""
        return np.lexsort((-np.where(np.isinf(self.distances), 0.0, self.distances), self.unmet, self.lack))

    def __getitem__(self, rows: NDArray[np.intp]) -> Judged:
        return Judged(self.bases[rows], self.met[rows], self.distances[rows], self.lack[rows], self.complete)

    def better(self, other: Judged) -> NDArray[np.bool_]:
        """Whether each row is better than the same row of other."""
        farther = (self.distances > other.distances) & np.isfinite(self.distances)
        fewer = (self.unmet < other.unmet) | ((self.unmet == other.unmet) & farther)
        return (self.lack < other.lack) | ((self.lack == other.lack) & fewer)

    def improved(self, other: Judged) -> Judged:
        """Return the better of each row and the same row of other."""
        rows = other.better(self)
        return Judged(
            np.where(rows[:, None], other.bases, self.bases),
            np.where(rows[:, None], other.met, self.met),
            np.where(rows, other.distances, self.distances),
            np.where(rows, other.lack, self.lack),
            self.complete,
        )


def joined(*parts: Judged) -> Judged:
    """Return the rows of all parts."""
    counts = [len(part.bases) for part in parts]
    return Judged(
        np.concatenate([part.bases for part in parts]),
        np.concatenate([part.met for part in parts]),
        np.concatenate([part.distances for part in parts]),
        np.concatenate([part.lack for part in parts]),
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
        self,
        bases: Array,
        starts: int = DESCENTS,
        done: Callable[[int], object] = lambda _: None,
        lack_of: Callable[[Array], Array] | None = None,
    ) -> Judged:
        """Return how well the goals are met with the base at each of bases (N, 6).

        done: given numbers. lack_of: makes a lack (N,) of by how much [m] goals are missed (N, goals).
        """
        rows = max(1, PART // len(self._positions))

        def part(first: int) -> tuple[NDArray[np.bool_], Array, Array, int]:
            goals = self.goals(bases[first : first + rows])
            shape, flat = goals.shape[:2], goals.reshape(-1, 9)
            _, found, complete = self.limit_distances.find(flat, starts)
            met = found.reshape(shape) > -np.inf
            lack = np.zeros(len(goals))
            if lack_of is not None:
                lack = lack_of(self.limit_distances.lack(flat, found).reshape(shape))
            distances = np.where(met, found.reshape(shape), np.inf).min(axis=1)
            return met, distances, lack, int(complete.sum())

        def all_parts() -> Iterator[tuple[NDArray[np.bool_], Array, Array, int]]:
            with ThreadPoolExecutor(self._threads) as pool:
                try:
                    for one in pool.map(part, range(0, len(bases), rows)):
                        done(len(one[0]))
                        yield one
                except BaseException:  # Ctrl-C: only the parts in progress are waited for
                    pool.shutdown(cancel_futures=True)
                    raise

        *parts, complete = zip(*all_parts(), strict=True)
        met, distances, lack = map(np.concatenate, parts)
        return Judged(bases, met, distances, lack, sum(complete) / met.size)

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
        # The best of all may meet other goals than all that look best on the grid, and none there.
        kinds = np.unique(np.packbits(both.met, axis=1), axis=0, return_index=True)[1]
        apart = distinct(self.region, both.bases, STARTS)
        starts = both[np.union1d(apart, np.sort(kinds)[:STARTS])]
        here = starts
        if both.unmet[0] > 0:
            for lack_of in (of_all, of_next):
                near = self.judged(between.bases[:NEAR], COARSE_STARTS, lack_of=lack_of)
                near = near[near.order]
                near = near[distinct(self.region, near.bases, STARTS)]
                met = self._evolved(joined(here, near), steps, *AIMING, lack_of)
                here = joined(here, replace(met, lack=np.zeros(len(met.bases))))
                here = here[here.order]
                here = here[distinct(self.region, here.bases, STARTS)]
        here = self._evolved(here, steps, *FINISHING)
        both = joined(here, starts)
        return both[both.order]

    def _evolved(
        self,
        here: Judged,
        steps: Array,
        members: int,
        generations: int,
        lack_of: Callable[[Array], Array] | None = None,
    ) -> Judged:
        """Return better placements near each of here, found by differential evolution.

        Storn and Price 1997, with a population around each placement, at first within steps (6,). It follows
        the ridges that the worst goal makes: a population takes their shape.
        """
        judged = partial(self.judged, starts=COARSE_STARTS, lack_of=lack_of)
        rng = np.random.default_rng(0)  # the same search gives the same placements
        shape = len(here.bases), members
        shifts = steps * rng.uniform(-1.0, 1.0, (*shape, SIZE))
        shifts[:, 0] = 0.0
        first = members * np.arange(shape[0])
        present = judged(self._clipped(here.bases[:, None] + shifts))
        for _ in range(generations):
            picks = first[:, None, None] + rng.random((*shape, members)).argsort(axis=2)[:, :, :3]
            a, b, c = np.moveaxis(present.bases[picks], 2, 0)
            old = present.bases.reshape(*shape, SIZE)
            new = a + rng.uniform(*FACTORS, (*shape, 1)) * (b - c)
            new = np.where(rng.random(new.shape) < CROSSING, new, old)
            present = present.improved(judged(self._clipped(new)))
        rank = np.empty(len(present.bases), dtype=np.int64)
        rank[present.order] = np.arange(len(rank))
        best = present[rank.reshape(shape).argmin(axis=1) + first]
        return replace(best, bases=self.region.within(best.bases))

    def _clipped(self, bases: Array) -> Array:
        """Return bases (..., 6) as rows (N, 6) within the bounds, whole turns as they are."""
        region = self.region
        rows = bases.reshape(-1, SIZE)
        return np.where(region.periodic, rows, np.clip(rows, region.lower, region.upper))


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
