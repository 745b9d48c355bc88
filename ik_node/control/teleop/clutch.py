# SPDX-License-Identifier: Apache-2.0
"""Clutch: decides whether operator poses move the tool, and relates them to the pose of the tool."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.control.locks import OrderedLock, Rank
from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.settings.teleop import NO_CLUTCH
from ik_node.control.state.snapshot import Snapshot
from ik_node.control.teleop.pose_distance import angle_between, distant, turns_tool
from ik_node.solver.goal import Goal

# [m] and [rad] between successive poses: tracking was lost, so operator and tool are related again
JUMP, TURN = 0.25, 1.0
SILENCE = 1.0  # [s] between successive poses: operator or tool may have moved far in the meantime
OPEN = 'the clutch is open: teleoperation poses do not move the arm; true on ~/enable, repeated, closes it'
DROPPED = 'the clutch opened when the arm stopped or was repositioned: false, then true on ~/enable closes it'


class Clutch:
    """Open until it is enabled. Times are seconds of one clock.

    With the setting clutch: none, and until the first enable, poses are absolute and are accepted from the
    first one that is near the tool. Safe to enable from another thread.
    """

    def __init__(self) -> None:
        self._lock = OrderedLock(Rank.CLUTCH)
        self._used = False
        self._dropped = False  # a true that only repeats the last one does not close it
        self._hears_false = False  # a program sends false too, so its silence does not let go of the button
        # Of the arm, as in Snapshot, when it was last noticed:
        self._interruptions, self._goals = 0, 0
        self._model: ArmModel | None = None
        self._enabled, self._timeout = -math.inf, 0.0
        self._origin: Array | None = None  # T (4, 4) of the operator when the clutch closed
        self._tool = np.eye(4)  # and of the tool
        self._last, self._seen = np.eye(4), -math.inf  # the previous pose, and its time
        self.began = False  # the last goal was the first one since the clutch closed
        self.why = ''  # why the last pose was ignored; empty if it was accepted

    def enable(self, closed: bool, time: float, timeout: float, interruptions: int) -> None:
        """Close it for timeout [s] from time on, or open it. interruptions: of the arm, as in Snapshot."""
        with self._lock:
            if not closed:
                self._origin, self._dropped, self._hears_false = None, False, True
            elif self._released(time):
                self._origin, self._dropped = None, False
            elif interruptions != self._interruptions:
                self.drop()
            elif not self._repeats(time):
                self._origin = None
            self._interruptions, self._used = interruptions, True
            self._enabled, self._timeout = time if closed else -math.inf, timeout

    def notice(self, arm: Snapshot) -> None:
        """Open it if the arm was interrupted; reset the clutch reference if a goal has moved the arm."""
        with self._lock:
            if arm.interruptions != self._interruptions:
                self._interruptions = arm.interruptions
                self.drop()
            if arm.goals != self._goals or arm.model is not self._model:
                self._goals, self._model, self._origin = arm.goals, arm.model, None

    def loosen(self) -> None:
        """Reset the clutch reference at the next pose, because something else moves the arm."""
        with self._lock:
            self._origin = None

    def drop(self) -> None:
        """Open it, as after a stop: the operator has to let go, and to close it again."""
        with self._lock:
            self._origin, self._dropped = None, True

    def _released(self, time: float) -> bool:
        """Whether a true at a time is a new press of the button: see the docs on teleoperation."""
        silent = time - self._enabled > self._timeout  # a clock that is set back releases nothing
        return self._enabled == -math.inf or (silent and not self._hears_false)

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

    def goal(self, pose: Array, arm: Snapshot, time: float, settings: ArmSettings) -> Goal | None:
        """Return the goal for pose T (4, 4), of the tip in the base link; None if the pose is ignored."""
        with self._lock:
            self.notice(arm)
            return self._goal(pose, arm, time, settings)

    def _goal(self, pose: Array, arm: Snapshot, time: float, settings: ArmSettings) -> Goal | None:
        self.began, self.why = False, ''
        absolute = self._absolute(settings)
        if not (absolute or self._closed(time)):
            self._origin, self.why = None, DROPPED if self._dropped and self._repeats(time) else OPEN
            return None
        begin = self._origin
        moved = float(np.linalg.norm(pose[:3, 3] - self._last[:3, 3]))
        turned = angle_between(self._last, pose) if turns_tool(arm.model.arm, arm.position) else 0.0
        if begin is None or moved > JUMP or turned > TURN or not 0.0 <= time - self._seen <= SILENCE:
            tool = tool_pose(arm.model, arm.position)
            self.why = (
                distant(arm.model.pose_goal(pose), tool, arm.model.arm, arm.position) if absolute else ''
            )
            if self.why:
                self._origin = None
                return None
            self.began = True
            begin, self._tool = pose.copy(), tool
            self._origin = begin
        self._last, self._seen = pose.copy(), time
        if absolute:
            return arm.model.pose_goal(pose)
        turn = pose[:3, :3] @ begin[:3, :3].T
        position = self._tool[:3, 3] + settings.position_scale * (pose[:3, 3] - begin[:3, 3])
        return Goal(position, turn @ self._tool[:3, 2], turn @ self._tool[:3, 0])


def tool_pose(model: ArmModel, q: Array) -> Array:
    """Return the pose T (4, 4) of the tool at q (n,): x its lateral axis, z its axis, at the tool point."""
    point, axis, lateral = model.arm.frames(q)[-3:]
    T = np.eye(4)
    T[:3, 0], T[:3, 1], T[:3, 2], T[:3, 3] = lateral, np.cross(axis, lateral), axis, point
    return T
