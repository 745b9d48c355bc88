# SPDX-License-Identifier: Apache-2.0
"""What the page of an arm calls: an answer to a goal as IkSolver.solve gives it, and where the links are.

ik_node/tools/export translates these to WebAssembly, with all that they call. No Python calls them but tests.
"""

from __future__ import annotations

from math import cos, floor, inf, isfinite, isnan, sin

import numpy as np

from .arrays import (
    CHORD_TOLERANCE,
    DEVIATION,
    DIRECTION,
    FAMILY,
    FREE_ROLL,
    ITERATIONS,
    KIND,
    OFFSET_X,
    OFFSET_Y,
    OFFSET_Z,
    POSITION_TOLERANCE,
    PRISMATIC,
    RATIO,
    SHIFT,
    SIGNS,
    STALL,
    VARIABLE,
    WEIGHT,
    copy,
    rotate_axis_angle,
)
from .chain import clip, forward, goal_errors, perturb
from .closed_form import MOST_CANDIDATES, PARALLEL, formula_solutions, nearest_solution
from .closest import best_row, closest_parallel, keep_unused_joints
from .language import compiled
from .methods.lm import search_lm
from .search import explore, out_of_reach

# report (6,): what answer tells
STATUS, POSITION_ERROR, DIRECTION_ERROR, CAUSE, AMOUNT, JOINT = range(6)
SOLVED, UNREACHABLE, NOT_FOUND = range(3)
TOO_FAR, TOO_NEAR, DIRECTION_CONSTRAINED, JOINT_LIMIT, SEARCH_ENDED = range(5)

RESTARTS = 64  # of a search where no formula decides
STARTS = 12  # of the search for the closest configuration
DESCENTS = 400  # of the search for all solutions
SOFTER = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)  # times the usual weight of the direction: the position comes first
THOROUGH = (100.0, 1e-9)  # iterations and stall ratio of descents to goals out of reach
RESIDUAL_MARGIN = 1e-5  # m and rad: rounding may hide solutions with errors below this
LIMIT_MARGIN = 1e-4  # rad: likewise, of solutions that exceed limits by less
TABLE = 64  # rows for closest_parallel


@compiled
def least_miss(limits, period, rows, count, q):
    """Write into q (n,) that of the first rows (k, n) that exceeds the limits least, clipped to them.

    Whole turns are removed. Returns (the excess [rad or m], its joint), (-1, 0) if there is no row.
    """
    n = q.shape[0]
    least, worst = inf, 0
    for k in range(count):
        most, joint = -1.0, 0
        for i in range(n):
            low, high = limits[0, i], limits[1, i]
            if period[i] > 0.0 and isfinite(high - low):
                turns = (rows[k, i] - 0.5 * (low + high)) / period[i]
                rows[k, i] -= period[i] * floor(turns + 0.5)
            excess = max(low - rows[k, i], rows[k, i] - high)
            if excess > most:
                most, joint = excess, i
        if most < least:
            least, worst = most, joint
            copy(rows[k], q)
    if count == 0:
        return -1.0, 0
    clip(q, limits)
    return max(least, 0.0), worst


@compiled
def closest_by_formula(unit, tool, limits, opened, period, form, goal, narrow, tolerance, seed, q):
    """Replace q (5,), a place to start from, by the closest configuration; whether the position is reached.

    As ClosestSearch.find: unit, tool, form and goal in its unit of length, and so is tolerance.
    """
    table, errors, start = np.empty((TABLE, 5)), np.empty((TABLE, 2)), q.copy()
    count, in_place = closest_parallel(
        unit, tool, limits, opened, period, form, goal, narrow, seed, start, table, errors
    )
    copy(table[best_row(errors, table, count, seed, tolerance)], q)
    keep_unused_joints(unit, tool, limits, goal, seed, q)
    return in_place


