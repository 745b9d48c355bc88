# SPDX-License-Identifier: Apache-2.0
"""The loops around the steps of a local method: one descent, and restarts with annealing."""

from __future__ import annotations

from math import exp, inf, sqrt

import numpy as np

from ..arrays import (
    ACCEPTANCE,
    CHORD_TOLERANCE,
    COOLING,
    CYCLE,
    END_AT_LAST,
    ITERATIONS,
    POSITION_TOLERANCE,
    STALL,
    WEIGHT,
    copy,
    copy_column,
    squared,
)
from ..chain import (
    clip,
    distances_but_nearest,
    forward,
    goal_errors,
    keep_in_balls,
    met,
    next_random,
    perturb,
    squared_errors,
)
from ..language import F1, F2, I0, R1, R2, U1, compiled

AIM = 1e-6  # m and rad: descents continue to here, even for coarser tolerances
PATIENCE = 20  # iterations in which a descent must have gained something
BEST, MEMORY = 3, 2  # rows of work after 3 n: the best so far, and what a step keeps for the next one
WARM_UP = 0  # iterations before a descent has to gain anything; a method may fill in another


def step(iteration, joints, tool, limits, goal, options, q, frames, work):
    """Move q (n,) within the limits; False if nothing more can be done. Each method fills in its own.

    iteration: counted from 1. frames: at q on entry. work (3 n + 4, max(n, 6)): scratch, but for row
    3 n + BEST, which holds the best q so far; row 3 n + MEMORY is 0 at first.
    """
    raise NotImplementedError


def drive(joints: R2, tool: R1, limits: R2, goal: F1, options: F1, q: F1, frames: F2, work: F2):
    """A descent: repeat step from q (n,), in place; frames are left at the returned q, the best on the way.

    Ends within AIM and both tolerances, when PATIENCE iterations after the first WARM_UP
    gain too little, or after the iterations allowed. Returns their number.
    """
    n = q.shape[0]
    best = work[3 * n + BEST, :n]
    position_goal = squared(min(options[POSITION_TOLERANCE], AIM))
    direction_goal = squared(min(options[CHORD_TOLERANCE], AIM))
    weight = options[WEIGHT]
    clip(q, limits)
    for i in range(n):
        best[i] = q[i]
        work[3 * n + MEMORY, i] = 0.0
    least, mark = inf, inf
    iteration, can_go_on = 0, True
    while True:
        forward(joints, tool, q, frames)
        position, direction = squared_errors(joints, frames, goal)
        cost = position + weight * weight * direction
        if cost < least:
            least = cost
            for i in range(n):
                best[i] = q[i]
        met = position <= position_goal and direction <= direction_goal
        if iteration >= WARM_UP:
            can_go_on, mark = keeps_improving(least, iteration, options[STALL], mark)
        if met or not can_go_on or iteration >= options[ITERATIONS]:
            break
        iteration += 1
        if not step(iteration, joints, tool, limits, goal, options, q, frames, work):
            break
        if limits.shape[0] > 2:
            keep_in_balls(q, limits)
    if not cost <= least and options[END_AT_LAST] == 0.0:
        for i in range(n):
            q[i] = best[i]
        forward(joints, tool, q, frames)
    return iteration


@compiled
def keeps_improving(least, iteration, stall_ratio, mark):
    """Return (whether to go on, new mark): every PATIENCE iterations least must be below its mark.

    mark: the least cost must be below it at the next check; it is stall_ratio below the last cost.
    """
    if iteration % PATIENCE != 0:
        return True, mark
    return least <= mark, (1.0 - stall_ratio) * least


INFORMED = 8  # restarts from the table of known poses, before the random ones


@compiled
def next_start(restart, limits, options, table, distances, state, now, q):
    """Write q (n,), where descent number restart starts; return the temperature.

    0: at now (n,). The next INFORMED ones: at the configurations of table (see tabulate_poses) that come
    nearest to the goal: distances (K,), infinite for those used before. Every later one: at now plus a
    random offset that shrinks with a temperature and is re-heated.
    """
    if restart == 0:
        copy(now, q)
        return 1.0
    if restart <= INFORMED:
        nearest = distances.argmin()
        distances[nearest] = inf
        copy_column(table, nearest, q)
        return 1.0
    temperature = options[COOLING] ** ((restart - INFORMED - 1) % int(options[CYCLE]))
    perturb(now, limits, temperature, state, q)
    return temperature


@compiled
def accepted(cost, present, temperature, options, state):
    """Whether the search continues from a configuration of cost rather than from that of cost present.

    Metropolis et al. 1953: always if it is better, else with probability exp(-(rise of the weighted
    error) / (temperature * acceptance)). Acceptance 0: only if it is better.
    """
    if cost < present:
        return True
    if not options[ACCEPTANCE] > 0.0:
        return False
    rise = sqrt(cost) - sqrt(present)
    return next_random(state) < exp(-rise / (temperature * options[ACCEPTANCE]))


def descend(joints, tool, limits, goal, options, q, frames, work):
    """Move q (n,) to a local minimum within the limits; return the iterations. Each method fills in its own.

    frames: left at q. work (3 n + 4, max(n, 6)): scratch.
    """
    raise NotImplementedError


def anneal(
    joints: R2,
    tool: R1,
    limits: R2,
    goal: F1,
    options: F1,
    table: F2,
    first: I0,
    last: I0,
    state: U1,
    now: F1,
    q: F1,
):
    """Descents number first to last - 1 of a search; q (n,) in: start, out: best.

    Descents start where next_start says; what one ends at becomes now (n,), the place that the next
    offset is from, where accepted says so. state and now carry a search from one call to the next.
    Returns (number of the last descent, position error [m] and direction error [rad] at q, whether both
    tolerances are met).
    """
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    trial = np.empty(n)
    distances = np.empty(table.shape[1])
    best, present = inf, inf
    if first == 0:
        copy(q, now)
    else:
        best = cost_at(joints, tool, goal, options, q, frames)
        present = cost_at(joints, tool, goal, options, now, frames)
    for restart in range(first, last):
        if restart == max(first, 1) and restart <= INFORMED:
            distances_but_nearest(table, goal, options[WEIGHT], restart - 1, distances)
        temperature = next_start(restart, limits, options, table, distances, state, now, trial)
        descend(joints, tool, limits, goal, options, trial, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        solved = met(position, direction, options)
        cost = position + options[WEIGHT] * options[WEIGHT] * direction
        if cost < best or solved:
            best = cost
            copy(trial, q)
        if solved:
            position_error, direction_error = goal_errors(joints, frames, goal)
            return restart, position_error, direction_error, True
        if accepted(cost, present, temperature, options, state):
            present = cost
            copy(trial, now)
    forward(joints, tool, q, frames)
    position_error, direction_error = goal_errors(joints, frames, goal)
    return last - 1, position_error, direction_error, False


@compiled
def cost_at(joints, tool, goal, options, q, frames):
    """Return the squared weighted error [m^2] at q (n,), where frames are left."""
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    return position + options[WEIGHT] * options[WEIGHT] * direction
