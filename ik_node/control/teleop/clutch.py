# SPDX-License-Identifier: Apache-2.0
"""Clutch: decides whether operator poses move the tool, and relates them to the pose of the tool."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.control.locks import OrderedLock, Rank
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.robot.settings import ArmSettings
from ik_node.control.robot.teleop_settings import NO_CLUTCH
from ik_node.solver.goal import Goal

JUMP = 0.25  # [m] between successive poses: tracking was lost, so operator and tool are related again
SILENCE = 1.0  # [s] between successive poses: operator or tool may have moved far in the meantime
NEAR = 0.1  # [m] from the tool within which the first pose without a clutch must be
OPEN = 'the clutch is open: teleoperation poses do not move the arm; true on ~/enable, repeated, closes it'
DROPPED = 'the clutch opened when the arm stopped: false, then true on ~/enable closes it'
FAR = f'pose ignored: without a clutch the first one must be within {NEAR} m of the tool'


class Clutch:
    """Open until it is enabled. Times are seconds of one clock.

    With the setting clutch: none, and until the first enable, poses are absolute and are accepted from the
    first one that is near the tool. Safe to enable from another thread.
    """

    def __init__(self) -> None:
        self._lock = OrderedLock(Rank.CLUTCH)
        self._used = False
        self._dropped = False  # an enable that only repeats the last one does not close it
        self._enabled, self._timeout = -math.inf, 0.0
        self._origin: Array | None = None  # T (4, 4) of the operator when the clutch closed
        self._tool = np.eye(4)  # and of the tool
        self._last, self._seen = np.zeros(3), -math.inf  # position and time of the previous pose
        self.began = False  # the last goal was the first one since the clutch closed
        self.why = ''  # why the last pose was ignored; empty if it was accepted

    def enable(self, closed: bool, time: float, timeout: float) -> None:
        """Close it for timeout [s] from time on, or open it."""
        with self._lock:
            if not (closed and self._repeats(time)):
                self._origin, self._dropped = None, False
            self._used = True
            self._enabled, self._timeout = time if closed else -math.inf, timeout

    def drop(self) -> None:
        """Open it, as after a stop: the operator has to let go, and to close it again."""
        with self._lock:
            self._origin, self._dropped = None, True

    def _repeats(self, time: float) -> bool:
        # A clock that is set back must not keep it closed for longer.
        return abs(time - self._enabled) <= self._timeout

    def _closed(self, time: float) -> bool:
        return not self._dropped and self._repeats(time)

    def _absolute(self, settings: ArmSettings) -> bool:
        return settings.clutch == NO_CLUTCH and not self._used

    def engaged(self, time: float, settings: ArmSettings) -> bool:
        """Whether the arm follows the operator: a pose was accepted, and the clutch has not opened since."""
        with self._lock:
            return self._origin is not None and (self._absolute(settings) or self._closed(time))

    def goal(self, pose: Array, model: ArmModel, q: Array, time: float, settings: ArmSettings) -> Goal | None:
        """Return the goal for pose T (4, 4), of the tip in the base link; None if the pose is ignored.

        q (n,): current joint positions.
        """
        with self._lock:
            return self._goal(pose, model, q, time, settings)

    def _goal(
        self, pose: Array, model: ArmModel, q: Array, time: float, settings: ArmSettings
    ) -> Goal | None:
        self.began, self.why = False, ''
        absolute = self._absolute(settings)
        if not (absolute or self._closed(time)):
            self._origin, self.why = None, DROPPED if self._dropped and self._repeats(time) else OPEN
            return None
        begin = self._origin
        moved = float(np.linalg.norm(pose[:3, 3] - self._last))
        if begin is None or moved > JUMP or not 0.0 <= time - self._seen <= SILENCE:
            tool = tool_pose(model, q)
            if absolute and np.linalg.norm(model.pose_goal(pose).position - tool[:3, 3]) > NEAR:
                self._origin, self.why = None, FAR
                return None
            self.began = True
            begin, self._tool = pose.copy(), tool
            self._origin = begin
        self._last, self._seen = pose[:3, 3].copy(), time
        if absolute:
            return model.pose_goal(pose)
        turn = pose[:3, :3] @ begin[:3, :3].T
        position = self._tool[:3, 3] + settings.position_scale * (pose[:3, 3] - begin[:3, 3])
        return Goal(position, turn @ self._tool[:3, 2], turn @ self._tool[:3, 0])


def tool_pose(model: ArmModel, q: Array) -> Array:
    """Return the pose T (4, 4) of the tool at q (n,): x its lateral axis, z its axis, at the tool point."""
    point, axis, lateral = model.arm.frames(q)[-3:]
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = lateral, np.cross(axis, lateral), axis, point
    return T
