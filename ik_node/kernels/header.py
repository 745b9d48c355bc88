# SPDX-License-Identifier: Apache-2.0
"""What the header of an arm in C calls, see tools/export: the nearest solution or all of them.

All take the arm as constants: joints, tool, limits, period and options as in arrays.py; opened (2, n), limits
that stop nothing, NaN for joints that move neither tool point nor tool axis; form, of the formula or the
elimination.
"""

from __future__ import annotations

from math import inf, isnan, sqrt
from types import FunctionType

import numpy as np

from .arrays import DIRECTION, LATERAL, WEIGHT, copy, largest_difference, squared
from .chain import forward, goal_errors, met, perturb, squared_errors
from .closed_form import formula_solutions, nearest_solution
from .elimination.solutions import eliminated
from .language import compiled, specialised
from .methods.lm import local_lm

SOLVED, JOINT_LIMIT, OUT_OF_REACH, NOT_FOUND, INVALID = range(5)  # INVALID: the goal or the seed is no number
DESCENTS = 17
PROVES = True  # whether the form finds every solution, so that none shows that there is none
# A goal this near to one with a solution may have one itself: within the tolerances, or one that rounding hides,
# next to the border of the workspace. Joints turn fast there: the other one may be that far beyond its limits.
NEARBY = 3e-4  # m and rad, in each coordinate: three times the tolerance of the direction
BEYOND = 0.06  # rad or m
LARGEST, SHORTEST = 1e9, 1e-9  # [m or rad], and of the direction: beyond these is a mistake
UNIT = 1e-12  # by how much the square of a length of 1 may be off by rounding


@compiled
def prepare(goal, seed):
    """Bring the direction of goal (9,) to unit length, unless it has it; whether goal and seed (n,) are numbers."""
    square = 0.0
    for k in range(LATERAL):
        if not abs(goal[k]) <= LARGEST:
            return False
        if k >= DIRECTION:
            square += goal[k] * goal[k]
    for i in range(seed.shape[0]):
        if not abs(seed[i]) <= LARGEST:
            return False
    if not square > SHORTEST * SHORTEST:
        return False
    if abs(square - 1.0) > UNIT:
        length = sqrt(square)
        for k in range(DIRECTION, LATERAL):
            goal[k] /= length
    return True


@compiled
def all_by_formula(joints, tool, limits, opened, period, form, options, goal, seed, found):  # noqa: ARG001
    """Every solution by formula: rows of found (k, n), turned nearest to seed (n,).

    Returns (how many, whether there are no others).
    """
    count, regular = formula_solutions(joints, tool, limits, period, form, goal, options, seed, found)
    return count, regular and PROVES


@compiled
def all_by_elimination(joints, tool, limits, opened, period, form, options, goal, seed, found):
    """As all_by_formula, by elimination."""
    free = opened.copy()
    for i in range(seed.shape[0]):
        if isnan(opened[0, i]):
            free[0, i] = free[1, i] = min(max(seed[i], limits[0, i]), limits[1, i])
    count, certain = eliminated(joints, tool, limits, free, period, form, goal, options, seed, found, 0)
    return count, certain and PROVES


@compiled
def every(joints, tool, limits, opened, period, form, options, goal, seed, found):
    """all_by_formula or all_by_elimination: a part of the functions below."""
    raise NotImplementedError


@compiled
def nearest_by_formula(joints, tool, limits, opened, period, form, options, goal, seed, found, q):  # noqa: ARG001
    """The solution nearest to seed (n,) by the largest move of a joint, into q (n,); returns (solved, both errors)."""
    solved, position, direction, _ = nearest_solution(joints, tool, limits, form, goal, options, seed, q)
    return solved, position, direction


@compiled
def nearest_by_elimination(joints, tool, limits, opened, period, form, options, goal, seed, found, q):
    """As nearest_by_formula, by elimination."""
    count, _ = all_by_elimination(joints, tool, limits, opened, period, form, options, goal, seed, found)
    if count == 0:
        return False, inf, inf
    sort_by_move(seed, found, count)
    copy(found[0], q)
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    forward(joints, tool, q, frames)
    position, direction = goal_errors(joints, frames, goal)
    return True, position, direction


@compiled
def nearest(joints, tool, limits, opened, period, form, options, goal, seed, found, q):
    """nearest_by_formula or nearest_by_elimination: a part of the functions below."""
    raise NotImplementedError


@compiled
def sort_by_move(seed, found, count):
    """Sort the first rows of found (k, n) by the largest move of a joint from seed (n,), the least first."""
    for k in range(1, count):
        row = k
        while row > 0 and largest_difference(found[row], seed) < largest_difference(found[row - 1], seed):
            for i in range(seed.shape[0]):
                found[row, i], found[row - 1, i] = found[row - 1, i], found[row, i]
            row -= 1


