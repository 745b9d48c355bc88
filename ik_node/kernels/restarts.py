"""Random restarts of a local method, for one goal and for many."""

from math import inf, isnan

import numpy as np

from .arrays import copy, copy_column
from .chain import clip, forward, goal_errors, met, squared_errors
from .closed_form.candidates import nearest_solution
from .compiled import compiled
from .known_poses import squared_distances
from .layout import COOLING, CYCLE, FAMILY, KIND, POSITION_TOLERANCE, WEIGHT
from .methods.select import descend
from .random import perturb
from .reachability import out_of_reach

INFORMED = 8  # restarts from the table of known poses, before the random ones


@compiled
def next_start(restart, limits, goal, options, table, distances, state, best, q):
    """Write q (n,), where descent number restart starts.

    0: at best (n,). The next INFORMED ones: at the configurations of table (see tabulate) that come
    nearest to goal. Every later one: at best plus a random offset that shrinks with a temperature and
    is re-heated. distances (K,) is kept from one call to the next.
    """
    if restart == 0:
        copy(best, q)
    elif restart <= INFORMED:
        if restart == 1:
            squared_distances(table, goal, options[WEIGHT], distances)
        nearest = distances.argmin()
        distances[nearest] = inf
        copy_column(table, nearest, q)
    else:
        temperature = options[COOLING] ** ((restart - INFORMED - 1) % int(options[CYCLE]))
        perturb(best, limits, temperature, state, q)


@compiled
def anneal(joints, tool, limits, goal, options, table, first, last, state, q):
    """Descents number first to last - 1 of the random-restart annealing; q (n,) in: start, out: best.

    Descents start where next_start says. Returns (number of the last descent, position error [m] and
    direction error [rad] at q, whether both tolerances are met).
    """
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    trial = np.empty(n)
    distances = np.empty(table.shape[1])
    best = inf
    if first > 0:
        forward(joints, tool, q, frames)
        position, direction = squared_errors(joints, frames, goal)
        best = position + options[WEIGHT] * options[WEIGHT] * direction
    for restart in range(first, last):
        next_start(restart, limits, goal, options, table, distances, state, q, trial)
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
    forward(joints, tool, q, frames)
    position_error, direction_error = goal_errors(joints, frames, goal)
    return last - 1, position_error, direction_error, False


@compiled
def solve_many(
    joints, tool, limits, form, trusted, goals, shells, options, table, descents, random_seed, seeds, q,
    errors, solved,
):  # fmt: skip
    """Solve goals (N, 9) one after the other, each by formula if form has one, then by a few descents.

    trusted: no descents where the formula finds nothing. shells: as in out_of_reach, goals out of
    reach are left alone. seeds (N, n), or (1, n) for all. Writes solved (N,) bool and, where that is so,
    q (N, n) and errors (N, 2) [m, rad].
    """
    state = np.empty(1, np.uint64)
    for k in range(goals.shape[0]):
        seed = seeds[min(k, seeds.shape[0] - 1)]
        solved[k] = False
        if out_of_reach(shells, goals[k], options[POSITION_TOLERANCE]) != 0:
            continue
        regular = False
        if form[KIND, FAMILY] != 0.0 and not isnan(goals[k, 3]):
            solved[k], errors[k, 0], errors[k, 1], regular = nearest_solution(
                joints, tool, limits, form, goals[k], options, seed, q[k]
            )
        if not solved[k] and not (trusted and regular):
            state[0] = random_seed
            copy(seed, q[k])
            _, errors[k, 0], errors[k, 1], solved[k] = anneal(
                joints, tool, limits, goals[k], options, table, 0, descents, state, q[k]
            )


@compiled
def approach(joints, tool, limits, goal, options, weights, starts, most, state, q):
    """Best effort from q (n,), in place: least position error first, then least direction error.

    From q and from starts - 1 random configurations, one descent after another with the falling
    weights [m/rad]: the penalty form of the lexicographic problem. While the position is not met,
    up to most starts. options is used as scratch for the weight. Returns (position error [m],
    direction error [rad]).
    """
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    clip(q, limits)
    trial = q.copy()
    best_position, best_direction, least = inf, inf, inf
    enough = starts
    for start in range(most):
        if start >= enough and least <= options[POSITION_TOLERANCE]:
            break
        if start == starts:
            enough = 3 * starts
        if start > 0:
            perturb(q, limits, 1.0, state, trial)
        for k in range(weights.shape[0]):
            # Late starts go for the position alone, then turn the axis as far as that allows.
            options[WEIGHT] = weights[k] if start < starts else (k == weights.shape[0] - 1) * weights[k]
            descend(joints, tool, limits, goal, options, trial, frames, work)
        position, direction = goal_errors(joints, frames, goal)
        nearer = position < least - options[POSITION_TOLERANCE]
        if nearer or (position < least + options[POSITION_TOLERANCE] and direction < best_direction):
            best_position, best_direction = position, direction
            copy(trial, q)
        least = min(least, position)
    return best_position, best_direction
