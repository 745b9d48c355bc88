"""Clutch: hand poses that count relative to where hand and tool were when it was closed."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.control.arm_model import ArmModel
from ik_node.solver.goal import Goal

JUMP = 0.25  # [m] from one hand pose to the next: the tracker has lost the hand, so the clutch closes anew


class Clutch:
    """Without a single enable, hand poses are taken as they are. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._used = False
        self._closed_until = -math.inf
        self._hand: Array | None = None  # T (4, 4) of the hand when the clutch was closed
        self._tool = np.eye(4)  # and of the tool
        self._last = np.zeros(3)  # where the hand was before
        self.anew = False  # the last goal was the first one after closing: it is where the tool is

    def enable(self, closed: bool, time: float, timeout: float) -> None:
        """Close it for timeout [s] from time on, or open it."""
        self._used = True
        if not closed or time > self._closed_until:
            self._hand = None
        self._closed_until = time + timeout if closed else -math.inf

    def engaged(self, time: float) -> bool:
        """Whether the arm follows the hand: a pose has come since it was closed."""
        return not self._used or (time <= self._closed_until and self._hand is not None)

    def goal(self, hand: Array, model: ArmModel, q: Array, time: float, scale: float) -> Goal | None:
        """Return what hand, the pose T (4, 4) of the tip in the base link, asks for; None while it is open.

        q (n,): where the arm is. scale: metres of the tool per metre of the hand.
        """
        self.anew = False
        if not self._used:
            return model.pose_goal(hand)
        if time > self._closed_until:
            self._hand = None
            return None
        begin = self._hand  # enable, which runs in another thread, may drop it meanwhile
        if begin is None or np.linalg.norm(hand[:3, 3] - self._last) > JUMP:
            self.anew = True
            begin, self._tool = hand.copy(), tool_pose(model, q)
            self._hand = begin
        self._last = hand[:3, 3].copy()
        turn = hand[:3, :3] @ begin[:3, :3].T
        position = self._tool[:3, 3] + scale * (hand[:3, 3] - begin[:3, 3])
        return Goal(position, turn @ self._tool[:3, 2], turn @ self._tool[:3, 0])


def tool_pose(model: ArmModel, q: Array) -> Array:
    """Return the pose T (4, 4) of the tool at q (n,): x its lateral axis, z its axis, at the tool point."""
    point, axis, lateral = model.arm.frames(q)[-3:]
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = lateral, np.cross(axis, lateral), axis, point
    return T
