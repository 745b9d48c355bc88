# SPDX-License-Identifier: Apache-2.0
"""Placement: where the base of an arm is best, for the goals of a task."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.kernels.arrays import DIRECTION, LATERAL
from ik_node.model.arm import Arm
from ik_node.solver.batch import in_parts, usable_cores
from ik_node.solver.goal import Goal
from ik_node.solver.limit_distances import STARTS, LimitDistances, distances_to_limits
from ik_node.solver.solver import IkSolver
from ik_node.solver.workspace_bounds import radial_bounds

NAMES = ('x', 'y', 'z', 'roll', 'pitch', 'yaw')
SIZE = len(NAMES)
TURN = 2.0 * math.pi
WHOLE = 1e-9  # rad by which a range may miss a whole turn


@dataclass(frozen=True)
class Region:
    """Bounds of x, y, z [m] and roll, pitch, yaw [rad] of the base.

    A placement is an array (6,) of these. x, y, z are along the columns of axes (3, 3) from origin (3,) [m]
    in the frame of the goals, for rails; roll, pitch and yaw turn about the fixed axes of R_up (3, 3), the
    attitude of the base at zero, for walls and ceilings. lower, upper (6,). A range of a whole turn has no
    ends.
    """

    lower: Array
    upper: Array
    R_up: Array = field(default_factory=lambda: np.eye(3))
    origin: Array = field(default_factory=lambda: np.zeros(3))
    axes: Array = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        """Raise InputError for bounds that are not finite, crossed, or more than a turn."""
        for k, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            name, unit = NAMES[k], math.degrees(1.0) if k >= 3 else 1.0
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise InputError(
                    f'--{name} must be two finite numbers, the lower one first, got {unit * low:g} {unit * high:g}'
                )
            if k >= 3 and high - low > TURN + WHOLE:
                raise InputError(f'--{name} spans more than a turn: {unit * low:g} {unit * high:g} degrees')

    @property
    def size(self) -> Array:
        """The ranges (6,) [m, rad]."""
        return self.upper - self.lower

    @property
    def periodic(self) -> NDArray[np.bool_]:
        """Which ranges (6,) are whole turns."""
        return np.array([k >= 3 and span > TURN - WHOLE for k, span in enumerate(self.size)])

    def poses(self, bases: Array) -> tuple[Array, Array]:
        """Return the positions (N, 3) and attitudes (N, 3, 3) of bases (N, 6) in the frame of the goals."""
        (cr, cp, cy), (sr, sp, sy) = np.cos(bases[:, 3:]).T, np.sin(bases[:, 3:]).T
        R = np.empty((len(bases), 3, 3))
        R[:, 0] = np.column_stack([cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr])
        R[:, 1] = np.column_stack([sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr])
        R[:, 2] = np.column_stack([-sp, cp * sr, cp * cr])
        return self.origin + bases[:, :3] @ self.axes.T, self.R_up @ R

    def within(self, bases: Array) -> Array:
        """Return bases (N, 6) brought into the bounds: whole turns around, other ranges to their ends."""
        turns = self.lower + np.mod(bases - self.lower, TURN)
        return np.where(self.periodic, turns, np.clip(bases, self.lower, self.upper))

    def gaps(self, bases: Array, base: Array) -> Array:
        """Return how far (N, 6) bases (N, 6) are from base (6,), the short way round."""
        direct = np.abs(bases - base)
        return np.where(self.periodic, np.minimum(direct, TURN - direct), direct)

    def grid(self, limit: int, reach: float) -> tuple[Array, Array]:
        """Return placements (N, 6), about `limit` at equal distances, and these distances (6,).

        reach [m]: at which a turn moves the tool as far as a shift.
        """
        size = self.size * np.repeat([1.0, reach], 3)
        wide = size > 0.0
        step = (float(np.prod(size[wide])) / limit) ** (1.0 / max(1, int(wide.sum()))) if wide.any() else 1.0
        # Half a step is left at both ends, so that each placement is the middle of a cell of the same size.
        counts = np.where(wide, np.maximum(2, np.round(size / step).astype(int)), 1)
        steps = np.where(wide, self.size / counts, 0.0)
        axes = [
            low + width * (np.arange(count) + 0.5) if width else np.array([low])
            for low, width, count in zip(self.lower, steps, counts, strict=True)
        ]
        return np.array(list(itertools.product(*axes))), steps

    def spread(self, count: int) -> Array:
        """Return placements (count, 6) spread evenly, as an additive recurrence of Kronecker's kind.

        Steps are powers of the root of x^(d + 1) = x + 1 for d ranges, which gives few gaps (Roberts 2018).
        """
        wide = np.flatnonzero(self.size > 0.0)
        root = 2.0
        for _ in range(50):
            root = (1.0 + root) ** (1.0 / (len(wide) + 1))
        shares = np.zeros((count, SIZE))
        steps = root ** -np.arange(1.0, len(wide) + 1)
        shares[:, wide] = np.mod(0.5 + np.arange(1, count + 1)[:, None] * steps, 1.0)
        return self.lower + shares * self.size


GRID = 40_000  # placements
SPREAD = 20_000  # more of them, between those of the grid
COARSE_STARTS = 8  # descents at a goal that no formula decides, in the first look at a placement
PART = 20_000  # goals that one thread judges at a time
BOUNDED = 1_000_000  # goals that are compared with the bounds of the workspace at a time

# Of the search: at distinct placements, where distinct goals are met, and where few are missed.
POPULATIONS = 40
NEAR = 2000  # placements at which is found by how much goals are missed
AIMING, FINISHING = (16, 30), (24, 40)  # members of the population around each start, and generations
FAR = 1e3  # what each further goal that is missed counts
FACTORS, CROSSING = (0.4, 0.9), 0.9  # of differential evolution, as its authors advise
DISTINCT = 0.05  # share of the region by which places differ that count as two


def of_all(missed: Array) -> Array:
    """Return by how much [m] all goals together are missed, of misses (N, goals): where all may be met."""
    return missed.sum(axis=1)


def of_next(missed: Array) -> Array:
    """Return the same of the nearest goal unmet, and FAR for each other one: where one more may be met."""
    unmet = missed > 0.0
    nearest = np.minimum(np.where(unmet, missed, np.inf).min(axis=1), FAR)
    return np.where(unmet.any(axis=1), nearest + FAR * (unmet.sum(axis=1) - 1), 0.0)


AIMS = of_all, of_next


@dataclass(frozen=True)
class Judged:
    """Placements (N, 6), the number of goals unmet at each (N,), and the distance to the limits (N,).

    The latter [rad or m] of the solution farthest from the joint limits, at the worst goal that is met; inf
    if none is met. miss (N,): by how much goals are missed, which counts first; 0 without an aim.
    met (N, bytes): which goals are met, a bit for each. complete: the share of goals for which all solutions
    were compared.
    """

    bases: Array
    unmet: NDArray[np.int64]
    distances: Array
    miss: Array
    met: NDArray[np.uint8]
    complete: float = field(kw_only=True)

    @property
    def columns(self) -> tuple[Any, ...]:
        """All that has N rows."""
        return self.bases, self.unmet, self.distances, self.miss, self.met

    @property
    def order(self) -> NDArray[np.intp]:
        """Which rows are best first: a smaller miss, fewer goals unmet, then farther from the limits."""
        return np.lexsort((-np.where(np.isinf(self.distances), 0.0, self.distances), self.unmet, self.miss))

    def __getitem__(self, rows: NDArray[np.intp]) -> Judged:
        return Judged(*(column[rows] for column in self.columns), complete=self.complete)

    def better(self, other: Judged) -> NDArray[np.bool_]:
        """Whether each row is better than the same row of other."""
        farther = (self.distances > other.distances) & np.isfinite(self.distances)
        fewer = (self.unmet < other.unmet) | ((self.unmet == other.unmet) & farther)
        return (self.miss < other.miss) | ((self.miss == other.miss) & fewer)

    def improved(self, other: Judged) -> Judged:
        """Return the better of each row and the same row of other."""
        rows = other.better(self)
        pairs = zip(other.columns, self.columns, strict=True)
        return Judged(
            *(np.where(rows if a.ndim == 1 else rows[:, None], a, b) for a, b in pairs),
            complete=self.complete,
        )


def joined(*parts: Judged) -> Judged:
    """Return the rows of all parts."""
    share = np.average([part.complete for part in parts], weights=[len(part.bases) for part in parts])
    columns = zip(*(part.columns for part in parts), strict=True)
    return Judged(*map(np.concatenate, columns), complete=float(share))


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
        self._cores = usable_cores()  # counted once, for hundreds of calls

    def goals(self, bases: Array) -> Array:
        """Return the goals (N, goals, 9) as the arm sees them from bases (N, 6)."""
        origins, R = self.region.poses(bases)
        packed = np.full((len(bases), len(self._positions), 9), np.nan)
        packed[:, :, :DIRECTION] = (self._positions - origins[:, None]) @ R
        if self._directions is not None:
            packed[:, :, DIRECTION:LATERAL] = self._directions @ R
        return packed

    def judged(
        self,
        bases: Array,
        starts: int = STARTS,
        done: Callable[[int], object] = lambda _: None,
        aim: Callable[[Array], Array] | None = None,
    ) -> Judged:
        """Return how well the goals are met with the base at each of bases (N, 6).

        done: given numbers. aim: makes a miss (N,) of the distances [m] by which goals are missed (N, goals).
        """
        rows = max(1, PART // self.count)

        def part(some: slice) -> Judged:
            here = bases[some]
            goals = self.goals(here).reshape(-1, 9)
            shape = len(here), self.count
            _, found, complete = self.limit_distances.find(goals, starts)
            met, miss = found.reshape(shape) > -np.inf, np.zeros(len(here))
            if aim is not None:
                miss = aim(self.limit_distances.misses(goals, found).reshape(shape))
            distances = np.where(met, found.reshape(shape), np.inf).min(axis=1)
            unmet, bits = np.sum(~met, axis=1), np.packbits(met, axis=1)
            return Judged(here, unmet, distances, miss, bits, complete=float(complete.mean()))

        parts = []
        for one in in_parts(part, len(bases), rows, self._cores):
            done(len(one.bases))
            parts.append(one)
        return joined(*parts)

    def coarse(self, limit: int, done: Callable[[int], object]) -> tuple[Judged, Array]:
        """Return the placements of a grid of about `limit`, and its distances (6,)."""
        grid, steps = self.region.grid(limit, self._reach)
        return self.judged(grid, COARSE_STARTS, done), steps

    def best(self, grid: Judged, steps: Array, done: Callable[[int], object] = lambda _: None) -> Judged:
        """Return improved placements and where they started, best first; grid, steps, done: as for coarse.

        More starts than those of the grid come from placements spread between them.
        """
        between = self.judged(self.region.spread(1 + SPREAD * len(grid.bases) // GRID), COARSE_STARTS, done)
        both = joined(grid, between)
        both = both[both.order]
        if not steps.any():
            return both
        spaced = distinct(self.region, both.bases, POPULATIONS)
        starts = here = both[np.union1d(spaced, different_outcomes(both.met, POPULATIONS))]
        judged = partial(self.judged, starts=COARSE_STARTS, done=done)
        rng = np.random.default_rng(0)  # the same search gives the same placements
        for aim in AIMS:
            if here.unmet[0] == 0:
                break
            aimed = partial(judged, aim=aim)
            near = aimed(between.bases[:NEAR])
            near = near[near.order]
            near = near[distinct(self.region, near.bases, POPULATIONS)]
            met = self._evolved(joined(here, near), steps, *AIMING, aimed, rng)
            here = joined(here, replace(met, miss=np.zeros(len(met.bases))))
            here = here[here.order]
            here = here[distinct(self.region, here.bases, POPULATIONS)]
        both = joined(self._evolved(here, steps, *FINISHING, judged, rng), starts)
        return both[both.order]

    def _evolved(
        self,
        here: Judged,
        steps: Array,
        members: int,
        generations: int,
        judged: Callable[[Array], Judged],
        rng: np.random.Generator,
    ) -> Judged:
        """Return better placements near each of here, found by differential evolution.

        Storn and Price 1997, with a population around each placement, at first within steps (6,). It follows
        the ridges that the worst goal makes: a population takes their shape.
        """
        shape = len(here.bases), members
        shifts = steps * rng.uniform(-1.0, 1.0, (*shape, SIZE))
        shifts[:, 0] = 0.0
        first, own = members * np.arange(shape[0]), np.arange(members)
        present = judged(self._clipped(here.bases[:, None] + shifts))
        for _ in range(generations):
            draws = rng.random((*shape, members))
            draws[:, own, own] = 1.0  # three others
            picks = first[:, None, None] + draws.argsort(axis=2)[:, :, :3]
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


def excluded_share(search: PlacementSearch, grid: Array, steps: Array, unmet: int) -> float:
    """Return the share of the region where every placement leaves more than `unmet` goals unmet.

    The cell of each placement of grid (N, 6) is as large as its distances, steps (6,). Within a cell a goal
    moves in the frame of the base by no more than half the cell's diagonal and half its turns times the
    distance of the goal. Where it stays outside the spheres that bound the workspace, it cannot be met.
    """
    shells = radial_bounds(search.arm)
    shift, turn = float(np.linalg.norm(steps[:3])) / 2.0, float(steps[3:].sum()) / 2.0
    excluded, rows = 0, max(1, BOUNDED // search.count)
    for first in range(0, len(grid), rows):
        positions = search.goals(grid[first : first + rows])[:, :, :DIRECTION]
        moved = shift + turn * np.linalg.norm(positions, axis=2)
        outside = np.zeros(moved.shape, dtype=bool)
        for shell in shells:
            distances = np.linalg.norm(positions - shell[:3], axis=2)
            outside |= np.maximum(distances - shell[4], shell[3] - distances) > moved
        excluded += int((outside.sum(axis=1) > unmet).sum())
    return excluded / len(grid)


def different_outcomes(met: NDArray[np.uint8], count: int) -> NDArray[np.intp]:
    """Return the first rows of met (N, bytes) with different goals met.

    The best placement may meet other goals than all that look best on the grid.
    """
    first: dict[bytes, int] = {}
    for row, bits in enumerate(met):
        first.setdefault(bits.tobytes(), row)
        if len(first) == count:
            break
    return np.array(list(first.values()), dtype=np.intp)


def distinct(region: Region, bases: Array, count: int) -> NDArray[np.intp]:
    """Return the first rows of bases (N, 6) at different places, at different angles if there is one."""
    size = region.size * DISTINCT
    axes = slice(0, 3) if size[:3].any() else slice(3, SIZE)
    kept: list[int] = []
    for row in range(len(bases)):
        if not kept or (region.gaps(bases[kept], bases[row]) > size)[:, axes].any(axis=1).all():
            kept.append(row)
        if len(kept) == count:
            break
    return np.array(kept, dtype=np.intp)


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
                joints[row], clearances[row] = self._collision_free(self._clearance, goals[row], joints[row])
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

    def _collision_free(self, clearance_at: Callable[[Array], float], goal: Array, q: Array) -> tuple[Array, float]:
        """Return the solution farthest from the limits without self-collision, and its clearance [m].

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
