# SPDX-License-Identifier: Apache-2.0
"""Steps along one branch of solutions, joint paths through goals, and pursuit of a moving target."""

from __future__ import annotations

from math import exp, inf, isnan, sqrt

import numpy as np

from .arrays import (
    DEVIATION,
    DIRECTION,
    DISTINCT,
    LATERAL,
    SIGNS,
    WEIGHT,
    add_distinct,
    copy,
    largest_difference,
    largest_move,
)
from .chain import (
    clip,
    damped_step,
    forward,
    goal_errors,
    hold_in_balls,
    met,
    normal_equations,
    squared_errors,
)
from .closed_form import formula_solutions, nearest_solution
from .language import F0, F1, F2, F3, I1, I2, R1, R2, compiled
from .methods.lm import descend_lm

SMALLEST_SHARE = 1.0 / 4096.0  # of a step: where even this is not a smooth motion, the branch has ended
BEND = 0.3  # a joint move may miss its linear prediction by this share and still be the same branch
DEMANDED = 3.0  # times the linear prediction: no joint move of a step needs more than this
LARGE_MOVE = 0.2  # rad or m: larger ones are looked at piece by piece


@compiled
def interpolate_goal(goal, start, share, out):
    """Write out (9,): the goal that lies share of the way from start (9,) to goal (9,)."""
    copy(goal, out)
    for i in range(3):
        out[i] = start[i] + share * (goal[i] - start[i])
    if not isnan(goal[DIRECTION]):
        size = 0.0
        for i in range(3, 6):
            out[i] = start[i] + share * (goal[i] - start[i])
            size += out[i] * out[i]
        size = 1.0 / sqrt(size) if size > 1e-12 else 1.0
        for i in range(3, 6):
            out[i] *= size


