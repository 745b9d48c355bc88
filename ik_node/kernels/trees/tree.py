# SPDX-License-Identifier: Apache-2.0
"""Several tools on one set of joints: one bounded descent over all of them, and its random restarts.

joints (M, 10): the rows of all tools one after the other, those of tool k from rows[k] to rows[k + 1],
their VARIABLE a column of the q (n,) of all. tools (K, 9), goals (K, 9): as layout.py has them for one.
weights (K,): of the squared errors of each tool. parents (n,), leaves (K,): as branches.py has them.
"""

from math import inf

import numpy as np

from ..arrays.copies import copy
from ..arrays.layout import CHORD_TOLERANCE, COOLING, CYCLE, ITERATIONS, POSITION_TOLERANCE, STALL, WEIGHT
from ..chain.forward import clip, forward, goal_errors, squared_errors
from ..chain.linear import LEAST_DAMPING
from ..chain.random import perturb
from ..closest.newton import bounded_step, curved_equations, move_and_gain, next_damping, shorten
from ..methods.driver import AIM
from ..methods.lm import FIRST_DAMPING
from ..runtime.compiled import compiled
from ..runtime.specialised import specialised
from .branches import add_normal_equations, branch_step


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
def descend_tree(
    joints, tools, rows, parents, leaves, limits, goals, weights, options, q, frames, errors, work
):
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
    position_goal = min(options[POSITION_TOLERANCE], AIM) ** 2
    chord_goal = min(options[CHORD_TOLERANCE], AIM) ** 2
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
            outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (
                q[i] >= limits[1, i] and gradient[i] > 0.0
            )
            free[i] = 0.0 if outward else 1.0
            floor = max(floor, LEAST_DAMPING * hessian[i, i])
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
    joints, tools, rows, parents, leaves, limits, goals, weights, options, first, last, state, q, errors
):
    """Descents number first to last - 1 of a search; q (n,) in: start, out: best.

    Descent 0 starts at q; every later one at the best so far plus a random offset that shrinks with a
    temperature and is re-heated. Ends at once where every tool is within the tolerances. errors (K, 2): out,
    squared, at q. Returns (number of the last descent, whether it is solved).
    """
    n, most = q.shape[0], 0
    for k in range(tools.shape[0]):
        most = max(most, rows[k + 1] - rows[k])
    frames, work = np.empty((2 * most + 3, 3)), np.empty((3 * n + 5, max(n, 6, tools.shape[0])))
    position_goal, chord_goal = options[POSITION_TOLERANCE] ** 2, options[CHORD_TOLERANCE] ** 2
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


search_tree = specialised(anneal_tree, 'search_tree', __file__)


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
def settle_tree(joints, tools, rows, limits, goals, weights, weight, q):
    """Newton descent of half_cost from q (n,), in place, with exact Hessians as closest/newton.py.

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
