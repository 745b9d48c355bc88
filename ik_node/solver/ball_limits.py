# SPDX-License-Identifier: Apache-2.0
"""Goals that the cone or twist limits of a ball joint exclude."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.model.arm import Arm, frozen
from ik_node.model.ball import Ball, Order
from ik_node.solver.goal import Cause, Goal, Reason
from ik_node.solver.restarts import RandomRestarts

RESTARTS = 16  # of the search without the limits of balls


def beyond_a_ball(arm: Arm, q: Array) -> tuple[float, Ball | None, str]:
    """Return by how much [rad] q (n,) exceeds the limits of a ball most, which ball, and a sentence."""
    worst: tuple[float, Ball | None, str] = (0.0, None, '')
    for ball in arm.balls:
        if not ball.declared:
            continue
        at = [arm.joint_names.index(name) for name in ball.joints]
        swing_x, swing_y, twist = ball.swing_twist((float(q[at[0]]), float(q[at[1]]), float(q[at[2]])))
        swing = math.hypot(swing_x, swing_y)
        low, high = ball.twist
        for excess, what, value, allowed in (
            (swing - ball.swing, 'swing', swing, f'at most {ball.swing:.4g}'),
            (max(low - twist, twist - high), 'twist', twist, f'{low:.4g} to {high:.4g}'),
        ):
            if excess > worst[0]:
                joints = ', '.join(ball.joints)
                sentence = f'the ball joint of {joints} would {what} to {value:.4g} rad, allowed: {allowed}'
                worst = excess, ball, sentence
    return worst


def ball_in_the_way(search: RandomRestarts, goal: Goal, seed: Array, deadline: float) -> Reason | None:
    """Return which ball's limits a solution without them exceeds, None if none is found.

    Such a solution shows what excludes it, not that there is no other. deadline: steady() at which
    the search gives up.
    """
    q = seed.copy()
    limits = _without_balls(search.arm)
    found = search.search(goal, q, deadline, min(RESTARTS, search.restarts), limits)
    excess, ball, sentence = beyond_a_ball(search.arm, q)
    if not found.solved or ball is None:
        return None
    return Reason(Cause.BALL_LIMIT, excess, sentence, ball.joints[0])


def _without_balls(arm: Arm) -> Array:
    """Return the limits (2, n) as they would be without those of the balls."""
    lower, upper = arm.lower.copy(), arm.upper.copy()
    for ball in arm.balls:
        for name, (low, high) in zip(ball.joints, ball.given, strict=True):
            j = arm.joint_names.index(name)
            span = (-ball.swing, ball.swing) if name in ball.swing_joints else ball.twist
            if ball.order is Order.PROPER and name not in ball.swing_joints:
                continue
            # Where the ball has narrowed a joint: other limits, from files of the user, stay.
            lower[j] = low if ball.declared and lower[j] == span[0] else lower[j]
            upper[j] = high if ball.declared and upper[j] == span[1] else upper[j]
    return frozen(np.array([lower, upper]))
