# SPDX-License-Identifier: Apache-2.0
"""Searches from many starts or over many goals: all solutions, batches, reach, distances to the limits."""

from __future__ import annotations

from math import inf, isfinite, isnan, nan, sqrt

import numpy as np

from .arrays import (
    CHORD_TOLERANCE,
    DIRECTION,
    FAMILY,
    FAR_TURNED,
    KIND,
    LATERAL,
    POSITION_TOLERANCE,
    WEIGHT,
    copy,
    copy_column,
    squared,
)
from .chain import (
    add_solution,
    clip,
    damped_step,
    forward,
    met,
    normal_equations,
    perturb,
    squared_distances,
    squared_errors,
    stop_at_edges,
)
from .closed_form import EXACT, MOST_CANDIDATES, formula_solutions, nearest_solution, polish_and_check
from .language import B0, B1, F0, F1, F2, I0, R1, R2, U1, compiled
from .methods.lm import FIRST_DAMPING, descend_lm, search_lm

SLIDE_END = 1e-7  # rad or m: a self-motion has been followed to its end when steps get shorter


@compiled
def start_within(limits: R2, seed: F1, start: F1):
    """Write seed (n,), clipped to limits, into start (n,); 0 where a joint is turned too far to tell."""
    copy(seed, start)
    clip(start, limits)
    for i in range(start.shape[0]):
        if abs(start[i]) > FAR_TURNED:
            start[i] = 0.0