@compiled
def closest_by_search(joints, tool, limits, goal, options, table, seed, q):
    """Replace q (n,), a place to start from, by the closest configuration that some descents find.

    As RandomRestarts.approach: the position first, then the direction.
    """
    now, trial, nearest = np.empty(q.shape[0]), q.copy(), q.copy()
    state = np.zeros(1, dtype=np.uint64)
    given = options.copy()
    given[ITERATIONS], given[STALL] = THOROUGH
    least, best, turn = inf, inf, inf
    for start in range(STARTS):
        if start > 0:
            perturb(q, limits, 1.0, state, trial)
        for softer in SOFTER:
            given[WEIGHT] = softer * options[WEIGHT]
            _, position, direction, _ = search_lm(joints, tool, limits, goal, given, table, 0, 1, state, now, trial)
        nearer = position < best - options[POSITION_TOLERANCE]
        if nearer or (position < best + options[POSITION_TOLERANCE] and direction < turn):
            best, turn = min(position, least), direction
            copy(trial, nearest)
        least = min(least, position)
    copy(nearest, q)
    keep_unused_joints(joints, tool, limits, goal, seed, q)


@compiled
def answer(
    joints, tool, limits, opened, unlimited, period, form, unit_joints, unit_tool, unit_form, length,
    narrow, shells, options, table, goal, seed, q, report,
):  # fmt: skip
    """Write the best q (n,) for goal (9,) near seed (n,), and what is to be told about it into report (6,).

    As the pipeline of IkSolver.solve: the solution nearest to seed by formula, else by descents; else the
    closest configuration, and why there is no solution. Without a formula nothing but the link lengths
    proves that: then the cause is SEARCH_ENDED. unit_joints, unit_tool, unit_form, length: the arm in the
    unit of ClosestSearch, and that unit [m]. opened, unlimited: limits without those of joints that turn all
    the way round, and of all revolute joints.
    """
    n = q.shape[0]
    directed = not isnan(goal[DIRECTION])
    beyond = out_of_reach(shells, goal, options[POSITION_TOLERANCE])
    solved, excluded, excess, joint = False, False, -1.0, 0
    position, direction = inf, inf
    found, now, state = np.empty((MOST_CANDIDATES, n)), np.empty(n), np.zeros(1, dtype=np.uint64)
    if form[SIGNS, DEVIATION] < inf and directed:
        solved, position, direction, regular = nearest_solution(joints, tool, limits, form, goal, options, seed, q)
        excluded = regular and form[SIGNS, DEVIATION] == 0.0
    if not solved:
        copy(seed, q)
        clip(q, limits)
        if form[SIGNS, DEVIATION] < inf and directed and excluded:
            copy(q, now)
            count, _ = formula_solutions(joints, tool, unlimited, period, form, goal, options, now, found)
            excess, joint = least_miss(limits, period, found, count, q)
        if beyond == 0 and not excluded:
            _, position, direction, solved = search_lm(
                joints, tool, limits, goal, options, table, 0, RESTARTS + 1, state, now, q
            )
    report[AMOUNT], report[JOINT] = 0.0, -1.0
    if solved:
        report[STATUS], report[POSITION_ERROR], report[DIRECTION_ERROR] = SOLVED, position, direction
        report[CAUSE] = -1.0
        return
    unit_goal = goal.copy()
    for k in range(3):
        unit_goal[k] /= length
    decides, in_place = False, False
    if form[SIGNS, DEVIATION] < inf and form[KIND, FAMILY] == PARALLEL:
        decides = form[KIND, FREE_ROLL] != 0.0 and not directed
        in_place = closest_by_formula(
            unit_joints, unit_tool, limits, opened, period, unit_form, unit_goal, narrow,
            options[POSITION_TOLERANCE] / length, seed, q,
        )  # fmt: skip
    else:
        closest_by_search(joints, tool, limits, goal, options, table, seed, q)
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    forward(joints, tool, q, frames)
    position, direction = goal_errors(joints, frames, goal)
    report[POSITION_ERROR], report[DIRECTION_ERROR] = position, direction
    reached = position <= options[POSITION_TOLERANCE]
    if reached and direction <= options[CHORD_TOLERANCE]:
        report[STATUS], report[CAUSE] = SOLVED, -1.0
        return
    doubtful = max(position, direction) < RESIDUAL_MARGIN or (excess >= 0.0 and excess < LIMIT_MARGIN)
    if beyond == 0 and (doubtful or not (excluded or (decides and not in_place))):
        report[STATUS], report[CAUSE], report[AMOUNT] = NOT_FOUND, SEARCH_ENDED, RESTARTS
        return
    report[STATUS], report[AMOUNT] = UNREACHABLE, position
    if beyond != 0:
        report[CAUSE] = TOO_FAR if beyond > 0 else TOO_NEAR
    elif excess >= 0.0:
        report[CAUSE], report[AMOUNT], report[JOINT] = JOINT_LIMIT, excess, joint
    elif reached:
        report[CAUSE], report[AMOUNT] = DIRECTION_CONSTRAINED, direction
    else:
        # Is it a limit that keeps the tool away from the position, or the lengths of the links?
        copy(q, now)
        if form[SIGNS, DEVIATION] < inf and form[KIND, FAMILY] == PARALLEL:
            closest_by_formula(
                unit_joints, unit_tool, unlimited, unlimited, period, unit_form, unit_goal, narrow,
                options[POSITION_TOLERANCE] / length, seed, now,
            )  # fmt: skip
        forward(joints, tool, now, frames)
        m = joints.shape[0]
        free, _ = goal_errors(joints, frames, goal)
        if free <= options[POSITION_TOLERANCE]:
            copy(now, found[0])
            excess, joint = least_miss(limits, period, found, 1, now)
            report[CAUSE], report[AMOUNT], report[JOINT] = JOINT_LIMIT, excess, joint
        else:
            outward = 0.0
            for k in range(3):
                at = frames[2 * m, k]
                outward += (goal[k] - at) * (at - shells[shells.shape[0] - 1, k])
            report[CAUSE] = TOO_FAR if outward > 0.0 else TOO_NEAR


