# SPDX-License-Identifier: Apache-2.0
"""Several tools on shared joints: descents over all of them, transpose steps, and limbs by formula."""

from __future__ import annotations

from math import ceil, inf, isfinite, isnan, pi

import numpy as np

from .arrays import (
    CHORD_TOLERANCE,
    COOLING,
    CYCLE,
    DIRECTION,
    ITERATIONS,
    LATERAL,
    POSITION_TOLERANCE,
    STALL,
    WEIGHT,
    copy,
    squared,
)
from .chain import (
    MIN_DAMPING,
    clip,
    error_vectors,
    forward,
    goal_errors,
    jacobian,
    normal_equations,
    perturb,
    squared_errors,
)
from .closed_form import nearest_solution
from .closest import bounded_step, curved_equations, move_and_gain, next_damping, shorten
from .language import F0, F1, F2, I0, I1, I2, R2, R3, U1, compiled, specialised
from .methods.driver import AIM, keeps_improving
from .methods.lm import FIRST_DAMPING
from .methods.transpose import MAX_STEP
from .tracking import advance

# Normal equations of branching robots: tools whose joints are on different branches do not couple them.
#
# parents (n,): by joint the one before it on the way to the base, -1 for the first. leaves (K,): by tool
# its last joint; those that move it are that and its ancestors. Parents come before their children.


@compiled
def add_normal_equations(joints, frames, goal, weight, share, parents, leaf, jac, hessian, gradient):
    """Add share times what chain.normal_equations writes to hessian (n, n), lower half, and gradient (n,).

    Only for the joints that move the tool. jac (n, 6): scratch.
    """
    jacobian(joints, frames, jac)
    w = 0.0 if isnan(goal[DIRECTION]) else weight * weight
    ex, ey, ez, fx, fy, fz = error_vectors(joints, frames, goal)
    fx, fy, fz = w * fx, w * fy, w * fz
    i = leaf
    while i >= 0:
        a, b, c = share * jac[i, 0], share * jac[i, 1], share * jac[i, 2]
        d, e, f = share * jac[i, 3], share * jac[i, 4], share * jac[i, 5]
        gradient[i] += a * ex + b * ey + c * ez + d * fx + e * fy + f * fz
        j = i
        while j >= 0:
            hessian[i, j] += (
                a * jac[j, 0] + b * jac[j, 1] + c * jac[j, 2] + w * (d * jac[j, 3] + e * jac[j, 4] + f * jac[j, 5])
            )
            j = parents[j]
        i = parents[i]


@compiled
def branch_step(hessian, gradient, free, damping, parents, factor, step):
    """Solve (H + damping I) step = gradient by L^T D L from the tips to the base, frozen joints left out.

    That order keeps the zeros between branches (Featherstone, Rigid Body Dynamics Algorithms, section 6.5).
    factor (n, n) holds D on its diagonal and L below it.
    """
    n = gradient.shape[0]
    for i in range(n):
        step[i] = free[i] * gradient[i]
        j = parents[i]
        while j >= 0:
            factor[i, j] = free[i] * free[j] * hessian[i, j]
            j = parents[j]
        factor[i, i] = hessian[i, i] + damping if free[i] != 0.0 else 1.0
    for k in range(n - 1, -1, -1):
        inverse = 1.0 / factor[k, k] if factor[k, k] > 1e-300 else 1e300
        i = parents[k]
        while i >= 0:
            share = factor[k, i] * inverse
            j = i
            while j >= 0:
                factor[i, j] -= share * factor[k, j]
                j = parents[j]
            step[i] -= share * step[k]
            i = parents[i]
        step[k] *= inverse
        i = parents[k]
        while i >= 0:
            factor[k, i] *= inverse
            i = parents[i]
    for k in range(n):
        i = parents[k]
        while i >= 0:
            step[k] -= factor[k, i] * step[i]
            i = parents[i]


# Several tools on one set of joints: one bounded descent over all of them, and its random restarts.
#
# joints (M, 10): the rows of all tools one after the other, those of tool k from rows[k] to rows[k + 1],
# their VARIABLE a column of the q (n,) of all. tools (K, 9), goals (K, 9): as arrays.py has them for one.
# weights (K,): of the squared errors of each tool. parents (n,), leaves (K,): as above.


