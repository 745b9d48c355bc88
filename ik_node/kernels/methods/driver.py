# SPDX-License-Identifier: Apache-2.0
"""The loop around the steps of a local method: limits, the best configuration so far, when to stop."""

from math import inf

from ..arrays.layout import CHORD_TOLERANCE, END_AT_LAST, ITERATIONS, POSITION_TOLERANCE, STALL, WEIGHT
from ..chain.balls import keep_in_balls
from ..chain.forward import clip, forward, squared_errors
from ..runtime.compiled import compiled

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


def drive(joints, tool, limits, goal, options, q, frames, work):
    """A descent: repeat step from q (n,), in place; frames are left at the returned q, the best on the way.

    Ends within AIM and both tolerances, when PATIENCE iterations after the first WARM_UP
    gain too little, or after the iterations allowed. Returns their number.
    """
    n = q.shape[0]
    best = work[3 * n + BEST, :n]
    position_goal = min(options[POSITION_TOLERANCE], AIM) ** 2
    direction_goal = min(options[CHORD_TOLERANCE], AIM) ** 2
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
