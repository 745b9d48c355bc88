# SPDX-License-Identifier: Apache-2.0
"""Clutch: whether the poses of a hand count, and relative to where hand and tool were when they began to."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.control.locks import OrderedLock, Rank
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.robot.settings import ArmSettings
from ik_node.control.robot.teleop_settings import NO_CLUTCH
from ik_node.solver.goal import Goal

JUMP = 0.25  # [m] from one hand pose to the next: the tracker has lost the hand, so it counts anew
SILENCE = 1.0  # [s] from one hand pose to the next: hand or tool may have moved far meanwhile
NEAR = 0.1  # [m] from the tool within which a first pose without a clutch has to be
OPEN = 'the clutch is open: teleoperation poses do not move the arm; true on ~/enable, repeated, closes it'
FAR = f'the hand is not within {NEAR} m of the tool: without a clutch the arm does not go to a far first pose'


class Clutch:
    """Open until it is enabled. Times are seconds of one clock.

    With the setting clutch: none, and until the first enable, poses are absolute and count from the first one
    that is near the tool. Safe to enable from another thread.
    """

    def __init__(self) -> None:
        self._lock = OrderedLock(Rank.CLUTCH)
        self._used = False
        self._enabled, self._timeout = -math.inf, 0.0
        self._hand: Array | None = None  # T (4, 4) of the hand when its poses began to count
        self._tool = np.eye(4)  # and of the tool
        self._last, self._seen = np.zeros(3), -math.inf  # where and when the hand was before
        self.anew = False  # the last goal was the first one
        self.why = ''  # the last pose does not count; empty if it does

    def enable(self, closed: bool, time: float, timeout: float) -> None:
        """Close it for timeout [s] from time on, or open it."""
        with self._lock:
            if not (closed and self._closed(time)):
                self._hand = None
            self._used = True
            self._enabled, self._timeout = time if closed else -math.inf, timeout

    def _closed(self, time: float) -> bool:
        # A clock that is set back must not keep it closed for longer.
        return abs(time - self._enabled) <= self._timeout

    def _absolute(self, settings: ArmSettings) -> bool:
        return settings.clutch == NO_CLUTCH and not self._used

    def engaged(self, time: float, settings: ArmSettings) -> bool:
        """Whether the arm follows the hand: a pose counted, and the clutch has not opened since."""
        with self._lock:
            return self._hand is not None and (self._absolute(settings) or self._closed(time))

    def goal(self, hand: Array, model: ArmModel, q: Array, time: float, settings: ArmSettings) -> Goal | None:
        """Return what hand, the pose T (4, 4) of the tip in the base link, asks for; None: it does not count.

        q (n,): where the arm is.
        """
        with self._lock:
            return self._goal(hand, model, q, time, settings)

    def _goal(
        self, hand: Array, model: ArmModel, q: Array, time: float, settings: ArmSettings
    ) -> Goal | None:
        self.anew, self.why = False, ''
        absolute = self._absolute(settings)
        if not (absolute or self._closed(time)):
            self._hand, self.why = None, OPEN
            return None
        begin = self._hand
        moved = float(np.linalg.norm(hand[:3, 3] - self._last))
        if begin is None or moved > JUMP or not 0.0 <= time - self._seen <= SILENCE:
            tool = tool_pose(model, q)
            if absolute and np.linalg.norm(model.pose_goal(hand).position - tool[:3, 3]) > NEAR:
                self._hand, self.why = None, FAR
                return None
            self.anew = True
            begin, self._tool = hand.copy(), tool
            self._hand = begin
        self._last, self._seen = hand[:3, 3].copy(), time
        if absolute:
            return model.pose_goal(hand)
        turn = hand[:3, :3] @ begin[:3, :3].T
        position = self._tool[:3, 3] + settings.position_scale * (hand[:3, 3] - begin[:3, 3])
        return Goal(position, turn @ self._tool[:3, 2], turn @ self._tool[:3, 0])


def tool_pose(model: ArmModel, q: Array) -> Array:
    """Return the pose T (4, 4) of the tool at q (n,): x its lateral axis, z its axis, at the tool point."""
    point, axis, lateral = model.arm.frames(q)[-3:]
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = lateral, np.cross(axis, lateral), axis, point
    return T
