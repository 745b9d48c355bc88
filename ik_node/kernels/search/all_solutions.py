# SPDX-License-Identifier: Apache-2.0
"""Distinct solutions found by restarts, and the nearest one of a self-motion."""

import numpy as np

from ..arrays.copies import copy
from ..arrays.layout import CHORD_TOLERANCE, POSITION_TOLERANCE, WEIGHT
from ..arrays.rotation import FAR_TURNED
from ..chain.balls import stop_at_edges
from ..chain.forward import clip, forward, met, squared_errors
from ..chain.linear import damped_step, normal_equations
from ..chain.listing import add_solution
from ..chain.random import perturb
from ..closed_form.candidates import EXACT, polish_and_check
from ..methods.lm import FIRST_DAMPING, descend_lm
from ..runtime.compiled import compiled

SLIDE_END = 1e-7  # rad or m: a self-motion has been followed to its end when steps get shorter


@compiled
def start_within(limits, seed, start):
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
    trial, held = np.empty(n), limits.copy()
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
            before += (q[i] - seed[i]) ** 2
            square += moved[i] * moved[i]
            change += moved[i] * (last[i] - step[i])
        share = square / change if square < 10.0 * change else 10.0
        share = min(share, 0.3 / largest) if largest > 0.0 else 0.0
        nearer = False
        while share * largest > SLIDE_END and not nearer:
            for i in range(n):
                trial[i] = q[i] + share * step[i]
                held[0, i], held[1, i] = limits[0, i], limits[1, i]
                if free[i] == 0.0:
                    held[0, i], held[1, i] = trial[i], trial[i]
                elif trial[i] <= limits[0, i]:
                    held[1, i] = limits[0, i]
                elif trial[i] >= limits[1, i]:
                    held[0, i] = limits[1, i]
            descend_lm(joints, tool, held, goal, options, 1e-8, trial, frames, work)
            position, direction = squared_errors(joints, frames, goal)
            if met(position, direction, options):
                after = 0.0
                for i in range(n):
                    after += (trial[i] - seed[i]) ** 2
                nearer = after < before
            share *= 0.5
        if not nearer:
            break
        for i in range(n):
            moved[i], q[i] = trial[i] - q[i], trial[i]


@compiled
def explore(joints, tool, limits, period, goal, options, descents, state, seed, redundant, found, count):
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
