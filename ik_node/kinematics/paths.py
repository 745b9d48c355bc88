"""The best branch for a whole path of goals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ik_node.kinematics import kernels
from ik_node.kinematics.arm import Arm
from ik_node.kinematics.closed_form import NO_FORM, ClosedForm
from ik_node.kinematics.goal import PathSolution, Vector

FIRST_STATIONS = 9  # points of a path at which arms without an exact formula look for branches
MOST_STATIONS = 64  # with those added where no branch came by

Enumerate = Callable[[int, Vector], Vector]  # (number of the goal, seed) -> all configurations (k, n)


def best_path(
    arm: Arm, form: ClosedForm | None, goals: Vector, settings: Vector, seed: Vector, every: Enumerate
) -> PathSolution:
    """Return the path over goals (N, 9) whose largest joint move is least; see IkSolver.solve_path."""
    constants = NO_FORM if form is None else form.constants
    if form is not None and form.exact and not np.isnan(goals[:, 3]).any():
        found, counts = _by_formula(arm, constants, goals, settings, seed)
    else:
        found, counts = _by_following(arm, constants, goals, settings, seed, every)
    solved = counts > 0
    q = np.repeat(seed[None], len(goals), axis=0)
    if not solved.any():
        return PathSolution(q, solved, 0.0, ())
    rows, row_counts = found[solved], counts[solved]
    choice = np.empty(len(rows), dtype=np.int64)
    scratch = np.empty((2, found.shape[1])), np.empty(found.shape[:2], dtype=np.int64)
    kernels.best_branch(arm.period, rows, row_counts, *scratch, choice)
    chosen = _unrolled(arm, rows[np.arange(len(rows)), choice], seed)
    q[solved] = chosen
    moves = np.abs(np.diff(chosen, axis=0)).max(axis=1, initial=0.0)
    breaks = _breaks(arm, goals[solved], settings, chosen)
    points = np.flatnonzero(solved)
    # Where goals in between are out of reach nothing is known of the way across.
    gaps = points[1:][np.diff(points) > 1]
    every_break = sorted({*points[breaks].tolist(), *gaps.tolist()})
    return PathSolution(q, solved, float(moves.max(initial=0.0)), tuple(every_break))


def _by_formula(
    arm: Arm, constants: Vector, goals: Vector, settings: Vector, seed: Vector
) -> tuple[Vector, NDArray[np.int64]]:
    found = np.empty((len(goals), kernels.MOST_CANDIDATES, arm.n))
    counts = np.empty(len(goals), dtype=np.int64)
    kernels.formula_path(
        arm.joints, arm.tool, arm.limits, arm.period, constants, goals, settings, seed, found, counts
    )
    return found, counts


def _by_following(
    arm: Arm, constants: Vector, goals: Vector, settings: Vector, seed: Vector, every: Enumerate
) -> tuple[Vector, NDArray[np.int64]]:
    """Find all configurations at some stations and follow each both ways until its branch ends.

    Stations are spread over the path, then put where no branch has been seen yet.
    """
    last = len(goals) - 1
    tracks: list[Vector] = []
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
        for q in every(station, seed):
            if any(
                kernels.largest_move(arm.period, q, track[station]) < kernels.DISTINCT for track in tracks
            ):
                continue
            track = np.full((len(goals), arm.n), np.nan)
            for order in (np.arange(station, last + 1), np.arange(station, -1, -1)):
                kernels.advance_path(
                    arm.joints, arm.tool, arm.limits, constants, goals, settings, order, q.copy(), track
                )
            tracks.append(track)
            seen |= ~np.isnan(track[:, 0])
    if not tracks:
        return np.empty((len(goals), 1, arm.n)), np.zeros(len(goals), dtype=np.int64)
    found = np.stack(tracks, axis=1)
    there = ~np.isnan(found[:, :, 0])
    first = np.argsort(~there, axis=1, kind='stable')
    return np.take_along_axis(found, first[:, :, None], axis=1), there.sum(axis=1)


def _unrolled(arm: Arm, path: Vector, seed: Vector) -> Vector:
    """Choose the whole turns of path (N, n): no jumps of a turn, inside the limits, start near seed.

    Where the limits leave no room for the whole way, a joint turns back by whole turns on it.
    """
    out = path.copy()
    for i in np.flatnonzero(arm.period > 0):
        period, low, high = arm.period[i], arm.lower[i], arm.upper[i]
        line = np.unwrap(path[:, i], period=period)
        if not math.isfinite(high - low):
            out[:, i] = line + period * round((seed[i] - line[0]) / period)
            continue
        begin = 0
        while begin < len(line):
            run = line[begin:]
            # Turns that suit each prefix: the longest run that some number of turns keeps inside.
            least = np.ceil((low - kernels.ROOT_SLACK - np.minimum.accumulate(run)) / period)
            most = np.floor((high + kernels.ROOT_SLACK - np.maximum.accumulate(run)) / period)
            fits = least <= most
            length = len(run) if fits.all() else int(np.argmin(fits))
            near = seed[i] if begin == 0 else out[begin - 1, i]
            turns = min(max(round((near - run[0]) / period), least[length - 1]), most[length - 1])
            out[begin : begin + length, i] = np.clip(run[:length] + period * turns, low, high)
            begin += length
    return out


def _breaks(arm: Arm, goals: Vector, settings: Vector, path: Vector) -> NDArray[np.int64]:
    """Return the points k of path (N, n) that do not continue the branch of point k - 1."""
    work = np.empty((3 * arm.n + 8, max(arm.n, 9)))
    model = arm.joints, arm.tool, arm.limits
    smooth = [
        kernels.is_smooth(*model, goals[k], settings, path[k - 1], path[k], work) for k in range(1, len(path))
    ]
    return 1 + np.flatnonzero(~np.array(smooth, dtype=np.bool_))