@compiled
def tree_errors(joints, tools, rows, goals, weights, options, q, frames, errors):
    """Write errors (K, 2), squared position errors and squared chords; return their weighted sum."""
    cost = 0.0
    for k in range(tools.shape[0]):
        own = joints[rows[k] : rows[k + 1]]
        forward(own, tools[k], q, frames)
        position, direction = squared_errors(own, frames, goals[k])
        errors[k, 0], errors[k, 1] = position, direction
        cost += weights[k] * (position + options[WEIGHT] * options[WEIGHT] * direction)
    return cost


@compiled
def all_met(errors, position_goal, chord_goal):
    """Whether errors (K, 2), squared, are within both goals for every tool."""
    met = True
    for k in range(errors.shape[0]):
        met = met and errors[k, 0] <= position_goal and errors[k, 1] <= chord_goal
    return met


@compiled
def descend_tree(joints, tools, rows, parents, leaves, limits, goals, weights, options, q, frames, errors, work):
    """Bounded Levenberg-Marquardt over all tools from q (n,), in place, as methods/lm.py does for one.

    errors (K, 2): left as tree_errors writes them. work (3 n + 5, max(n, 6, K)): scratch. Returns the cost.
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient, step, free, trial = (
        work[3 * n, :n],
        work[3 * n + 1, :n],
        work[3 * n + 2, :n],
        work[3 * n + 3, :n],
    )
    position_goal = squared(min(options[POSITION_TOLERANCE], AIM))
    chord_goal = squared(min(options[CHORD_TOLERANCE], AIM))
    stalled, stiffness = 0, 1.0
    clip(q, limits)
    cost = tree_errors(joints, tools, rows, goals, weights, options, q, frames, errors)
    for _ in range(int(options[ITERATIONS])):
        if all_met(errors, position_goal, chord_goal):
            break
        for i in range(n):
            gradient[i] = 0.0
            for j in range(i + 1):
                hessian[i, j] = 0.0
        for k in range(tools.shape[0]):
            own = joints[rows[k] : rows[k + 1]]
            forward(own, tools[k], q, frames)
            add_normal_equations(
                own, frames, goals[k], options[WEIGHT], weights[k], parents, leaves[k], jac, hessian, gradient
            )
        floor = 0.0
        for i in range(n):
            outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0)
            free[i] = 0.0 if outward else 1.0
            floor = max(floor, MIN_DAMPING * hessian[i, i])
        new, better = cost, False
        for _ in range(8):
            damping = stiffness * (FIRST_DAMPING * cost + floor)
            branch_step(hessian, gradient, free, damping, parents, factor, step)
            for i in range(n):
                trial[i] = q[i] + step[i]
            clip(trial, limits)
            new = tree_errors(joints, tools, rows, goals, weights, options, trial, frames, errors)
            if new < cost:
                better = True
                break
            stiffness *= 10.0
        if not better:
            break
        stalled = stalled + 1 if cost - new < options[STALL] * cost else 0
        cost = new
        copy(trial, q)
        stiffness = max(0.1 * stiffness, 1.0)
        if stalled == 3:
            break
    return tree_errors(joints, tools, rows, goals, weights, options, q, frames, errors)


def anneal_tree(
    joints: R2,
    tools: R2,
    rows: I1,
    parents: I1,
    leaves: I1,
    limits: R2,
    goals: F2,
    weights: F1,
    options: F1,
    first: I0,
    last: I0,
    state: U1,
    q: F1,
    errors: F2,
):
    """Descents number first to last - 1 of a search; q (n,) in: start, out: best.

    Descent 0 starts at q; every later one at the best so far plus a random offset that shrinks with a
    temperature and is re-heated. Ends at once where every tool is within the tolerances. errors (K, 2): out,
    squared, at q. Returns (number of the last descent, whether it is solved).
    """
    n, longest = q.shape[0], 0
    for k in range(tools.shape[0]):
        longest = max(longest, rows[k + 1] - rows[k])
    frames, work = np.empty((2 * longest + 3, 3)), np.empty((3 * n + 5, max(n, 6, tools.shape[0])))
    position_goal, chord_goal = squared(options[POSITION_TOLERANCE]), squared(options[CHORD_TOLERANCE])
    trial, best = np.empty(n), inf
    if first > 0:
        best = tree_errors(joints, tools, rows, goals, weights, options, q, frames, errors)
    for restart in range(first, last):
        if restart == 0:
            copy(q, trial)
        else:
            perturb(q, limits, options[COOLING] ** ((restart - 1) % int(options[CYCLE])), state, trial)
        cost = descend_tree(
            joints, tools, rows, parents, leaves, limits, goals, weights, options, trial, frames, errors, work
        )
        if cost < best:
            best = cost
            copy(trial, q)
        if all_met(errors, position_goal, chord_goal):
            copy(trial, q)
            return restart, True
    tree_errors(joints, tools, rows, goals, weights, options, q, frames, errors)
    return last - 1, False


search_tree = specialised(
    anneal_tree,
    'search_tree',
)


@compiled
def half_cost(joints, tools, rows, goals, weights, weight, q, frames):
    """Return half the sum of weights times (position error^2 + weight^2 direction error^2) at q (n,)."""
    cost = 0.0
    for k in range(tools.shape[0]):
        own = joints[rows[k] : rows[k + 1]]
        forward(own, tools[k], q, frames)
        position, direction = goal_errors(own, frames, goals[k])
        cost += 0.5 * weights[k] * (position * position + weight * weight * direction * direction)
    return cost


@compiled
def settle_tree(joints: R2, tools: R2, rows: I1, limits: R2, goals: F2, weights: F1, weight: F0, q: F1):
    """Newton descent of half_cost from q (n,), in place, with exact Hessians as closest.py.

    Where goals are far out of reach, Gauss and Newton's approximation hardly gets on. weight [m/rad].
    """
    n, m = q.shape[0], joints.shape[0]
    frames, work = np.empty((2 * m + 3, 3)), np.empty((3 * n + m + 8, max(n, 13)))
    hessian, factor, part, parts = (
        work[:n, :n],
        work[n : 2 * n, :n],
        work[2 * n : 3 * n, :n],
        work[3 * n + 8 :],
    )
    gradient, step, free, trial = (
        work[3 * n, :n],
        work[3 * n + 1, :n],
        work[3 * n + 2, :n],
        work[3 * n + 3, :n],
    )
    scale, right, own_gradient, own_scale = (
        work[3 * n + 4, :n],
        work[3 * n + 5, :n],
        work[3 * n + 6, :n],
        work[3 * n + 7, :n],
    )
    clip(q, limits)
    damping = 1e-3
    cost = half_cost(joints, tools, rows, goals, weights, weight, q, frames)
    for _ in range(100):
        for i in range(n):
            gradient[i], scale[i] = 0.0, 0.0
            for j in range(i + 1):
                hessian[i, j] = 0.0
        for k in range(tools.shape[0]):
            own = joints[rows[k] : rows[k + 1]]
            forward(own, tools[k], q, frames)
            curved_equations(own, frames, goals[k], weight, parts, part, own_gradient, own_scale)
            for i in range(n):
                gradient[i] += weights[k] * own_gradient[i]
                scale[i] += weights[k] * own_scale[i]
                for j in range(i + 1):
                    hessian[i, j] += weights[k] * part[i, j]
        gain, new = 0.0, inf
        for _ in range(40):
            if bounded_step(limits, hessian, gradient, free, damping, scale, factor, right, step, q, trial):
                largest, gain = move_and_gain(q, trial, gradient)
                if largest < 1e-12 or (gain <= 1e-15 * cost and damping < 1e-6):
                    return
                shorten(q, trial, largest)
                new = half_cost(joints, tools, rows, goals, weights, weight, trial, frames)
                if new < cost:
                    break
            damping = max(3.0 * damping, 1e-13)
        if not new < cost:
            return
        copy(trial, q)
        damping = next_damping(damping, (cost - new) / gain)
        cost = new


# Several tools on one set of joints by the mean rule: each steps along the transpose of its own Jacobian.
#
# Joints that tools share take the mean of their steps. Arguments as of descend_tree.


@compiled
def users_of_joints(parents, leaves, weights, users):
    """Write by joint the sum of the weights (K,) of the tools that it moves into users (n,)."""
    for i in range(users.shape[0]):
        users[i] = 0.0
    for k in range(weights.shape[0]):
        i = leaves[k]
        while i >= 0:
            users[i] += weights[k]
            i = parents[i]


@compiled
def step_length(jac, gradient, goal_is_new, length):
    """Return the length of the step along gradient (n,) that is best for the linear model (Buss 2004).

    jac (n, 6). length: the last one, which is returned unless goal_is_new: each is used twice, see
    methods/transpose.py.
    """
    if not goal_is_new and length > 0.0:
        return length
    across, moved = 0.0, 0.0
    for i in range(gradient.shape[0]):
        across += gradient[i] * gradient[i]
    for k in range(6):
        total = 0.0
        for i in range(gradient.shape[0]):
            total += jac[i, k] * gradient[i]
        moved += total * total
    return across / moved if moved > 0.0 else 0.0


@compiled
def descend_by_transpose(
    joints, tools, rows, parents, leaves, limits, goals, weights, options, q, frames, errors, work
):
    """Steps of all tools along their own J^T e from q (n,), in place; shared joints take the weighted mean.

    Arguments and result as of descend_tree.
    """
    n = q.shape[0]
    jac, hessian = work[:n, :6], work[n : 2 * n, :n]
    gradient, mean, users, best, lengths = (
        work[2 * n, :n],
        work[2 * n + 1, :n],
        work[2 * n + 2, :n],
        work[2 * n + 3, :n],
        work[2 * n + 4],
    )
    position_goal = squared(min(options[POSITION_TOLERANCE], AIM))
    chord_goal = squared(min(options[CHORD_TOLERANCE], AIM))
    users_of_joints(parents, leaves, weights, users)
    for k in range(tools.shape[0]):
        lengths[k] = 0.0
    clip(q, limits)
    copy(q, best)  # the result where no cost is a number
    least, mark = inf, inf
    iteration = 0
    while True:
        cost = tree_errors(joints, tools, rows, goals, weights, options, q, frames, errors)
        if cost < least:
            least = cost
            copy(q, best)
        can_go_on, mark = keeps_improving(least, iteration, options[STALL], mark)
        if all_met(errors, position_goal, chord_goal) or not can_go_on or iteration >= options[ITERATIONS]:
            break
        iteration += 1
        for i in range(n):
            mean[i] = 0.0
        for k in range(tools.shape[0]):
            own = joints[rows[k] : rows[k + 1]]
            forward(own, tools[k], q, frames)
            normal_equations(own, frames, goals[k], options[WEIGHT], jac, hessian, gradient)
            steepest = 0.0
            for i in range(n):
                outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0)
                if outward:
                    gradient[i] = 0.0
                steepest = max(steepest, abs(gradient[i]))
            lengths[k] = step_length(jac, gradient, iteration % 2 == 1, lengths[k])
            if 0.0 < lengths[k] * steepest < inf:
                share = weights[k] * lengths[k] * min(1.0, MAX_STEP / (lengths[k] * steepest))
                for i in range(n):
                    mean[i] += share * gradient[i]
        moved = 0.0
        for i in range(n):
            if users[i] > 0.0:
                q[i] += mean[i] / users[i]
                moved = max(moved, abs(mean[i]))
        clip(q, limits)
        if moved == 0.0:
            break
    copy(best, q)
    return tree_errors(joints, tools, rows, goals, weights, options, q, frames, errors)


search_tree_transpose = specialised(anneal_tree, 'search_tree_transpose', descend_tree=descend_by_transpose)


# Limbs on a trunk: for fixed joints of the trunk every limb is an arm of its own, with a formula.
#
# K limbs. trunk (M, 10): the joints that carry them, those of limb k from rows[k] to rows[k + 1], their
# VARIABLE a column of the q (n,) of all joints; mounts (K, 9): as tool in arrays.py, the frame in which
# the limb is described. joints (K, 5, 10), tools (K, 9), limits (K, 2, 5), forms (K, 14, 3): the limb as
# an arm in that frame; columns (K, 5): of its joints. goals (K, 9): in the base frame. errors (K, 2):
# position [m] and direction [rad] of every limb, written where all are solved.


@compiled
def goal_on_limb(trunk, mounts, rows, k, goals, q, local):
    """Write local (9,): the goal of limb k in its own frame, with the joints of the trunk as in q (n,)."""
    own = trunk[rows[k] : rows[k + 1]]
    frames = np.empty((2 * own.shape[0] + 3, 3))
    forward(own, mounts[k], q, frames)
    last = frames.shape[0] - 1  # the x axis of the limb's frame; z and the origin stand before it
    x, z = frames[last], frames[last - 1]
    y0, y1, y2 = z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]
    for first in (0, DIRECTION):
        a, b, c = goals[k, first], goals[k, first + 1], goals[k, first + 2]
        if first == 0:
            a, b, c = a - frames[last - 2, 0], b - frames[last - 2, 1], c - frames[last - 2, 2]
        local[first] = x[0] * a + x[1] * b + x[2] * c
        local[first + 1] = y0 * a + y1 * b + y2 * c
        local[first + 2] = z[0] * a + z[1] * b + z[2] * c
    for i in range(LATERAL, 9):
        local[i] = goals[k, i]


@compiled
def solve_limbs(
    trunk, mounts, rows, joints, tools, limits, forms, columns, goals, options, seed, q, errors,
):  # fmt: skip
    """Solve all limbs by formula, near seed (n,), with the joints of the trunk as in q (n,); writes into q.

    Returns whether every limb is solved; q is left incomplete if not.
    """
    local, own, answer = np.empty(9), np.empty(5), np.empty(5)
    for k in range(tools.shape[0]):
        goal_on_limb(trunk, mounts, rows, k, goals, q, local)
        for i in range(5):
            own[i] = seed[columns[k, i]]
        solved, errors[k, 0], errors[k, 1], _ = nearest_solution(
            joints[k], tools[k], limits[k], forms[k], local, options, own, answer
        )
        if not solved:
            return False
        for i in range(5):
            q[columns[k, i]] = answer[i]
    return True


@compiled
def solve_outwards(
    trunk: R2, mounts: R2, rows: I1, joints: R3, tools: R2, limits: R3, forms: R3, columns: I2, goals:
    F2, options: F1, joint: I0, span: F1, seed: F1, q: F1, errors: F2,
):  # fmt: skip
    """Solve all limbs with one joint of the trunk as near seed (n,) as they allow; writes q (n,).

    joint: its column, -1 for a trunk that is not moved. span (4,): its limits, the step between two places
    that are tried, and that to which the nearest one is refined. Returns whether every limb is solved.
    """
    copy(seed, q)
    if joint < 0:
        return solve_limbs(trunk, mounts, rows, joints, tools, limits, forms, columns, goals, options, seed, q, errors)
    low, high, step, finest = span[0], span[1], span[2], span[3]
    start = min(max(seed[joint], low), high)
    if not isfinite(high - low):
        low, high = start - pi, start + pi
    found, fails = inf, start
    for number in range(ceil(max(start - low, high - start) / step) + 1):
        for sign in (1.0, -1.0):
            before = start + sign * (number - 1) * step
            if (number == 0 and sign < 0.0) or (number > 0 and not low < before < high and before != start):
                continue
            q[joint] = min(max(start + sign * number * step, low), high)
            if solve_limbs(trunk, mounts, rows, joints, tools, limits, forms, columns, goals, options, seed, q, errors):
                found, fails = q[joint], before
                break
        if found < inf:
            break
    if not found < inf:
        return False
    if found == start:
        return True
    trial, spare = q.copy(), errors.copy()
    while abs(found - fails) > finest:
        trial[joint] = 0.5 * (found + fails)
        if solve_limbs(trunk, mounts, rows, joints, tools, limits, forms, columns, goals, options, seed, trial, spare):
            found = trial[joint]
            copy(trial, q)
            for k in range(errors.shape[0]):
                copy(spare[k], errors[k])
        else:
            fails = trial[joint]
    return True


@compiled
def advance_limbs(
    trunk: R2, mounts: R2, rows: I1, joints: R3, tools: R2, limits: R3, forms: R3, columns: I2, goals:
    F2, options: F1, before: F1, q: F1, errors: F2,
):  # fmt: skip
    """Move all limbs on to their goals along their branches, as tracking.advance, the trunk as in q (n,).

    before (n,): the configuration before q. Writes into q and returns True if every limb follows; else q is
    as it was.
    """
    local, work, moved = np.empty(9), np.empty((23, 9)), q.copy()
    own, last = np.empty(5), np.empty(5)
    for k in range(tools.shape[0]):
        goal_on_limb(trunk, mounts, rows, k, goals, q, local)
        for i in range(5):
            own[i], last[i] = q[columns[k, i]], before[columns[k, i]]
        solved, errors[k, 0], errors[k, 1] = advance(
            joints[k], tools[k], limits[k], forms[k], local, options, own, last, work
        )
        if not solved:
            return False
        for i in range(5):
            moved[columns[k, i]] = own[i]
    copy(moved, q)
    return True
