# SPDX-License-Identifier: Apache-2.0
"""The best branch for a whole path of goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.solver.closed_form import NO_FORM, ClosedForm
from ik_node.solver.goal import Goal, PathSolution, Solutions
from ik_node.steady import steady

FIRST_STATIONS = 9  # points of a path at which arms without an exact formula look for branches
MOST_STATIONS = 64  # with those added where no branch has been found


class SolveAll(Protocol):
    """IkSolver.solve_all."""

    def __call__(self, goal: Goal, seed: Array, *, time_budget: float) -> Solutions: ...


def best_path(
    arm: Arm,
    form: ClosedForm | None,
    goals: Array,
    options: Array,
    seed: Array,
    solve_all: SolveAll,
    time_budget: float,
) -> PathSolution:
    """Return the path over goals (N, 9) whose largest joint move is least; see IkSolver.solve_path."""
    deadline = steady() + time_budget
    if len(goals) == 0:
        return PathSolution(np.empty((0, arm.n)), np.empty(0, dtype=np.bool_), 0.0, ())
    constants = NO_FORM if form is None else form.constants
    # Whole turns within limits are separate choices, those of continuous joints are equivalent.
    period = np.where(arm.continuous, arm.period, 0.0)
    if form is not None and form.exact and not np.isnan(goals[:, 3]).any():
        found, counts = _with_turns(arm, *_by_formula(arm, constants, goals, options, seed))
    else:

        def every(k: int) -> list[Array]:
            left = max(deadline - steady(), 1e-9)
            return [one.q for one in solve_all(Goal.unpacked(goals[k]), seed, time_budget=left)]

        found, counts = _by_following(arm, period, constants, goals, options, every)
    solved = counts > 0
    q = np.repeat(seed[None], len(goals), axis=0)
    if not solved.any():
        return PathSolution(q, solved, 0.0, ())
    rows, row_counts = found[solved], counts[solved]
    choice = np.empty(len(rows), dtype=np.int64)
    scratch = np.empty((2, found.shape[1])), np.empty(rows.shape[:2], dtype=np.int64)
    kernels.best_branch(period, rows, row_counts, seed, *scratch, choice)
    chosen = _unrolled(period, rows[np.arange(len(rows)), choice], seed)
    q[solved] = chosen
    moves = np.abs(np.diff(chosen, axis=0)).max(axis=1, initial=0.0)
    breaks = _breaks(arm, goals[solved], options, chosen)
    points = np.flatnonzero(solved)
    # Between points that are separated by unsolved goals no continuous motion is known.
    gaps = points[1:][np.diff(points) > 1]
    every_break = sorted({*points[breaks].tolist(), *gaps.tolist()})
    return PathSolution(q, solved, float(moves.max(initial=0.0)), tuple(every_break))


def _by_formula(
    arm: Arm, constants: Array, goals: Array, options: Array, seed: Array
) -> tuple[Array, NDArray[np.int64]]:
    found = np.zeros((len(goals), kernels.MOST_CANDIDATES, arm.n))
    counts = np.empty(len(goals), dtype=np.int64)
    kernels.formula_path(
        arm.joints, arm.tool, arm.limits, arm.period, constants, goals, options, seed, found, counts
    )
    return found, counts


def _with_turns(arm: Arm, found: Array, counts: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """Add to found (N, k, n) the whole-turn variants of joints with a turn's room within finite limits."""
    low, high = arm.lower - kernels.ROOT_SLACK, arm.upper + kernels.ROOT_SLACK
    there = np.arange(found.shape[1]) < counts[:, None]
    for i in np.flatnonzero((arm.period > 0.0) & ~arm.continuous & ~arm.idle):
        most = int((high[i] - low[i]) / arm.period[i])
        if most == 0:
            continue
        turns = arm.period[i] * np.arange(-most, most + 1)
        values = found[:, :, None, i] + turns
        there = (there[:, :, None] & (values >= low[i]) & (values <= high[i])).reshape(len(found), -1)
        found = np.repeat(found, len(turns), axis=1)
        found[:, :, i] = np.clip(values, arm.lower[i], arm.upper[i]).reshape(len(found), -1)
        found, there = _compact(found, there)
    return found, there.sum(axis=1)


