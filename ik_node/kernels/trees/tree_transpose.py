# SPDX-License-Identifier: Apache-2.0
"""Several tools on one set of joints by the mean rule: each steps along the transpose of its own Jacobian.

Joints that tools share take the mean of their steps. Arguments as in tree.py.
"""

from math import inf

from ..arrays.copies import copy
from ..arrays.layout import CHORD_TOLERANCE, ITERATIONS, POSITION_TOLERANCE, STALL, WEIGHT
from ..chain.forward import clip, forward
from ..chain.linear import normal_equations
from ..methods.driver import AIM, keeps_improving
from ..methods.transpose import MOST_STEP
from ..runtime.compiled import compiled
from ..runtime.specialised import specialised
from .tree import all_met, anneal_tree, tree_errors


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
    position_goal = min(options[POSITION_TOLERANCE], AIM) ** 2
    chord_goal = min(options[CHORD_TOLERANCE], AIM) ** 2
    users_of_joints(parents, leaves, weights, users)
    for k in range(tools.shape[0]):
        lengths[k] = 0.0
    clip(q, limits)
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
                outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (
                    q[i] >= limits[1, i] and gradient[i] > 0.0
                )
                if outward:
                    gradient[i] = 0.0
                steepest = max(steepest, abs(gradient[i]))
            lengths[k] = step_length(jac, gradient, iteration % 2 == 1, lengths[k])
            if 0.0 < lengths[k] * steepest < inf:
                share = weights[k] * lengths[k] * min(1.0, MOST_STEP / (lengths[k] * steepest))
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


search_tree_transpose = specialised(
    anneal_tree, 'search_tree_transpose', __file__, descend_tree=descend_by_transpose
)
