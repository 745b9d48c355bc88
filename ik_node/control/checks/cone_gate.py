# SPDX-License-Identifier: Apache-2.0
"""ConeGate: the limits of ball joints, for whole motions before they start and for every setpoint."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.model.ball import Ball, Order
from ik_node.model.robot import Robot

ROUNDING = 1e-6  # [rad] by which a motion may exceed a limit
SLACK = 1e-3  # [rad] by which a setpoint may: motions are checked at other times


class ConeGate:
    """Compares joint positions with the cones and twist limits of ball joints.

    A ball joint that starts outside may stay there or move back, but not farther out.
    """

    def __init__(self, balls: Sequence[Ball], joint_names: Sequence[str]) -> None:
        """balls: the ball joints with limits of their own."""
        self._balls = [(ball, np.array([joint_names.index(name) for name in ball.joints])) for ball in balls]
        self._allowed = math.inf  # excess of the last setpoint, until there is one

    @classmethod
    def of(cls, robot: Robot, joint_names: Sequence[str]) -> ConeGate | None:
        """Return the gate of these joints of a robot, None if no ball joint has limits of its own."""
        balls = [ball for ball in robot.balls if ball.limited and set(ball.joints) <= set(joint_names)]
        return cls(balls, joint_names) if balls else None

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised at rest."""
        self._allowed = math.inf

    def keeps(self, places: Array) -> bool:
        """Whether a motion along positions (k, n) respects the limits."""
        return self.rejection(places) is None

    def rejection(
        self, places: Array, slack: float = ROUNDING, allowed: float = 0.0
    ) -> tuple[int, str] | None:
        """Return the first of positions (k, n) that is farther outside than the initial one, and why.

        slack [rad]: more than that. allowed [rad]: excess that is allowed in any case.
        """
        first: tuple[int, str] | None = None
        for ball, columns in self._balls:
            values = places[:, columns]
            beyond = _excess(ball, values)
            outside = beyond > max(float(beyond[0]), allowed) + slack
            if outside.any():
                k = int(outside.argmax())
                if first is None or k < first[0]:
                    first = k, _sentence(ball, values[k])
        return first

    def outside(self, q: Array) -> str | None:
        """Return why positions q (n,) are not allowed as a target, None if they are."""
        for ball, columns in self._balls:
            if _excess(ball, q[None, columns])[0] > ROUNDING:
                return _sentence(ball, q[columns])
        return None

    def reject(self, q: Array) -> str | None:
        """Return why a setpoint q (n,) must not be published, else None."""
        excess = max(float(_excess(ball, q[None, columns])[0]) for ball, columns in self._balls)
        if excess > max(self._allowed, 0.0) + SLACK:
            return self.outside(q)
        self._allowed = max(min(self._allowed, excess), 0.0)
        return None

    def reject_ahead(self, places: Array) -> tuple[int, str] | None:
        """Return which of the setpoints (k, n) of a trajectory is rejected, and why."""
        return self.rejection(places, SLACK, self._allowed if math.isfinite(self._allowed) else 0.0)


def _excess(ball: Ball, values: Array) -> NDArray[np.float64]:
    """Return by how much [rad] a ball at values (k, 3) of its joints is outside its limits, 0 inside."""
    if ball.order is Order.PROPER:
        twist = values[:, 0] + ball.hand * values[:, 2]
        return np.maximum(np.maximum(twist - ball.twist[1], ball.twist[0] - twist), 0.0)
    a, b = values[:, :2].T if ball.order is Order.TWIST_LAST else values[:, 1:].T
    half = np.sin(a / 2) ** 2 + np.cos(a) * np.sin(b / 2) ** 2
    return np.maximum(2.0 * np.arcsin(np.sqrt(np.clip(half, 0.0, 1.0))) - ball.swing, 0.0)


def _sentence(ball: Ball, values: Array) -> str:
    swing_x, swing_y, twist = ball.swing_twist((float(values[0]), float(values[1]), float(values[2])))
    joints = ', '.join(ball.joints)
    if ball.order is Order.PROPER:
        return (
            f'ball joint {joints}: twist {twist:.6g} rad, allowed: {ball.twist[0]:.6g} to {ball.twist[1]:.6g}'
        )
    swing = math.hypot(swing_x, swing_y)
    return f'ball joint {joints}: swing {swing:.6g} rad, allowed: {ball.swing:.6g}'