def _compact(found: Array, there: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """Move the valid rows (there, (N, k)) of found (N, k, n) to the front and drop columns without any."""
    first = np.argsort(~there, axis=1, kind='stable')[:, : max(1, there.sum(axis=1).max(initial=0))]
    return np.take_along_axis(found, first[:, :, None], axis=1), np.take_along_axis(there, first, axis=1)


def _by_following(
    arm: Arm,
    period: Array,
    constants: Array,
    goals: Array,
    options: Array,
    every: Callable[[int], list[Array]],
) -> tuple[Array, NDArray[np.int64]]:
    """Find all configurations at some stations and follow each in both directions to the end of its branch.

    Stations are spread over the path, then added where no branch has been found. every: returns all
    configurations that meet the goal of a number.
    """
    last = len(goals) - 1
    tracks: list[Array] = []
    seen = np.zeros(len(goals), dtype=np.bool_)
    stations = np.unique(np.linspace(0, last, FIRST_STATIONS).round().astype(np.int64)).tolist()
    for _ in range(MOST_STATIONS):
        if not stations:
            unseen = np.flatnonzero(~seen)
            if len(unseen) == 0:
                break
            stations.append(int(unseen[len(unseen) // 2]))
        station = stations.pop(0)
        seen[station] = True
        for q in every(station):
            passing = [track[station] for track in tracks if not np.isnan(track[station, 0])]
            if any(kernels.largest_move(period, q, other) < kernels.DISTINCT for other in passing):
                continue
            track = np.full((len(goals), arm.n), np.nan)
            for order in (np.arange(station, last + 1), np.arange(station, -1, -1)):
                _follow(arm, constants, goals, options, order, q, track)
            tracks.append(track)
            seen |= ~np.isnan(track[:, 0])
    if not tracks:
        return np.empty((len(goals), 1, arm.n)), np.zeros(len(goals), dtype=np.int64)
    found = np.stack(tracks, axis=1)
    found, there = _compact(found, ~np.isnan(found[:, :, 0]))
    return found, there.sum(axis=1)


def _follow(
    arm: Arm,
    constants: Array,
    goals: Array,
    options: Array,
    order: Iterable[int],
    start: Array,
    track: Array,
) -> None:
    """Write track (N, n) along goals (N, 9) in the given order from start (n,), until the branch ends."""
    work = np.empty((3 * arm.n + 8, max(arm.n, 9)))
    before, now = start.copy(), start.copy()
    for k in order:
        q = now.copy()
        model = arm.joints, arm.tool, arm.limits
        if not kernels.advance(*model, constants, goals[k], options, q, before, work)[0]:
            return
        track[k] = q
        before, now = now, q


def _unrolled(period: Array, path: Array, seed: Array) -> Array:
    """Choose the whole turns of continuous joints on path (N, n): no jumps of a turn, start near seed."""
    out = path.copy()
    for i in np.flatnonzero(period):
        line = np.unwrap(path[:, i], period=period[i])
        out[:, i] = line + period[i] * round((seed[i] - line[0]) / period[i])
    return out


def _breaks(arm: Arm, goals: Array, options: Array, path: Array) -> NDArray[np.int64]:
    """Return the points k of path (N, n) that do not continue the branch of point k - 1.

    A step that continues the previous one is on the branch, also straight through a singularity.
    """
    work = np.empty((3 * arm.n + 8, max(arm.n, 9)))
    moves = np.diff(path, axis=0)
    sizes = np.abs(moves).max(axis=1)
    bends = np.abs(np.diff(moves, axis=0)).max(axis=1)
    goes_on = np.zeros(len(moves), dtype=np.bool_)
    goes_on[1:] = (bends <= kernels.BEND * sizes[:-1]) & (sizes[1:] <= kernels.LARGE_MOVE)
    breaks = [
        k + 1
        for k in np.flatnonzero(~goes_on)
        if not kernels.is_smooth(
            arm.joints, arm.tool, arm.limits, goals[k + 1], options, path[k], path[k + 1], work
        )
    ]
    return np.array(breaks, dtype=np.int64)
