# SPDX-License-Identifier: Apache-2.0
"""Random restarts of a local method under a falling temperature."""

from math import exp, inf, sqrt

import numpy as np

from ..arrays.copies import copy, copy_column
from ..arrays.layout import ACCEPTANCE, COOLING, CYCLE, WEIGHT
from ..chain.forward import forward, goal_errors, met, squared_errors
from ..chain.known_poses import distances_but_nearest
from ..chain.random import next_random, perturb
from ..runtime.compiled import compiled

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


def anneal(joints, tool, limits, goal, options, table, first, last, state, now, q):
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