@compiled
def nearest_on_self_motion(joints, tool, limits, goal, options, seed, q, frames, work):
    """Move q (n,), a solution, along its self-motion to where the distance to seed cannot fall any more.

    Steps along the null space towards seed, as long as the last two say is best (Barzilai and
    Borwein), each brought back to the goal by a short descent and halved until it leads nearer: a
    self-motion may be bent more than the distance is. Joints that come to a limit stay there while
    they would leave it. In place. work (3 n + 8, max(n, 6)) is scratch.
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient = work[3 * n, :n]  # descend_lm uses the rows up to 3 n + 3
    step, moved, last, free = (
        work[3 * n + 4, :n],
        work[3 * n + 5, :n],
        work[3 * n + 6, :n],
        work[3 * n + 7, :n],
    )
    trial, fixed = np.empty(n), limits.copy()
    pull = 1e-8 * options[WEIGHT] * options[WEIGHT]
    step[:], moved[:] = 0.0, 0.0
    descend_lm(joints, tool, limits, goal, options, 1e-8, q, frames, work)  # distances compare like with like
    for _ in range(100):
        forward(joints, tool, q, frames)
        normal_equations(joints, frames, goal, options[WEIGHT], jac, hessian, gradient)
        for i in range(n):
            free[i] = 1.0
            if hessian[i, i] < 1e-9 * pull:  # a joint that moves nothing goes all the way
                q[i] = min(max(seed[i], limits[0, i]), limits[1, i])
                free[i] = 0.0
            hessian[i, i] += pull
            gradient[i] = pull * (seed[i] - q[i])
            last[i] = step[i]
        outward, in_balls = True, limits.shape[0] == 2
        while outward:  # joints that would leave the limits stay, the others make do without them
            damped_step(hessian, gradient, free, 0.0, factor, step)
            outward = False
            for i in range(n):
                if (q[i] < limits[0, i] + SLIDE_END and step[i] < 0.0) or (
                    q[i] > limits[1, i] - SLIDE_END and step[i] > 0.0
                ):
                    free[i] = 0.0
                    outward = True
            if not in_balls:
                in_balls = True
                outward = stop_at_edges(q, limits, step, gradient, hessian) or outward
        largest, before, square, change = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            largest = max(largest, abs(step[i]))
            before += squared(q[i] - seed[i])
            square += moved[i] * moved[i]
            change += moved[i] * (last[i] - step[i])
        share = square / change if square < 10.0 * change else 10.0
        share = min(share, 0.3 / largest) if largest > 0.0 else 0.0
        nearer = False
        while share * largest > SLIDE_END and not nearer:
            for i in range(n):
                trial[i] = q[i] + share * step[i]
                fixed[0, i], fixed[1, i] = limits[0, i], limits[1, i]
                if free[i] == 0.0:
                    fixed[0, i], fixed[1, i] = trial[i], trial[i]
                elif trial[i] <= limits[0, i]:
                    fixed[1, i] = limits[0, i]
                elif trial[i] >= limits[1, i]:
                    fixed[0, i] = limits[1, i]
            descend_lm(joints, tool, fixed, goal, options, 1e-8, trial, frames, work)
            position, direction = squared_errors(joints, frames, goal)
            if met(position, direction, options):
                after = 0.0
                for i in range(n):
                    after += squared(trial[i] - seed[i])
                nearer = after < before
            share *= 0.5
        if not nearer:
            break
        for i in range(n):
            moved[i], q[i] = trial[i] - q[i], trial[i]


@compiled
def explore(
    joints: R2,
    tool: R1,
    limits: R2,
    period: R1,
    goal: F1,
    options: F1,
    descents: I0,
    state: U1,
    seed: F1,
    redundant: B0,
    found: F2,
    count: I0,
):
    """Descents from uniform random configurations; distinct solutions are appended to found (k, n).

    redundant: the arm has more joints than the task needs; each solution is then represented by the
    member of its self-motion nearest to seed (n,). Returns (number found, descents that succeeded).
    """
    n = seed.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 8, max(n, 6)))
    q = np.empty(n)
    exact = options.copy()  # or small errors would hide which way is nearer
    exact[0], exact[1] = min(options[POSITION_TOLERANCE], EXACT), min(options[CHORD_TOLERANCE], EXACT)
    successes = 0
    for _ in range(descents):
        perturb(seed, limits, 1.0, state, q)
        descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        if not met(position, direction, options):
            continue
        if redundant:
            nearest_on_self_motion(joints, tool, limits, goal, exact, seed, q, frames, work)
        if polish_and_check(joints, tool, limits, goal, options, q, frames)[0]:
            successes += 1
            count = add_solution(limits, period, found, count, q)
    return count, successes


LATER_STARTS = 3  # times as many random starts before a place counts as out of reach
ATTEMPTS = 3  # at a direction, each from the configuration nearest to it
ANOTHER = 0.5  # rad or m: of those that differ by so much from the ones tried before


@compiled
def out_of_reach(shells: R2, goal: F1, tolerance: F0):
    """1 if the position of goal is too far for a shell by more than tolerance [m], -1 if too near, else 0.

    shells (k, 5): centre (3), least and largest distance of the tool point from it.
    """
    for k in range(shells.shape[0]):
        x, y, z = (
            goal[0] - shells[k, 0],
            goal[1] - shells[k, 1],
            goal[2] - shells[k, 2],
        )
        distance = sqrt(x * x + y * y + z * z)
        if distance > shells[k, 4] + tolerance:
            return 1
        if distance < shells[k, 3] - tolerance:
            return -1
    return 0


@compiled
def mark_reached(axis, directions, cosine, reached):
    """Mark in reached (k,) the directions (k, 3) whose angle to axis (3,) has at least this cosine."""
    for k in range(directions.shape[0]):
        if axis[0] * directions[k, 0] + axis[1] * directions[k, 1] + axis[2] * directions[k, 2] >= cosine:
            reached[k] = True


@compiled
def nearest_untried(table, count, direction, tried):
    """Find the row of table (count, n + 3) whose axis (last three) is nearest to direction (3,).

    Rows that differ by less than ANOTHER from a row in tried (t,) are passed over. Returns (row, cosine
    of the angle); row -1 where none is left.
    """
    n = table.shape[1] - 3
    best, nearest = -1, -2.0
    for i in range(count):
        dot = table[i, n] * direction[0] + table[i, n + 1] * direction[1] + table[i, n + 2] * direction[2]
        if dot <= nearest:
            continue
        another = True
        for t in range(tried.shape[0]):
            gap = 0.0
            for j in range(n):
                gap = max(gap, abs(table[i, j] - table[tried[t], j]))
            another = another and gap > ANOTHER
        if another:
            best, nearest = i, dot
    return best, nearest


@compiled
def reached_directions(
    joints: R2,
    tool: R1,
    limits: R2,
    options: F1,
    place: R1,
    directions: R2,
    cosine: F0,
    starts: I0,
    state: U1,
    table: F2,
    reached: B1,
):
    """Mark in reached (k,) the directions (k, 3) that the tool axis can take with the tool at place (3,).

    cosine: of the angle by which a direction may be missed. Configurations at place are collected in
    table (starts + ATTEMPTS k, n + 3) with their tool axes: first from random starts; then each
    direction not met yet is tried from those with the nearest axes, as a small penalty beside the
    position, which a last descent makes exact again. Returns their number, 0 if the place is out of reach.
    """
    n = limits.shape[1]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    work = np.empty((3 * n + 4, max(n, 6)))
    goal, q, middle = np.full(9, nan), np.empty(n), np.zeros(n)
    tried = np.empty((directions.shape[0], ATTEMPTS), dtype=np.int64)
    axis = frames[2 * joints.shape[0] + 1]
    least = options[POSITION_TOLERANCE] * options[POSITION_TOLERANCE]
    for i in range(n):
        if isfinite(limits[1, i] - limits[0, i]):
            middle[i] = 0.5 * (limits[0, i] + limits[1, i])
    reached[:] = False
    copy(place, goal[:DIRECTION])
    count = 0
    for start in range(LATER_STARTS * starts):
        if count > 0 and start >= starts:
            break
        perturb(middle, limits, 1.0, state, q)
        descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
        if squared_errors(joints, frames, goal)[0] <= least:
            copy(q, table[count, :n])
            copy(axis, table[count, n:])
            mark_reached(axis, directions, cosine, reached)
            count += 1
    for attempt in range(ATTEMPTS):
        for k in range(directions.shape[0]):
            if reached[k]:
                continue
            row, nearest = nearest_untried(table, count, directions[k], tried[k, :attempt])
            tried[k, attempt] = max(row, 0)
            if row < 0:
                continue
            copy(table[row], q)
            copy(directions[k], goal[DIRECTION:LATERAL])
            descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
            goal[DIRECTION:LATERAL] = nan
            descend_lm(joints, tool, limits, goal, options, FIRST_DAMPING, q, frames, work)
            dot = axis[0] * directions[k, 0] + axis[1] * directions[k, 1] + axis[2] * directions[k, 2]
            if squared_errors(joints, frames, goal)[0] <= least and dot > nearest:
                copy(q, table[count, :n])
                copy(axis, table[count, n:])
                mark_reached(axis, directions, cosine, reached)
                count += 1
    return count


@compiled
def solve_many(
    joints: R2, tool: R1, limits: R2, form: R2, trusted: B0, goals: F2, shells: R2, options: F1, table:
    F2, descents: I0, random_seed: I0, seeds: F2, q: F2, errors: F2, solved: B1,
):  # fmt: skip
    """Solve goals (N, 9) one after the other, each by formula if form has one, then by a few descents.

    trusted: no descents where the formula finds nothing. shells: as in out_of_reach, goals out of
    reach are left alone. seeds (N, n), or (1, n) for all. Writes solved (N,) bool and, where that is so,
    q (N, n) and errors (N, 2) [m, rad]; goals that are solved already are left alone too.
    """
    state = np.empty(1, np.uint64)
    now = np.empty(q.shape[1])
    for k in range(goals.shape[0]):
        if solved[k]:
            continue
        seed = seeds[min(k, seeds.shape[0] - 1)]
        if out_of_reach(shells, goals[k], options[POSITION_TOLERANCE]) != 0:
            continue
        regular = False
        if form[KIND, FAMILY] != 0.0 and not isnan(goals[k, DIRECTION]):
            solved[k], errors[k, 0], errors[k, 1], regular = nearest_solution(
                joints, tool, limits, form, goals[k], options, seed, q[k]
            )
        if not solved[k] and not (trusted and regular):
            state[0] = random_seed
            copy(seed, q[k])
            _, errors[k, 0], errors[k, 1], solved[k] = search_lm(
                joints, tool, limits, goals[k], options, table, 0, descents, state, now, q[k]
            )


HOPELESS = 8  # descents without success after which a goal counts as not met
HALVINGS = 8  # of the interval in which the largest distance to the limits is
BETTER = 1e-3  # rad or m: by how much farther from the limits another solution has to be


@compiled
def distance_to_limits(q, limits):
    """Return the least distance [rad or m] of q (n,) to a limit of a joint that is not held."""
    least = inf
    for i in range(q.shape[0]):
        if limits[0, i] < limits[1, i]:
            least = min(least, min(q[i] - limits[0, i], limits[1, i] - q[i]))
    return least


@compiled
def turn_to_middle(q, limits, period):
    """Turn each joint of q (n,) by whole turns to where it is farthest from its limits, in place."""
    for i in range(q.shape[0]):
        span = limits[1, i] - limits[0, i]
        if 0.0 < period[i] <= span < inf:
            q[i] -= period[i] * round((q[i] - 0.5 * (limits[0, i] + limits[1, i])) / period[i])


@compiled
def draw_in(limits, inset, narrow):
    """Write limits, those of each joint that is not held drawn in by inset [rad or m], into narrow."""
    for i in range(limits.shape[1]):
        by = inset if limits[0, i] < limits[1, i] else 0.0
        narrow[0, i], narrow[1, i] = limits[0, i] + by, limits[1, i] - by


@compiled
def keep_from_limits(joints, tool, limits, goal, options, q, narrow, trial, frames, work):
    """Move q (n,), which meets goal, to where it is farthest from the limits, in place; return the distance.

    By bisection: descents within limits that are drawn in. narrow (as limits) and trial (n,) are scratch.
    """
    low, high = distance_to_limits(q, limits), inf
    for i in range(q.shape[0]):
        if limits[0, i] < limits[1, i]:
            high = min(high, 0.5 * (limits[1, i] - limits[0, i]))
    if high == inf:
        return low
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        draw_in(limits, middle, narrow)
        copy(q, trial)
        descend_lm(joints, tool, narrow, goal, options, FIRST_DAMPING, trial, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        if met(position, direction, options):
            copy(trial, q)
            low = max(middle, distance_to_limits(q, limits))
        else:
            high = middle
    return low


@compiled
def farthest_by_descents(joints, tool, limits, period, goal, options, table, starts, q, narrow, frames, work):
    """Write into q (n,) the solution of goal that is farthest from the limits, of those that descents find.

    They start at as many poses of table as starts says, those nearest to goal, within limits drawn in by the
    best distance so far; what meets goal there is moved on as far as goal allows. Returns the distance, -inf
    if there is no solution.
    """
    distances, trial = np.empty(table.shape[1]), np.empty(q.shape[0])
    squared_distances(table, goal, options[WEIGHT], distances)
    least = -inf
    for start in range(starts):
        if least == -inf and start == HOPELESS:
            break
        pose = distances.argmin()
        distances[pose] = inf
        copy_column(table, pose, trial)
        draw_in(limits, max(least + BETTER, 0.0), narrow)
        descend_lm(joints, tool, narrow, goal, options, FIRST_DAMPING, trial, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        if met(position, direction, options):
            if limits.shape[0] == 2:
                turn_to_middle(trial, limits, period)
            copy(trial, q)
            least = keep_from_limits(joints, tool, limits, goal, options, q, narrow, trial, frames, work)
    return least


@compiled
def limit_distances(
    joints: R2, tool: R1, limits: R2, period: R1, form: R2, trusted: B0, goals: F2, shells: R2, options:
    F1, table: F2, starts: I0, q: F1, found: F2, distances: F1, solved: B1,
):  # fmt: skip
    """Write for each of goals (N, 9) the solution farthest from the joint limits, and its distance to them.

    found (N, n), distances (N,) [rad or m]: -inf where no solution was found. solved (N,): whether that is
    shown to be the best, as the formula finds all solutions or there is none; else see farthest_by_descents.
    trusted: the formula is exact. shells: as in out_of_reach. q (n,): where joints are that are free.
    """
    n = limits.shape[1]
    frames, work = np.empty((2 * joints.shape[0] + 3, 3)), np.empty((3 * n + 4, max(n, 6)))
    rows, trial, narrow = np.empty((MOST_CANDIDATES, n)), q.copy(), limits.copy()
    for k in range(goals.shape[0]):
        goal = goals[k]
        distances[k], solved[k] = -inf, True
        if out_of_reach(shells, goal, options[POSITION_TOLERANCE]) != 0:
            continue
        if form[KIND, FAMILY] != 0.0 and not isnan(goal[DIRECTION]):
            count, regular = formula_solutions(joints, tool, limits, period, form, goal, options, q, rows)
            for row in range(count):
                turn_to_middle(rows[row], limits, period)
                distance = distance_to_limits(rows[row], limits)
                if distance > distances[k]:
                    distances[k] = distance
                    copy(rows[row], found[k])
            if trusted and regular:
                continue
        solved[k] = False
        distance = farthest_by_descents(
            joints, tool, limits, period, goal, options, table, starts, trial, narrow, frames, work
        )
        if distance > distances[k]:
            distances[k] = distance
            copy(trial, found[k])


@compiled
def estimate_misses(joints: R2, tool: R1, limits: R2, goals: F2, options: F1, table: F2, distances: F1, misses: F1):
    """Write by how much [m] each of goals (N, 9) of distance -inf is missed, 0 for others, into misses (N,).

    A descent from the pose of table nearest to the goal tells; options weigh a direction against a position.
    distances (N,): as limit_distances writes them.
    """
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    n = limits.shape[1]
    work, q, squares = np.empty((3 * n + 4, max(n, 6))), np.empty(n), np.empty(table.shape[1])
    for k in range(goals.shape[0]):
        misses[k] = 0.0
        if distances[k] > -inf:
            continue
        squared_distances(table, goals[k], options[WEIGHT], squares)
        copy_column(table, squares.argmin(), q)
        descend_lm(joints, tool, limits, goals[k], options, FIRST_DAMPING, q, frames, work)
        position, direction = squared_errors(joints, frames, goals[k])
        misses[k] = sqrt(position + options[WEIGHT] * options[WEIGHT] * direction)
