# SPDX-License-Identifier: Apache-2.0
"""TeleopController: operator commands to an ArmController. It uses neither ROS nor a clock."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.control.controller.controller import ArmController
from ik_node.control.robot.motion_limits import limits_of_motion
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.report import Level
from ik_node.control.state.snapshot import Snapshot
from ik_node.control.state.states import READY, State
from ik_node.control.teleop.clutch import Clutch
from ik_node.control.teleop.jog_kinematics import JogKinematics
from ik_node.control.teleop.pose_smoother import PoseSmoother
from ik_node.errors import InputError
from ik_node.solver.goal import Goal

MOST_PERIODS = 2.0  # of motion per step: after a stall the tool continues without a jump
PAUSE = 0.5  # [s] without commands, after which the next one starts at the present position
FASTEST = 0.95  # share of the velocity limits that an operator may use; the rest serves to catch up
AHEAD = 0.02  # [s] between the poses from which joint velocities and accelerations are computed


class TeleopController:
    """Teleoperates an arm. Times are seconds of one clock; not thread-safe."""

    def __init__(self, controller: ArmController) -> None:
        self._controller = controller
        self.clutch = Clutch()
        self._poses = PoseSmoother()
        self._arm: JogKinematics | None = None
        self._stepped = -math.inf  # time of the last step
        self.ignored = ''  # why the last operator pose was ignored; empty if it was accepted

    @property
    def held_back(self) -> bool:
        """Whether the last step ended at a limit or at the edge of the workspace."""
        return self._arm is not None and self._arm.held_back

    def enable(self, closed: bool, time: float, settings: ArmSettings) -> None:
        """Take a message of the clutch. Safe to call from another thread."""
        self.clutch.enable(closed, time, settings.clutch_timeout, self._controller.interruptions)

    def ready(self) -> Snapshot:
        """Return the state of the arm. Raises InputError if it does not accept commands."""
        snapshot = self._controller.snapshot()
        if snapshot is not None:
            self.clutch.notice(snapshot)
        if snapshot is None or snapshot.state not in READY:
            raise InputError(self._controller.condition()[1])
        return snapshot

    def end(self) -> None:
        """Bring the arm to rest and end teleoperation."""
        self.ignored = ''
        self._rest()

    def _rest(self) -> None:
        self._arm = None
        self._poses.clear()
        self._controller.end_teleoperation()

    def _begun(self, arm: Snapshot, now: float, period: float) -> tuple[JogKinematics, float]:
        """Return the teleoperation of arm and the time since its last step [s]."""
        steered = arm.state is State.TELEOPERATED and 0.0 <= now - self._stepped <= PAUSE
        if self._arm is None or not steered:
            self._arm = JogKinematics(arm.model.solver, arm.position)
            self._stepped = now - period
        dt = min(now - self._stepped, MOST_PERIODS * period)
        self._stepped = now
        return self._arm, dt

    def twist(self, arm: Snapshot, linear: Array, angular: Array, now: float, settings: ArmSettings) -> bool:
        """Move the tool at linear [m/s] and angular [rad/s] velocity, (3,) in the base link, until now.

        Returns whether the arm moves.
        """
        jog, dt = self._begun(arm, now, 1.0 / settings.publish_rate)
        if dt <= 0.0:
            return False
        if linear.any() or angular.any():
            self.clutch.loosen()
        fastest = settings.speed_scaling * arm.model.arm.velocity
        return self._controller.steer(jog.twist(linear, angular, dt, fastest), now, since=arm.interruptions)

    def jog(self, arm: Snapshot, velocities: Array, now: float, settings: ArmSettings) -> bool:
        """Move the joints at velocities (arm.n,) until now. Returns whether the arm moves."""
        jog, dt = self._begun(arm, now, 1.0 / settings.publish_rate)
        if velocities.any():
            self.clutch.loosen()
        return dt > 0.0 and self._controller.steer(jog.jog(velocities, dt), now, since=arm.interruptions)

    def take(
        self, arm: Snapshot, pose: Array, received: float, stamp: float | None, settings: ArmSettings
    ) -> None:
        """Take an operator pose T (4, 4) of the tip in the base link, received at a time.

        stamp: when it was measured, None if unknown. A report states when acceptance of poses begins or ends.
        """
        goal = self.clutch.goal(pose, arm, received, settings)
        if self.clutch.why != self.ignored:
            self.ignored = self.clutch.why
            level = Level.WARN if self.ignored else Level.OK
            self._controller.tell(level, self.ignored or 'the arm follows the operator')
        if goal is None:
            return
        if self.clutch.began:
            self._arm = None
            self._poses.clear()
        self._poses.add(goal.packed, received, stamp)

    def follow(self, arm: Snapshot, now: float, settings: ArmSettings) -> bool:
        """Move to the present operator pose. Returns whether the arm moves."""
        if not (self.clutch.engaged(now, settings) and self._poses.known):
            if arm.state is State.TELEOPERATED and self._arm is not None:
                self._rest()
            return False
        teleoperation, dt = self._begun(arm, now, 1.0 / settings.publish_rate)
        if dt <= 0.0:
            return False
        limits = limits_of_motion(arm.model, arm.model.index, settings)
        fastest = FASTEST * limits.velocity
        # A new pose corrects the last estimate: too little room for that would look like a fast motion.
        q = teleoperation.reach(self._goal(now), max(dt, AHEAD), fastest, arm.position)
        after = teleoperation.ahead(self._goal(now + AHEAD), q, AHEAD, fastest)
        later = teleoperation.ahead(self._goal(now + 2.0 * AHEAD), after, AHEAD, fastest)
        velocity = np.clip((4.0 * after - 3.0 * q - later) / (2.0 * AHEAD), -fastest, fastest)
        hardest = limits.acceleration
        acceleration = np.clip((later - 2.0 * after + q) / AHEAD**2, -hardest, hardest)
        return self._controller.steer(q, now, (velocity, acceleration), arm.interruptions)

    def _goal(self, time: float) -> Goal:
        value = self._poses.at(time)
        direction, lateral = (part / np.linalg.norm(part) for part in (value[3:6], value[6:]))
        return Goal(value[:3], direction, lateral)
