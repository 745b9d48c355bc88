# SPDX-License-Identifier: Apache-2.0
"""Volumes: which share of directions an arm reaches at each position, refined, and as NetCDF files."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.extras import load
from ik_node.kernels.arrays import DIRECTION, LATERAL
from ik_node.model.arm import Arm, least_singular_values
from ik_node.solver.batch import in_parts
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
        finite = arm.n - int(arm.idle.sum()) <= arm.effective_dof
        if count and not finite:
            raise InputError(f'{arm.name} has a joint to spare: its solutions form self-motions and cannot be counted')
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
        is_free = _once(self._clearance)
        listed = dict(self._listed(place, exact, distances, is_free))
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
        best = _farthest(rows, np.where(serves, to_limits[:, None], -np.inf), is_free)
        possible = best >= 0
        if not possible.any() and not any(map(is_free, found[:, :n])):
            return None
        singular = np.full(count, np.nan)
        jacobians = np.array([arm.jacobian(q) for q in rows[best[possible]]]).reshape(-1, 6, n)
        singular[possible] = least_singular_values(jacobians, arm.reach, arm.effective_dof)
        return Reached(np.where(possible, to_limits[best], -np.inf), singular, solutions if self.counts else None)

    def _listed(
        self, place: Array, exact: Array, distances: Array, is_free: Callable[[Array], bool]
    ) -> Iterator[tuple[int, Array]]:
        """Yield directions and all their solutions (m, n) without self-collision.

        Those of which exact (K, n), farthest from the limits by distances (K,), collides; to count: each.
        """
        if self._solver is None:
            return
        for k in np.flatnonzero(distances > -np.inf).tolist():
            if self.counts or not is_free(exact[k]):
                goal = Goal(place, self.directions[k])
                found = [one.q for one in self._solver.solve_all(goal, time_budget=math.inf)]
                yield k, np.array([q for q in found if is_free(q)]).reshape(-1, self._arm.n)


def _once(clearance: Callable[[Array], float] | None) -> Callable[[Array], bool]:
    """Return what tells whether there is no self-collision at q (n,), which is found once for each q."""
    known: dict[bytes, bool] = {}

    def is_free(q: Array) -> bool:
        if clearance is None:
            return True
        key = q.tobytes()
        if key not in known:
            known[key] = clearance(q) >= 0.0
        return known[key]

    return is_free


def _farthest(rows: Array, scores: Array, is_free: Callable[[Array], bool]) -> NDArray[np.int64]:
    """Return for each direction (K,) the row (c) of the largest score without self-collision, or -1."""
    while True:
        best = np.where(scores.max(axis=0) > -np.inf, scores.argmax(axis=0), -1)
        colliding = [row for row in set(best.tolist()) - {-1} if not is_free(rows[row])]
        if not colliding:
            return best
        scores[colliding] = -np.inf


Rows = NDArray[np.int64]

COARSEST = 4  # positions from one to the next along each axis at first


def coarse_rows(shape: tuple[int, ...], stride: int) -> Rows:
    """Return the rows of a lattice at every stride-th index of each axis, and at the last."""
    axes = [np.union1d(np.arange(0, size, stride), size - 1) for size in shape]
    rows: Rows = np.ravel_multi_index(np.meshgrid(*axes, indexing='ij'), shape).reshape(-1)
    return rows


def refined(values: Array, shape: tuple[int, ...], stride: int, allowed: Array) -> tuple[Rows, Array, Rows]:
    """Return the rows (m,) that halving the stride adds, their values (v, m) and those that need a survey.

    values (v, N): of the lattice, at the coarser positions so far. Each new position lies between up to eight
    of them. Where these are all out of reach (all NaN), it is taken to be, too. Where each of the values
    changes among them by no more than allowed (v,), it is interpolated linearly; elsewhere it needs a survey.
    """
    rows = np.setdiff1d(coarse_rows(shape, stride // 2), coarse_rows(shape, stride))
    below, above, weights = [], [], []
    for index, size in zip(np.unravel_index(rows, shape), shape, strict=True):
        low = np.where(index == size - 1, index, index - index % stride)
        high = np.where(index == low, low, np.minimum(low + stride, size - 1))
        below.append(low)
        above.append(high)
        weights.append((index - low) / np.maximum(high - low, 1))
    lowest = np.full((len(values), len(rows)), np.inf)
    highest = -lowest
    found = np.zeros_like(lowest)
    missing = np.zeros(lowest.shape, np.int64)
    for corner in itertools.product((False, True), repeat=len(shape)):
        ends = [high if up else low for up, low, high in zip(corner, below, above, strict=True)]
        parts = [weight if up else 1.0 - weight for up, weight in zip(corner, weights, strict=True)]
        there = values[:, np.ravel_multi_index(ends, shape)]
        missing += np.isnan(there)
        lowest, highest = np.fmin(lowest, there), np.fmax(highest, there)
        share = np.prod(parts, axis=0)
        counts = share > 0.0  # the others may be infinite
        found[:, counts] += share[counts] * there[:, counts]
    some = (missing > 0) & (missing < 2 ** len(shape))
    with np.errstate(invalid='ignore'):
        changes = some | (highest - lowest > allowed[:, None])
    return rows, found, rows[changes.any(axis=0)]


PART = 16  # positions that one thread processes at a time


@dataclass(frozen=True)
class Volume:
    """Values at the positions x (a,), y (b,), z (c,) [m] of a lattice in the base frame, NaN out of reach.

    Each (a, b, c). share: of all directions, those that the tool axis can take there. Means over these, of
    the configuration farthest from the joint limits: to_limits [rad or m], its distance to them; singular,
    the least singular value of the Jacobian, see least_singular_values. solutions: mean number of solutions
    over the directions that are met exactly; None: they were not counted. surveyed: False where the values
    are interpolated.
    """

    x: Array
    y: Array
    z: Array
    share: Array
    to_limits: Array
    singular: Array
    solutions: Array | None
    surveyed: NDArray[np.bool_]


def surveyed(
    survey: Survey,
    x: Array,
    y: Array,
    z: Array,
    tolerance: float = 0.0,
    done: Callable[[int], object] = lambda _: None,
) -> Volume:
    """Survey the positions of a lattice on all cores; the values do not depend on their number.

    tolerance: positions between which each value changes by no more than this share of its range over the
    coarsest lattice are interpolated; 0: every position is surveyed. done: called with the number of
    positions that were completed since the last call.
    """
    shape = len(x), len(y), len(z)
    values = np.full((4, math.prod(shape)), np.nan)
    known = np.zeros(math.prod(shape), np.bool_)

    def fill(rows: Rows) -> None:
        def part(some: slice) -> int:
            for row in rows[some].tolist():
                i, j, k = np.unravel_index(row, shape)
                reached = survey.at(np.array([x[i], y[j], z[k]]), row)
                if reached is not None:
                    values[:, row] = _means(reached)
            return some.stop - some.start

        for number in in_parts(part, len(rows), PART):
            done(number)
        known[rows] = True

    stride = COARSEST if tolerance > 0.0 else 1
    fill(coarse_rows(shape, stride))
    with np.errstate(invalid='ignore'):  # joints without limits are infinitely far from them
        allowed = tolerance * (np.fmax.reduce(values, axis=1) - np.fmin.reduce(values, axis=1))
    while stride > 1:
        rows, between, uncertain = refined(values, shape, stride, allowed)
        values[:, rows] = between
        values[:, uncertain] = np.nan
        done(len(rows) - len(uncertain))
        fill(uncertain)
        stride //= 2
    share, to_limits, singular, solutions = values.reshape(4, *shape)
    return Volume(x, y, z, share, to_limits, singular, solutions if survey.counts else None, known.reshape(shape))


def _means(reached: Reached) -> tuple[float, float, float, float]:
    """Return share, to_limits, singular and solutions of a position."""
    possible = reached.to_limits > -np.inf
    if not possible.any():
        return 0.0, np.nan, np.nan, np.nan
    counted = np.empty(0) if reached.solutions is None else reached.solutions
    counted = counted[counted > 0]
    return (
        float(possible.mean()),
        float(reached.to_limits[possible].mean()),
        float(reached.singular[possible].mean()),
        float(counted.mean()) if len(counted) else np.nan,
    )


AXES = 'z', 'y', 'x'


def as_netcdf(volume: Volume, arm: Arm, directions: int, within: float, self_collision: bool = False) -> bytes:
    """Return the volume of an arm as a NetCDF 3 file with the axes z, y, x, as the CF conventions recommend.

    directions: how many were tried at each position. within [rad]: of the tool axis, for a direction to
    count. self_collision: whether it was checked. Raises MissingError without scipy.
    """
    netcdf = load('scipy.io', 'ik_reach --volume')
    content = BytesIO()
    with netcdf.netcdf_file(content, 'w', version=2) as out:
        for name, value in _attributes(arm, directions, within, self_collision).items():
            setattr(out, name, value.encode() if isinstance(value, str) else value)  # else only ASCII
        for name, positions in (('x', volume.x), ('y', volume.y), ('z', volume.z)):
            out.createDimension(name, len(positions))
            _add(out, name, 'f8', (name,), positions, 'm', f'{name} in the base frame')
        for name, (values, unit, long_name) in _values(volume).items():
            _add(out, name, 'f4', AXES, values.T, unit, long_name)
        _add(out, 'surveyed', 'i1', AXES, volume.surveyed.T, '1', '0 where the values are interpolated')
        out.flush()
        return content.getvalue()  # closed at the end of this block


def _values(volume: Volume) -> dict[str, tuple[Array, str, str]]:
    """Return values, units and long names of the variables."""
    found = {
        'share': (volume.share, '1', 'share of all directions that the tool axis can take'),
        'to_limits': (
            volume.to_limits,
            'rad',
            'distance to the joint limits (m for prismatic joints), mean over these directions',
        ),
        'least_singular_value': (
            volume.singular,
            '1',
            'least singular value of the Jacobian, lengths in reaches, mean over these directions',
        ),
    }
    if volume.solutions is not None:
        long_name = 'number of solutions, mean over the directions that are met exactly'
        found['solutions'] = volume.solutions, '1', long_name
    return found


def _add(out: Any, name: str, kind: str, axes: tuple[str, ...], values: Any, unit: str, long_name: str) -> None:
    variable = out.createVariable(name, kind, axes)
    variable[:] = values
    variable.units, variable.long_name = unit, long_name


def _attributes(arm: Arm, directions: int, within: float, self_collision: bool) -> dict[str, Any]:
    return {
        'Conventions': 'CF-1.8',
        'title': f'Reach of {arm.name}',
        'source': f'ik_node {version("ik_node")}',
        'arm': arm.name,
        'base_link': arm.base_link,
        'tip_link': arm.tip_link,
        'tool_axis': np.array(arm.tool_axis),
        'tool_point': np.array(arm.tool_point),
        'joint_names': ' '.join(arm.joint_names),
        'directions': np.int32(directions),
        'within': np.float64(within),  # of a float scipy keeps half
        'self_collision': 'checked' if self_collision else 'not checked',
    }
