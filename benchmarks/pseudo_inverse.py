# SPDX-License-Identifier: Apache-2.0
"""The usual way to follow a hand: a damped pseudo-inverse of the Jacobian, clamped to the limits."""

from __future__ import annotations

import numpy as np

from benchmarks.chain import Array, Chain
from ik_node.control.robot.motion_limits import MotionLimits

# The closest to the best place, and calm, of 17 sets on two other paths of 20 s for each arm: gain 3 to 30,
# damping 0.02 to 0.4, weight 0.03 to 0.3.
GAIN = 3.0  # [1/s] of the errors
DAMPING = 0.1  # [m]
WEIGHT = 0.1  # [m/rad] of the direction


class PseudoInverse:
    """Velocities of the joints from the errors of position and direction (Wampler 1986).

    All velocities are scaled down together to the velocity limits, then each changes by at most what the
    acceleration limits allow, and is low enough to brake before the position limits.
    """

    def __init__(self, chain: Chain, limits: MotionLimits, q: Array) -> None:
        self._chain, self._limits = chain, limits
        self.q, self.velocity = q.copy(), np.zeros(len(q))

    def step(self, goal: tuple[Array, Array] | None, dt: float) -> None:
        """Move for dt [s] towards a goal (position, direction); None: come to rest."""
        wanted = np.zeros(len(self.q)) if goal is None else self._wanted(*goal)
        limits = self._limits
        wanted /= max(1.0, float((np.abs(wanted) / limits.velocity).max()))
        most = limits.acceleration * dt
        velocity = self.velocity + np.clip(wanted - self.velocity, -most, most)
        room = np.maximum(limits.upper - self.q, 0.0), np.maximum(self.q - limits.lower, 0.0)
        up, down = (_braked(distance, limits.acceleration, dt) for distance in room)
        self.velocity = np.clip(velocity, -down, up)
        self.q = np.clip(self.q + self.velocity * dt, limits.lower, limits.upper)

    def _wanted(self, position: Array, direction: Array) -> Array:
        chain = self._chain
        turn, place, axes, points = (part[0] for part in chain.frames(self.q))
        tool, axis = place + turn @ chain.tool_point, turn @ chain.tool_axis
        J = np.zeros((6, chain.n))
        for i, joint in enumerate(axes):
            column = (
                np.concatenate([joint, np.zeros(3)])
                if chain.slides[i]
                else np.concatenate([np.cross(joint, tool - points[i]), WEIGHT * joint])
            )
            J[:, chain.driver[i]] += chain.ratio[i] * column
        error = np.concatenate([position - tool, WEIGHT * np.cross(axis, direction)])
        return J.T @ np.linalg.solve(J @ J.T + DAMPING**2 * np.eye(6), GAIN * error)


def _braked(room: Array, acceleration: Array, dt: float) -> Array:
    """Return the speed (n,) from which a joint stops within room (n,), in steps of dt."""
    step = acceleration * dt
    return np.sqrt(step**2 / 4.0 + 2.0 * acceleration * room) - step / 2.0