@compiled
def all_solutions(joints, tool, limits, period, form, options, goal, seed, found):
    """Write the solutions of goal (9,) within the limits into found (16, n), whole turns left out.

    Returns their number and whether there are no others: by formula, else by descents.
    """
    n = seed.shape[0]
    count, regular, start = 0, False, seed.copy()
    clip(start, limits)
    if form[SIGNS, DEVIATION] < inf and not isnan(goal[DIRECTION]):
        count, regular = formula_solutions(joints, tool, limits, period, form, goal, options, start, found)
    if form[SIGNS, DEVIATION] == 0.0 and regular:
        return count, True
    state = np.zeros(1, dtype=np.uint64)
    count, _ = explore(joints, tool, limits, period, goal, options, DESCENTS, state, start, n > 5, found, count)
    return count, False


@compiled
def place_links(joints, tool, goal, q, frames, poses, report):
    """Write frames at q (n,), the poses (m + 1, 12) of what each joint carries, the base first, and both errors.

    A pose: the columns of the rotation, then the translation [m], from the zero pose to q.
    """
    m = joints.shape[0]
    forward(joints, tool, q, frames)
    report[POSITION_ERROR], report[DIRECTION_ERROR] = goal_errors(joints, frames, goal)
    poses[:, :] = 0.0
    for k in range(3):
        poses[0, 4 * k] = 1.0
    x0, y0, z0 = 0.0, 0.0, 0.0  # the joint at the zero pose
    for i in range(m):
        angle = joints[i, RATIO] * q[int(joints[i, VARIABLE])] + joints[i, SHIFT]
        c, s = (1.0, 0.0) if joints[i, PRISMATIC] != 0.0 else (cos(angle), sin(angle))
        for k in range(3):  # the turn about the axis where it is now, after those of all joints before
            poses[i + 1, 3 * k], poses[i + 1, 3 * k + 1], poses[i + 1, 3 * k + 2] = rotate_axis_angle(
                frames[i], c, s, poses[i, 3 * k], poses[i, 3 * k + 1], poses[i, 3 * k + 2]
            )
        x0, y0, z0 = x0 + joints[i, OFFSET_X], y0 + joints[i, OFFSET_Y], z0 + joints[i, OFFSET_Z]
        for k in range(3):
            turned = poses[i + 1, k] * x0 + poses[i + 1, 3 + k] * y0 + poses[i + 1, 6 + k] * z0
            poses[i + 1, 9 + k] = frames[m + i, k] - turned
