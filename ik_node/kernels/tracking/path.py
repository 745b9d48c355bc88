# SPDX-License-Identifier: Apache-2.0
"""Branches along a whole path and the cheapest of them."""

from math import inf

import numpy as np

from ..arrays.copies import copy
from ..arrays.distance import add_distinct, largest_move
from ..chain.forward import met, squared_errors
from ..closed_form.candidates import formula_solutions
from ..methods.lm import descend_lm
from ..runtime.compiled import compiled

SAME_MOVE = 1e-6  # rad or m: largest moves that differ by less are equal, answers are no more exact
START_WEIGHT = 1e-2  # of the move from the seed to the start of a path, beside the sum of its moves
NEAR_BY = 0.05  # rad or m: solutions of neighbouring goals that differ by less are one branch


@compiled
def formula_path(joints, tool, limits, period, form, goals, options, seed, found, counts):
    """formula_solutions of every goal (N, 9) into found (N, 16, n) and counts (N,).

    If none is near a solution of the goal before, a descent from that one finds what the formula leaves
    open: the value of an angle that is free at exactly this goal.
    """
    n = limits.shape[1]
    q, work = np.empty(n), np.empty((3 * n + 4, max(n, 6)))
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    for k in range(goals.shape[0]):
        counts[k], _ = formula_solutions(
            joints, tool, limits, period, form, goals[k], options, seed, found[k]
        )
        for j in range(counts[k - 1] if k > 0 else 0):
            nearest = inf
            for i in range(counts[k]):
                nearest = min(nearest, largest_move(period, found[k - 1, j], found[k, i]))
            if nearest <= NEAR_BY:
                continue
            copy(found[k - 1, j], q)
            descend_lm(joints, tool, limits, goals[k], options, 1e-8, q, frames, work)
            position, direction = squared_errors(joints, frames, goals[k])
            if met(position, direction, options):
                counts[k] = add_distinct(period, found[k], counts[k], q)


@compiled
def best_branch(period, found, counts, seed, costs, came_from, choice):
    """Choose one row of found (N, k, n) per point so that the largest joint move is least.

    Dynamic programming twice: first for the least largest move, then for the least sum of moves
    among the paths that keep to it but for rounding, where a start nearer to seed (n,) outweighs
    START_WEIGHT times as much. counts (N,): rows in use, at least 1. costs (2, k) is scratch, came_from
    (N, k) too. Writes choice (N,) and returns the largest move.
    """
    points, rows = found.shape[0], found.shape[1]
    bound = inf
    for stage in range(2):
        for j in range(counts[0]):
            costs[0, j] = 0.0 if stage == 0 else START_WEIGHT * largest_move(period, seed, found[0, j])
        for k in range(1, points):
            for j in range(counts[k]):
                costs[1, j], came_from[k, j] = inf, 0
                for i in range(counts[k - 1]):
                    move = largest_move(period, found[k - 1, i], found[k, j])
                    if stage == 0:
                        cost = max(costs[0, i], move)
                    else:
                        cost = costs[0, i] + move if move <= bound else inf
                    if cost < costs[1, j]:
                        costs[1, j], came_from[k, j] = cost, i
            for j in range(rows):
                costs[0, j] = costs[1, j]
        last = points - 1
        best = 0
        for j in range(counts[last]):
            if costs[0, j] < costs[0, best]:
                best = j
        if stage == 0:
            bound = costs[0, best] + SAME_MOVE
    for k in range(points - 1, -1, -1):
        choice[k] = best
        best = came_from[k, best] if k > 0 else best
    return bound
