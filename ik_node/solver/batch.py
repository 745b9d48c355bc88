# SPDX-License-Identifier: Apache-2.0
"""Many goals at once, on all cores."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ik_node.checks import Array, real_array, whole
from ik_node.errors import InputError, safe_repr
from ik_node.solver.closed_form import NO_FORM
from ik_node.solver.goal import BatchSolution, Goal, Reason, Solution, Status

from .pipeline import Pipeline

T = TypeVar('T')
QUOTA = Path('/sys/fs/cgroup/cpu.max')  # of a container: microseconds of processor time per period, or max


def usable_cores() -> int:
    """Return how many cores this process may use: by its affinity and by the quota of its control group."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux has it
        allowed = os.cpu_count() or 1
    try:
        quota, period = map(int, QUOTA.read_text().split())
    except (OSError, ValueError):
        return allowed
    return min(allowed, max(1, math.ceil(quota / period)))


def in_parts(work: Callable[[slice], T], count: int, size: int, cores: int | None = None) -> Iterator[T]:
    """Yield work(rows) for the slices of size rows of count, in order, from threads on all cores.

    cores: how many instead. If the caller stops early, only the parts in progress are waited for.
    """
    pool = ThreadPoolExecutor(usable_cores() if cores is None else cores)
    try:
        yield from pool.map(work, (slice(k, min(k + size, count)) for k in range(0, count, size)))
    finally:
        pool.shutdown(cancel_futures=True)


BATCH_PART = 1024  # goals that one thread processes at a time


def solve_goals(
    pipeline: Pipeline,
    solve: Callable[[Goal, Array], Solution],
    goals: Array,
    starts: Array,
    workers: int | None,
) -> BatchSolution:
    """Solve goals (N, 9) from starts (N, n) or (1, n); see IkSolver.solve_batch.

    solve: (goal, seed) -> Solution, called for goals that a few descents do not solve.
    workers: threads, None: one per core. Raises InputError.
    """
    if workers is not None:
        workers = whole('workers', workers, 1)
    form, search = NO_FORM if pipeline.form is None else pipeline.form.constants, pipeline.search
    max_restarts = pipeline.restarts_before_algebra(goals[0]) if len(goals) else None
    q, errors = np.empty((len(goals), search.arm.n)), np.empty((len(goals), 2))
    solved, status = np.empty(len(goals), dtype=np.bool_), np.full(len(goals), Status.SOLVED)
    reasons: dict[int, Reason] = {}
    stopped = False

    def solve_part(part: slice) -> None:
        seeds = starts if len(starts) == 1 else starts[part]
        out = q[part], errors[part], solved[part]
        search.search_many(form, pipeline.trusted, goals[part], pipeline.shells, max_restarts, seeds, *out)
        for k in part.start + (~solved[part]).nonzero()[0]:
            if stopped:
                return
            one = solve(Goal.unpacked(goals[k]), starts[min(k, len(starts) - 1)])
            status[k], solved[k], q[k] = one.status, one.solved, one.q
            errors[k] = one.position_error, one.direction_error
            if one.reason is not None:
                reasons[int(k)] = one.reason

    parts = [slice(k, k + BATCH_PART) for k in range(0, len(goals), BATCH_PART)]
    threads = len(parts)
    if threads > 1:  # counting the cores takes as long as two solves
        threads = min(usable_cores() if workers is None else workers, threads)
    if threads <= 1:  # a pool costs as much as a hundred solves
        for part in parts:
            solve_part(part)
    else:
        with ThreadPoolExecutor(threads) as pool:
            try:
                list(pool.map(solve_part, parts))
            except BaseException:  # Ctrl-C: each thread ends after its current goal
                stopped = True
                raise
    return BatchSolution(status, solved, q, errors[:, 0], errors[:, 1], reasons)


def seed_rows(seeds: ArrayLike, count: int, n: int) -> Array:
    """Return seeds of a batch as an array (1, n), for all goals, or (count, n). Raises InputError."""
    try:
        starts = np.atleast_2d(np.ascontiguousarray(real_array(seeds)))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f'seeds must be numbers of shape ({n},) or ({count}, {n}), got {safe_repr(seeds)}') from None
    with np.errstate(over='ignore'):  # as joint_array: a sum that overflows is not finite
        finite = np.isfinite(starts.sum(axis=-1)).all()
    if starts.shape not in ((1, n), (count, n)) or not finite:
        raise InputError(f'seeds must be finite, of shape ({n},) or ({count}, {n}), got {starts.shape}')
    return starts
