"""Every solution of a goal: by formula or elimination, or by restarts until a missing one is unlikely."""

from __future__ import annotations

import math
import time

import numpy as np

from ik_node import kernels
from ik_node.checks import Array
from ik_node.kernels.layout import DIRECTION
from ik_node.model.arm import Arm
from ik_node.solver.closed_form import ClosedForm
from ik_node.solver.elimination import MOST_SOLUTIONS, Elimination
from ik_node.solver.goal import Goal

MISSED_SHARE = 1e-3  # restarts continue until the estimated share of missed solutions is below this
DESCENTS_PER_CHECK = 256
DESCENTS_OF_CHECK = 32  # of an elimination that finds nothing or is rough
MOST_DESCENTS = 300_000  # even for the hardest goal


def is_redundant(arm: Arm, goal: Goal, held: int = 0) -> bool:
    """Whether the solutions of goal form continuous families (self-motion) while held joints stay."""
    return arm.n - held > (arm.position_dof if math.isnan(goal.packed[DIRECTION]) else arm.effective_dof)


def every_solution(
    arm: Arm,
    form: ClosedForm | None,
    elimination: Elimination | None,
    goal: Goal,
    options: Array,
    seed: Array,
    random_seed: int,
    hopeless: int,
    deadline: float,
) -> tuple[Array, Array, bool]:
    """Return the configurations (k, n) that meet goal within the limits, in the order of IkSolver.solve_all.

    With whole turns. Then their errors (k, 2) [m, rad] and whether they are shown to be all.
    hopeless: descents without any success after which the goal counts as having no solution.
    deadline: time.perf_counter() at which the search stops. Of a self-motion family the member
    nearest to seed (n,) is returned.
    """
    found = np.empty((MOST_SOLUTIONS, arm.n))
    count, regular = 0, True
    start = np.minimum(np.maximum(seed, arm.lower), arm.upper)
    start[np.abs(start) > kernels.FAR_TURNED] = 0.0
    if arm.has_cones:
        kernels.clip(start, arm.limits)
    # Joints that move neither tool point nor tool axis stay: all their positions give the same solution.
    limits = arm.limits.copy()
    limits[:2, arm.idle] = start[arm.idle]
    limits.flags.writeable = False
    model = arm.joints, arm.tool, limits, arm.period
    state = np.array([random_seed], dtype=np.uint64)
    if form is not None and not math.isnan(goal.packed[DIRECTION]):
        count, regular = kernels.formula_solutions(*model, form.constants, goal.packed, options, start, found)
        if form.exact and regular:
            return *_listed(arm, goal, start, seed, found, count), True
    if elimination is not None and elimination.forms(goal.packed):
        count, proof = elimination.solutions(goal.packed, start, found, limits)
        regular, before = proof is not None, count
        if proof is not None and (proof.rough or not count):  # some descents may find others
            count, _ = kernels.explore(
                *model, goal.packed, options, DESCENTS_OF_CHECK, state, start, False, found, count
            )
            regular = count == before
        if regular:
            return *_listed(arm, goal, start, seed, found, count), True
    # A goal that is singular for the formula or the elimination may leave a joint free.
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
    return *_listed(arm, goal, start, seed, found, count), False


def _listed(arm: Arm, goal: Goal, start: Array, seed: Array, found: Array, count: int) -> tuple[Array, Array]:
    """Return all solutions with their whole turns (k, n), best first, and their errors (k, 2)."""
    listed: tuple[Array, Array] = kernels.list_solutions(
        arm.joints, arm.tool, arm.limits, arm.turning_period, goal.packed, start, seed, found, count
    )
    return listed


def missed_share(distinct: int, successes: int) -> float:
    """Estimate the share of solutions not seen yet after so many successful descents.

    The posterior mean of the number of solutions after w distinct ones in N descents is
    w (N - 1) / (N - w - 2) (Boender and Rinnooy Kan, Mathematical Programming 37, 1987), so the
    share missed is (w + 1) / (N - 1).
    """
    return (distinct + 1) / (successes - 1) if distinct and successes > distinct + 2 else math.inf
