"""Every solution of a goal: by formula, or by restarts until a missing one is unlikely."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.model.arm import Arm, frozen
from ik_node.solver.closed_form import ClosedForm
from ik_node.solver.goal import Goal

MISSED_SHARE = 1e-3  # restarts continue until the estimated share of missed solutions is below this
DESCENTS_PER_CHECK = 256
MOST_DESCENTS = 300_000  # even for the hardest goal
MOST_SOLUTIONS = 64  # distinct ones, whole turns not counted


def is_redundant(arm: Arm, goal: Goal, held: int = 0) -> bool:
    """Whether the solutions of goal form continuous families (self-motion) while held joints stay."""
    return arm.n - held > (arm.position_dof if math.isnan(goal.packed[3]) else arm.effective_dof)


def every_configuration(
    arm: Arm,
    form: ClosedForm | None,
    goal: Goal,
    options: Array,
    seed: Array,
    random_seed: int,
    hopeless: int,
    deadline: float,
) -> tuple[Array, bool]:
    """Return the configurations (k, n) that meet goal within the limits, and whether that is shown to be all.

    Whole turns are included.

    hopeless: descents without any success after which the goal counts as having no solution.
    deadline: time.perf_counter() at which the search stops. Of a self-motion family the member
    nearest to seed (n,) is returned.
    """
    found = np.empty((MOST_SOLUTIONS, arm.n))
    count, regular = 0, True
    start = np.clip(seed, arm.lower, arm.upper)
    start[np.abs(start) > kernels.FAR_TURNED] = 0.0
    if arm.has_cones:
        kernels.clip(start, arm.limits)
    # Joints that move neither tool point nor tool axis stay: all their positions give the same solution.
    bounds = np.where(arm.idle, start, [arm.lower, arm.upper])
    limits = frozen(np.vstack([bounds, arm.limits[2:]]))
    model = arm.joints, arm.tool, limits, arm.period
    if form is not None and goal.direction is not None:
        count, regular = kernels.formula_solutions(*model, form.constants, goal.packed, options, start, found)
        if form.exact and regular:
            return _with_turns(arm, found[:count], start), True
    state = np.array([random_seed], dtype=np.uint64)
    # A goal that is singular for the formula leaves a joint free.
    redundant = is_redundant(arm, goal, int(arm.idle.sum())) or not regular
    descents = successes = 0
    while descents < MOST_DESCENTS and time.perf_counter() < deadline:
        count, hits = kernels.explore(
            *model, goal.packed, options, DESCENTS_PER_CHECK, state, start, redundant, found, count
        )
        descents += DESCENTS_PER_CHECK
        successes += hits
        if missed_share(count, successes) < MISSED_SHARE or (count == 0 and descents >= hopeless):
            break
    return _with_turns(arm, found[:count], start), False


def missed_share(distinct: int, successes: int) -> float:
    """Estimate the share of solutions not seen yet after so many successful descents.

    The posterior mean of the number of solutions after w distinct ones in N descents is
    w (N - 1) / (N - w - 2) (Boender and Rinnooy Kan, Mathematical Programming 37, 1987), so the
    share missed is (w + 1) / (N - 1).
    """
    return (distinct + 1) / (successes - 1) if distinct and successes > distinct + 2 else math.inf


def _with_turns(arm: Arm, found: Array, seed: Array) -> Array:
    """Add to found (k, n) every whole-turn variant within finite limits; infinite ones take the nearest.

    A joint that moves neither tool point nor tool axis stays: its turns belong to one family.
    """
    rows: list[tuple[float, ...]] = []
    for q in found:
        choices = []
        for value, near, low, high, period, idle in zip(
            q, seed, arm.lower, arm.upper, arm.period, arm.idle, strict=True
        ):
            if period == 0.0 or idle:
                choices.append([value])
            elif not math.isfinite(high - low):
                choices.append([value + period * round((near - value) / period)])
            else:
                first = math.ceil((low - kernels.ROOT_SLACK - value) / period)
                last = math.floor((high + kernels.ROOT_SLACK - value) / period)
                turned = [value + period * turns for turns in range(first, last + 1)]
                choices.append([min(max(angle, low), high) for angle in turned])
        rows.extend(itertools.product(*choices))
    every = np.array(rows).reshape(-1, arm.n)
    return every[[arm.ball_excess(q) <= 0.0 for q in every]] if arm.has_cones else every