@compiled
def all_sorted(joints, tool, limits, opened, period, form, options, goal, seed, found):
    """Every solution in rows of found (k, n), the nearest to seed (n,) first; returns (how many, no others exist)."""
    count, complete = every(joints, tool, limits, opened, period, form, options, goal, seed, found)
    sort_by_move(seed, found, count)
    if complete and count == 0:
        complete = not may_exist(joints, tool, limits, opened, period, form, options, goal, seed, found)
    return count, complete


@compiled
def descend(joints, tool, limits, options, goal, seed, trial, q):
    """Where descents end that start at seed (n,) and, if the form may miss a solution, at random: the best in q (n,).

    trial (n,) is scratch. Returns (whether it meets goal, both errors); ends as soon as one does.
    """
    n = seed.shape[0]
    frames, work = np.empty((2 * joints.shape[0] + 3, 3)), np.empty((3 * n + 4, max(n, 6)))
    state = np.zeros(1, dtype=np.uint64)
    least, solved = inf, False
    copy(seed, trial)
    for start in range(1 if PROVES else DESCENTS):
        if start > 0:
            perturb(seed, limits, 1.0, state, trial)
        local_lm(joints, tool, limits, goal, options, trial, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        cost = position + squared(options[WEIGHT]) * direction
        if start == 0 or cost < least:
            least = cost
            copy(trial, q)
        if met(position, direction, options):
            copy(trial, q)
            solved = True
            break
    forward(joints, tool, q, frames)
    position_error, direction_error = goal_errors(joints, frames, goal)
    return solved, position_error, direction_error


@compiled
def answer(joints, tool, limits, opened, period, form, options, goal, seed, found, q):
    """The nearest solution to seed (n,) into q (n,), or what descend finds; found (k, n) is scratch.

    Returns (status, position error [m], direction error [rad], joint). joint: whose limit excludes the goal,
    with JOINT_LIMIT, else -1.
    """
    solved, position, direction = nearest(joints, tool, limits, opened, period, form, options, goal, seed, found, q)
    if solved:
        return SOLVED, position, direction, -1
    solved, position, direction = descend(joints, tool, limits, options, goal, seed, found[0], q)
    if solved:
        return SOLVED, position, direction, -1
    if not PROVES or may_exist(joints, tool, limits, opened, period, form, options, goal, seed, found):
        return NOT_FOUND, position, direction, -1
    count, _ = every(joints, tool, opened, opened, period, form, options, goal, seed, found)
    joint, least = -1, inf
    for k in range(count):
        worst, most = -1, 0.0
        for i in range(seed.shape[0]):
            excess = max(limits[0, i] - found[k, i], found[k, i] - limits[1, i])
            if excess > most:
                worst, most = i, excess
        if most < least:
            joint, least = worst, most
    return JOINT_LIMIT if joint >= 0 else OUT_OF_REACH, position, direction, joint


@compiled
def may_exist(joints, tool, limits, opened, period, form, options, goal, seed, found):
    """Whether there may be a solution although none was found: not proven, or the goal is next to one that has some.

    As long as one nearby goal of two opposite ones is inside of the border of the workspace, it is found.
    """
    wide, near = limits.copy(), goal.copy()
    for i in range(seed.shape[0]):
        wide[0, i] -= BEYOND
        wide[1, i] += BEYOND
    for shifted in range(LATERAL):
        for side in range(2):
            copy(goal, near)
            near[shifted] += NEARBY if side == 0 else -NEARBY
            dx, dy, dz = near[DIRECTION], near[DIRECTION + 1], near[DIRECTION + 2]
            length = sqrt(dx * dx + dy * dy + dz * dz)
            near[DIRECTION], near[DIRECTION + 1], near[DIRECTION + 2] = dx / length, dy / length, dz / length
            count, complete = every(joints, tool, wide, opened, period, form, options, near, seed, found)
            if count > 0 or not complete:
                return True
    return False


def functions(by_formula: bool) -> tuple[FunctionType, FunctionType]:
    """Return answer and all_sorted by formula or by elimination."""
    first, rest = (nearest_by_formula, all_by_formula) if by_formula else (nearest_by_elimination, all_by_elimination)
    doubt = specialised(may_exist, 'may_exist', every=rest)
    return (
        specialised(answer, 'answer', nearest=first, every=rest, may_exist=doubt),
        specialised(all_sorted, 'all_sorted', every=rest, may_exist=doubt),
    )