@compiled
def predict(joints, tool, limits, goal, options, q, frames, work, step):
    """Write step (n,): the joint move from q (n,) towards goal by the linear model, limits kept.

    Frames are left at q. Returns (weighted error at q [m], largest joint move).
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient, free = work[3 * n, :n], work[3 * n + 1, :n]
    forward(joints, tool, q, frames)
    position, direction = squared_errors(joints, frames, goal)
    normal_equations(joints, frames, goal, options[WEIGHT], jac, hessian, gradient)
    for i in range(n):
        outward = (q[i] <= limits[0, i] and gradient[i] < 0.0) or (q[i] >= limits[1, i] and gradient[i] > 0.0)
        free[i] = 0.0 if outward else 1.0
    if limits.shape[0] > 2:
        hold_in_balls(q, limits, gradient, hessian, False)
    damped_step(hessian, gradient, free, 1e-8 * options[WEIGHT] * options[WEIGHT], factor, step)
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(step[i]))
    return sqrt(position + options[WEIGHT] * options[WEIGHT] * direction), largest


@compiled
def follow(joints: R2, tool: R1, limits: R2, goal: F1, options: F1, q: F1, work: F2):
    """Move q (n,) to goal without leaving its branch, in place.

    The way to goal is cut until each piece moves the joints as its linear prediction says; where
    no piece is small enough, the branch ends and q stays at that point. Goals on the way need not
    be reachable (4 effective DoF): there the nearest configuration serves. work (3 n + 8,
    max(n, 9)) is scratch. Returns (solved, position error [m], direction error [rad]).
    """
    n, m = q.shape[0], joints.shape[0]
    frames = np.empty((2 * m + 3, 3))
    base = 3 * n + 4  # descend_lm and predict use the rows before
    step, trial, start, target = work[base, :n], work[base + 1, :n], work[base + 2, :9], work[base + 3, :9]
    clip(q, limits)
    forward(joints, tool, q, frames)
    copy(goal, start)
    copy(frames[2 * m], start[:DIRECTION])
    if not isnan(goal[DIRECTION]):
        copy(frames[2 * m + 1], start[DIRECTION:LATERAL])
    done, share = 0.0, 1.0
    while done < 1.0:
        share = min(share, 1.0 - done)
        last = done + share >= 1.0
        interpolate_goal(goal, start, 1.0 if last else done + share, target)
        before, predicted = predict(joints, tool, limits, target, options, q, frames, work, step)
        copy(q, trial)
        descend_lm(joints, tool, limits, target, options, 1e-8, trial, frames, work)
        position, direction = squared_errors(joints, frames, target)
        near = met(position, direction, options)
        if not last:
            near = near or sqrt(position + options[WEIGHT] * options[WEIGHT] * direction) <= BEND * before
        missed = 0.0
        for i in range(n):
            missed = max(missed, abs(trial[i] - q[i] - step[i]))
        if near and missed <= BEND * predicted + 1e-6:
            copy(trial, q)
            done += share
            share *= 2.0
            continue
        share *= 0.5
        if share < SMALLEST_SHARE:
            break
    forward(joints, tool, q, frames)
    position_error, direction_error = goal_errors(joints, frames, goal)
    return done >= 1.0, position_error, direction_error


@compiled
def has_spare_joints(n, goal):
    """Whether n joints are more than any goal of this kind needs."""
    return n > (3 if isnan(goal[DIRECTION]) else 5)


@compiled
def passes_between(joints, tool, limits, goal, options, q, arrived, move, frames, work):
    """Whether half-way from q (n,) to arrived (n,) the tool is half-way to goal, but for a share of the move.

    So a step with some motion in the null space is told from a jump. frames are those at q.
    """
    n, m = q.shape[0], joints.shape[0]
    base = 3 * n + 5
    middle, start, target = work[base, :n], work[base + 1, :9], work[base + 2, :9]
    copy(goal, start)
    copy(frames[2 * m], start[:DIRECTION])
    if not isnan(goal[DIRECTION]):
        copy(frames[2 * m + 1], start[DIRECTION:LATERAL])
    interpolate_goal(goal, start, 0.5, target)
    for i in range(n):
        middle[i] = 0.5 * (q[i] + arrived[i])
    descend_lm(joints, tool, limits, target, options, 1e-8, middle, frames, work)
    position, direction = squared_errors(joints, frames, target)
    if not met(position, direction, options):
        return False
    missed = 0.0
    for i in range(n):
        missed = max(missed, abs(middle[i] - 0.5 * (q[i] + arrived[i])))
    return missed <= BEND * move


@compiled
def is_smooth(joints: R2, tool: R1, limits: R2, goal: F1, options: F1, q: F1, arrived: F1, work: F2):
    """Whether arrived (n,), a solution of goal, continues the branch of q (n,)."""
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    step = work[3 * n + 4, :n]
    _, predicted = predict(joints, tool, limits, goal, options, q, frames, work, step)
    move = largest_difference(arrived, q)
    if move <= min(DEMANDED * predicted + 1e-6, LARGE_MOVE):
        return True
    if move <= LARGE_MOVE and has_spare_joints(n, goal):
        return passes_between(joints, tool, limits, goal, options, q, arrived, move, frames, work)
    followed = q.copy()
    if not follow(joints, tool, limits, goal, options, followed, work)[0]:
        return False
    return largest_difference(followed, arrived) <= DISTINCT


@compiled
def leave_null_space(joints, tool, goal, options, q, step, frames, work):
    """Take from step (n,), a joint move at q (n,), what moves neither tool point nor tool axis, in place.

    Such a motion serves no goal, and carried on it would never end.
    """
    n = q.shape[0]
    hessian, factor, jac = work[:n, :n], work[n : 2 * n, :n], work[2 * n : 3 * n, :6]
    gradient, free = work[3 * n, :n], work[3 * n + 1, :n]
    forward(joints, tool, q, frames)
    normal_equations(joints, frames, goal, options[WEIGHT], jac, hessian, gradient)
    for i in range(n):
        free[i], gradient[i] = 1.0, 0.0
        for j in range(n):
            gradient[i] += hessian[max(i, j), min(i, j)] * step[j]
    damped_step(hessian, gradient, free, 1e-8 * options[WEIGHT] * options[WEIGHT], factor, step)


@compiled
def advance(joints: R2, tool: R1, limits: R2, form: R2, goal: F1, options: F1, q: F1, before: F1, work: F2):
    """Move q (n,) on to goal along its branch, in place: the nearest solution if it is a smooth step.

    before (n,): the configuration before q, or q itself. What is nearest is measured from where the
    motion would carry the arm, so that it passes straight through places where branches cross.
    Else the branch is followed piece by piece. Returns (solved, position error [m], direction error
    [rad]); not solved: the branch has ended and q is its last point on the way.
    """
    n = q.shape[0]
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    step, trial, ahead = work[3 * n + 4, :n], work[3 * n + 5, :n], work[3 * n + 6, :n]
    carried = 0.0
    for i in range(n):
        step[i] = q[i] - before[i]
    if has_spare_joints(n, goal):
        leave_null_space(joints, tool, goal, options, q, step, frames, work)
    for i in range(n):
        ahead[i] = q[i] + step[i]
        carried = max(carried, abs(step[i]))
    clip(q, limits)
    clip(ahead, limits)
    if form[SIGNS, DEVIATION] == 0.0 and not isnan(goal[DIRECTION]):
        solved, position_error, direction_error, _ = nearest_solution(
            joints, tool, limits, form, goal, options, ahead, trial
        )
    else:
        copy(ahead, trial)
        descend_lm(joints, tool, limits, goal, options, 1e-8, trial, frames, work)
        position, direction = squared_errors(joints, frames, goal)
        solved = met(position, direction, options)
        position_error, direction_error = goal_errors(joints, frames, goal)
    if solved:
        move, missed = 0.0, 0.0
        for i in range(n):
            move = max(move, abs(trial[i] - q[i]))
            missed = max(missed, abs(trial[i] - ahead[i]))
        smooth = missed <= BEND * carried
        if not smooth:
            _, predicted = predict(joints, tool, limits, goal, options, q, frames, work, step)
            smooth = move <= min(DEMANDED * predicted + 1e-6, LARGE_MOVE)
        if smooth:
            copy(trial, q)
            return True, position_error, direction_error
    return follow(joints, tool, limits, goal, options, q, work)


SAME_MOVE = 1e-6  # rad or m: largest moves that differ by less are equal, answers are no more exact
START_WEIGHT = 1e-2  # of the move from the seed to the start of a path, beside the sum of its moves
NEAR_BY = 0.05  # rad or m: solutions of neighbouring goals that differ by less are one branch


@compiled
def formula_path(
    joints: R2,
    tool: R1,
    limits: R2,
    period: R1,
    form: R2,
    goals: F2,
    options: F1,
    seed: F1,
    found: F3,
    counts: I1,
):
    """formula_solutions of every goal (N, 9) into found (N, 16, n) and counts (N,).

    If none is near a solution of the goal before, a descent from that one finds what the formula leaves
    open: the value of an angle that is free at exactly this goal.
    """
    n = limits.shape[1]
    q, work = np.empty(n), np.empty((3 * n + 4, max(n, 6)))
    frames = np.empty((2 * joints.shape[0] + 3, 3))
    for k in range(goals.shape[0]):
        counts[k], _ = formula_solutions(joints, tool, limits, period, form, goals[k], options, seed, found[k])
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
def best_branch(period: R1, found: F3, counts: I1, seed: F1, costs: F2, came_from: I2, choice: I1):
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


# One step after a moving target: how it moves, its demand, the calm point, the joints.
#
# See GoalStream in control/solving.py, and control/pursuit.py.
#
# States are (3, n): positions, velocities and accelerations of joints, which are advanced in place. limits
# (3, n): of velocity, acceleration and jerk. dt [s]: the step.

MIN_SPREAD = 1e-9  # of three times or more; it is 0 where only two differ, and 0.02 for four even ones
MEMORY = 0.7  # [s] for which the largest velocity and acceleration of the target count
SMOOTHING = 0.04  # [s] of its acceleration
DRIFT, CALM = 2.0, 0.3  # [1/s] of the distance, and share of the velocity limits: speed of the calm point
STEADYING = 8.0  # [1/s] two poles with which the calm point takes that speed
SHARE_AFTER_HIT = 0.9  # largest share after a hit
NEAR = 0.3  # [s] for which the largest distance between the target and the calm point counts
BLENDING = 0.4  # share of the free acceleration, and of the jerk limit, that a change of the share may use
CROSSING = 0.6  # share of the free acceleration that the rate of the share may use
MIN_ROOM, MAX_ROOM = 0.1, 0.9  # shares of the limits that count as free for it
SMALLEST = 1e-3  # [rad or m] distance between target and calm point, for quotients
DEFICIT_TIME = 0.04  # [s] for which acceleration that limits took away counts
HIT = 0.15  # a limit is hit if the deficit is this share of the acceleration limit: noise takes less
HALVINGS = 12  # for a jerk that stops a joint at a place


@compiled
def fit_parabola(times: F1, samples: F2, parabola: F2):
    """Fit parabolas to samples (k, n) at times (k,) by least squares; return whether the times allow it.

    parabola (3, n): place and rate at the last of the times, and half the bend.
    """
    last, span = times.shape[0] - 1, times[-1] - times[0]
    s1 = s2 = s3 = s4 = 0.0  # sums of powers of the times, in spans from the last
    for k in range(last):
        t = (times[k] - times[last]) / span
        s1, s2, s3, s4 = s1 + t, s2 + t * t, s3 + t * t * t, s4 + t * t * t * t
    s0 = last + 1.0
    # the normal equations by Cholesky's method without roots
    l1, l2 = s1 / s0, s2 / s0
    d1 = s2 - l1 * s1
    l3 = (s3 - l1 * s2) / d1
    d2 = s4 - l2 * s2 - l3 * l3 * d1
    if not d2 > MIN_SPREAD:
        return False
    for i in range(samples.shape[1]):
        r0 = r1 = r2 = 0.0
        for k in range(last):
            t, y = (times[k] - times[last]) / span, samples[k, i] - samples[last, i]
            r0, r1, r2 = r0 + y, r1 + t * y, r2 + t * t * y
        r1 -= l1 * r0
        bend = (r2 - l2 * r0 - l3 * r1) / d2
        rate = r1 / d1 - l3 * bend
        parabola[0, i] = samples[last, i] + r0 / s0 - l1 * rate - l2 * bend
        parabola[1, i] = rate / span
        parabola[2, i] = bend / (span * span)
    return True


@compiled
def note_demand(target: F2, limits: R2, peaks: F2, smooth: F1, dt: F0):
    """Note what following target needs as shares of the limits, and return the largest, and its speed.

    peaks (2, n): of velocity and acceleration; they decay. smooth (n,): the acceleration, smoothed.
    """
    decay, follow = exp(-dt / MEMORY), min(1.0, dt / SMOOTHING)
    worst = square = 0.0
    for i in range(target.shape[1]):
        speed, hard = abs(target[1, i]) / limits[0, i], abs(target[2, i]) / limits[1, i]
        peaks[0, i] = max(speed, decay * peaks[0, i])
        peaks[1, i] = max(hard, decay * peaks[1, i])
        change = follow * (target[2, i] - smooth[i])
        smooth[i] += change
        lasting = max(abs(smooth[i]) / limits[1, i], abs(change) / (limits[2, i] * dt))
        worst = max(worst, speed, lasting)
        square += speed * speed
    return worst, sqrt(square)


@compiled
def drift(calm: F2, target: F2, limits: R2, share: F0, dt: F0):
    """Move the calm point on: straight to the target, slowly. The joints do 1 - share of its motion."""
    n = calm.shape[1]
    scale = 1.0
    for i in range(n):
        wish, bound = DRIFT * abs(target[0, i] - calm[0, i]), CALM * limits[0, i]
        if wish > bound:
            scale = min(scale, bound / wish)
    for i in range(n):
        velocity = scale * DRIFT * (target[0, i] - calm[0, i])
        jerk = STEADYING * STEADYING * (velocity - calm[1, i]) - 2.0 * STEADYING * calm[2, i]
        bound = limits[2, i] / (1.0 - min(share, SHARE_AFTER_HIT))
        _advance(calm, i, max(-bound, min(jerk, bound)), dt)


@compiled
def blend_limits(calm: F2, target: F2, limits: R2, peaks: F2, size: F1, share: F0, dt: F0):
    """Find how fast the share may change: its velocity, acceleration and jerk limits, [1/s] and so on.

    peaks: see note_demand. size (n,): the largest distances lately between target and calm point.
    """
    decay = exp(-dt / NEAR)
    speed = brake = jerk = inf
    for i in range(calm.shape[1]):
        size[i] = max(abs(target[0, i] - calm[0, i]), SMALLEST, decay * size[i])
        fast = share * peaks[0, i] + (1.0 - share) * abs(calm[1, i]) / limits[0, i]
        hard = share * peaks[1, i] + (1.0 - share) * abs(calm[2, i]) / limits[1, i]
        free = limits[1, i] * max(MIN_ROOM, min(1.0 - hard, MAX_ROOM))
        crossing = max(2.0 * abs(target[1, i] - calm[1, i]), SMALLEST)
        speed = min(speed, limits[0, i] * max(MIN_ROOM, min(1.0 - fast, MAX_ROOM)) / size[i])
        speed = min(speed, CROSSING * free / crossing)
        brake = min(brake, BLENDING * free / size[i])
        jerk = min(jerk, BLENDING * limits[2, i] / size[i])
    return speed, brake, jerk


@compiled
def chase(now: F2, calm: F2, target: F2, limits: R2, turns: F2, blend: F1, pole: F0, deficit: F1, dt: F0):
    """Move the joints on towards the blend of calm and target, with three poles at -pole [1/s].

    calm, target: where these are after the step. turns (2, n): the lowest and highest positions that the
    joints should not pass. blend (3,): the share, its rate and the rate of that. deficit (n,): acceleration
    that limits took away lately. Return whether a limit was hit. There is no lag behind a motion of constant
    acceleration.
    """
    k, rate, bend = blend[0], blend[1], blend[2]
    fade = exp(-dt / DEFICIT_TIME)
    hit = False
    for i in range(now.shape[1]):
        gap, fast, hard = target[0, i] - calm[0, i], target[1, i] - calm[1, i], target[2, i] - calm[2, i]
        acceleration = calm[2, i] + k * hard + 2.0 * rate * fast + bend * gap
        velocity = calm[1, i] + k * fast + rate * gap - acceleration * dt
        position = calm[0, i] + k * gap - (velocity + 0.5 * acceleration * dt) * dt
        desired = (
            pole * (pole * pole) * (position - now[0, i])
            + 3.0 * (pole * pole) * (velocity - now[1, i])
            + 3.0 * pole * (acceleration - now[2, i])
        )
        jerk = _limited(now, i, desired, limits, dt)
        deficit[i] = fade * deficit[i] + (desired - jerk) * dt
        jerk = _stopping(now, i, jerk, limits, turns[1, i], 1.0, dt)
        jerk = _stopping(now, i, jerk, limits, -turns[0, i], -1.0, dt)
        _advance(now, i, jerk, dt)
        hit = hit or abs(deficit[i]) > HIT * limits[1, i]
    return hit


@compiled
def _limited(now, i, jerk, limits, dt):
    """Return jerk of joint i, changed where a limit would be exceeded in the next dt, or while it ends."""
    fastest, hardest, max_jerk = limits[0, i], limits[1, i], limits[2, i]
    # The largest acceleration after dt that can end, at the jerk limit, before the speed exceeds its limit:
    # v + (a + x) dt / 2 + x^2 / (2 j) = limit, solved for x.
    half = 0.5 * dt * max_jerk
    fastest = max(fastest - max_jerk * (dt * dt) / 8.0, 0.9 * fastest)  # within dt it may be faster
    coming = now[1, i] + 0.5 * dt * now[2, i]
    high = min(hardest, sqrt(max(half * half + 2.0 * max_jerk * (fastest - coming), 0.0)) - half)
    low = min(hardest, sqrt(max(half * half + 2.0 * max_jerk * (fastest + coming), 0.0)) - half)
    jerk = max(-max_jerk, min(jerk, max_jerk))
    acceleration = min(max(now[2, i] + jerk * dt, -low), high)
    return max(-max_jerk, min((acceleration - now[2, i]) / dt, max_jerk))


@compiled
def _stopping(now, i, jerk, limits, end, sign, dt):
    """Return jerk of joint i, changed as little as needed for it to stop before end. sign: -1 mirrors."""
    hardest, max_jerk = limits[1, i], limits[2, i]
    position, velocity, acceleration = sign * now[0, i], sign * now[1, i], sign * now[2, i]
    jerk *= sign
    if position < end < _turn(position, velocity, acceleration, jerk, hardest, max_jerk, dt):
        least = max(-max_jerk, min(jerk, (-hardest - acceleration) / dt))
        low, high = least, jerk
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            if _turn(position, velocity, acceleration, middle, hardest, max_jerk, dt) > end:
                high = middle
            else:
                low = middle
        jerk = low
    return sign * jerk


@compiled
def _turn(position, velocity, acceleration, jerk, hardest, max_jerk, dt):
    """Return the largest position if a joint, after dt of a jerk, brakes as hard as the limits allow."""
    position += (velocity + (acceleration / 2.0 + jerk * (dt / 6.0)) * dt) * dt
    velocity += (acceleration + jerk * (dt / 2.0)) * dt
    acceleration += jerk * dt
    square = acceleration * acceleration + 2.0 * max_jerk * velocity
    if square <= 0.0 or acceleration + sqrt(square) <= 0.0:
        return position
    time = (acceleration + sqrt(square)) / max_jerk  # to rest at the jerk limit
    hard = (acceleration + hardest) / max_jerk  # to the acceleration limit
    at_limit = time > hard
    if at_limit:
        time = hard
    position += (velocity + (acceleration / 2.0 - max_jerk * (time / 6.0)) * time) * time
    velocity += (acceleration - max_jerk * (time / 2.0)) * time
    if at_limit:
        position += velocity * velocity / (2.0 * hardest)
    return position


@compiled
def _advance(state, i, jerk, dt):
    """Move joint i on by dt of constant jerk."""
    position, velocity, acceleration = state[0, i], state[1, i], state[2, i]
    state[0, i] = position + (velocity + (acceleration / 2.0 + jerk * (dt / 6.0)) * dt) * dt
    state[1, i] = velocity + (acceleration + jerk * (dt / 2.0)) * dt
    state[2, i] = acceleration + jerk * dt
