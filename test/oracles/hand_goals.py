# SPDX-License-Identifier: Apache-2.0
"""What a hand asks for through its clutch, and the best that an arm can do about it: the judge's own."""

from __future__ import annotations

import numpy as np

from oracles.chain import Array
from oracles.hand_paths import HandPath, Pose
from oracles.reference import HASTY, PATIENT, ROUNDS, Reference, descend_all

JUMP = 0.25  # [m] between two poses: the hand is elsewhere, and counts from where the tool is
AS_GOOD = 1e-3  # [m] by which a place may be farther from the hand than the nearest one: an arm must not hop
RIVALS = 20  # descents that are carried on
LOST = 5e-3  # [m] by which a descent may be worse than the best and still be carried on


class HandGoals:
    """The goals of one hand path for one arm; the clutch takes hold where the tool is at that time."""

    def __init__(self, path: HandPath, scale: float) -> None:
        self._path, self._scale = path, scale
        self._holds: list[tuple[float, Array]] = []  # since when, and the place of the goal less the hand's
        self._closed = False
        self._last = np.zeros(3)
        self._turn, self._axis = np.eye(3), np.zeros(3)  # of the hand and of the tool when it took hold

    def take(self, pose: Pose, closed: bool, point: Array, axis: Array) -> bool:
        """Take a pose that arrives while the tool is at point (3,) with its axis (3,).

        Returns whether the clutch takes hold.
        """
        hand = pose.T[:3, 3]
        holds = closed and (not self._closed or float(np.linalg.norm(hand - self._last)) > JUMP)
        if holds:
            self._holds.append((pose.arrival, point - self._scale * hand))
            self._turn, self._axis = pose.T[:3, :3], axis
        self._closed, self._last = closed, hand
        return holds

    def now(self, pose: Pose) -> tuple[Array, Array]:
        """Return the position and the direction, (3,) each, that a pose asks for."""
        return (
            self._holds[-1][1] + self._scale * pose.T[:3, 3],
            pose.T[:3, :3] @ self._turn.T @ self._axis,
        )

    def at(self, time: float) -> Array:
        """Return the position (3,) asked for at a time, without noise and latency."""
        offset = next(offset for since, offset in reversed(self._holds) if since <= time)
        return np.asarray(offset + self._scale * self._path.place(time))


def nearest_places(reference: Reference, goal: Array, start: Array, restarts: int) -> tuple[float, Array]:
    """Return the least distance [m] of the tool from goal (3,), and tool points (k, 3) that are as good.

    start (n,): one more start, so that the arm is never better than the best.
    """
    q = np.vstack([start, reference.starts(restarts, 0)])
    target, alone = np.concatenate([goal, [0.0, 0.0, 1.0]]), np.zeros(1)
    errors = descend_all(*reference.model, reference.limits, target, alone, HASTY, q)[:, 0]
    best = np.argsort(errors, kind='stable')[:RIVALS]
    q = q[best[errors[best] <= errors[best[0]] + LOST]]
    for _ in range(ROUNDS):
        errors = descend_all(*reference.model, reference.limits, target, alone, PATIENT, q)[:, 0]
    points, _ = reference.chain.fk(q[errors <= errors.min() + AS_GOOD])
    return float(errors.min()), points
