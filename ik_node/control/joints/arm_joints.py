# SPDX-License-Identifier: Apache-2.0
"""ArmJoints: the commanded joints of a robot: those of the arm, and others that goals or settings name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ik_node.checks import Array
from ik_node.control.checks.arm_gates import ArmGates
from ik_node.control.checks.motion_check import CLEARANCE_EN_ROUTE, MotionCheck, places_of
from ik_node.control.checks.trajectory_gate import reject_trajectory
from ik_node.control.joints.commanded_joints import CommandedJoints
from ik_node.control.joints.feedback import Feedback
from ik_node.control.joints.following_error import FollowingError
from ik_node.control.joints.shared_robot import SharedRobot
from ik_node.control.motion.motion_ahead import motion_ahead
from ik_node.control.motion.motion_state import MotionState
from ik_node.control.motion.tool_pace import ToolPace
from ik_node.control.outputs.joint_trajectory import JointTrajectory
from ik_node.control.outputs.setpoint import Setpoint
from ik_node.control.outputs.trajectory_streamer import TrajectoryStreamer
from ik_node.control.robot.arm_model import JointModel
from ik_node.control.robot.motion_limits import limits_of_motion
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.settings.workspace import Workspace
from ik_node.control.state.target_plan import TargetPlan
from ik_node.errors import quoted

HAND_GUIDING_SHARE = 0.25  # of the velocity limits
CATCH_UP = 0.5  # share of the tolerance to which measurements must catch up before the arm continues
FAR = 0.1  # [rad or m]
PROMPT = 0.001, 0.01  # [m, rad] from its target within which a joint has arrived at once
ANNOUNCE_PERIOD = 0.1  # [s] between announcements of changes while the arm follows a moving target


class ArmJoints(CommandedJoints):
    """The joints that an arm commands, and their motion.

    motion_check: checks the motions of the arm. waiting: what a moving arm waits for, empty if nothing.
    """

    def __init__(
        self,
        model: JointModel,
        settings: ArmSettings,
        positions: Mapping[str, float],
        robot: SharedRobot,
    ) -> None:
        """Arguments as of CommandedJoints."""
        super().__init__(model, settings, positions, robot)
        self._following = FollowingError(model.joint_names, model.continuous, model.prismatic)
        self.waiting = ''
        self._goal = self.arm.target  # the last targets
        self.chased: Array | None = None  # position of the moving target that the arm follows
        self._plans: list[object] = []  # of all groups, at the last setpoint
        self._unchecked = False  # a stream of goals has ended: the motion to its last goal was not checked
        self._announced = -math.inf  # when the other arms were last told of a change [s]
        self._gates = ArmGates(model)
        self._ahead = partial(robot.ahead, self)  # future positions of the other arms
        self._set_limits()

    def take(self, model: JointModel, settings: ArmSettings) -> None:
        """Change to another model of the same joints, and its limits."""
        self._model, self._settings = model, settings
        for group in self.groups:
            group.limit(limits_of_motion(self._model, model.joints.indices(group.names), settings))
        self.arm.motion.set_blocks(model.blocks)
        self._gates.take(model)
        self._set_limits()

    def initialise_from_measurement(self, positions: Mapping[str, float]) -> None:
        """Initialise the arm at rest at measured positions; others go to without_position."""
        self.chased, self.waiting = None, ''
        self._gates.restart()
        super().initialise_from_measurement(positions)

    def forget_positions(self) -> None:
        """Forget the positions of the joints."""
        self.chased, self.waiting = None, ''
        self._gates.restart()
        self._following.restart()
        super().forget_positions()

    def _set_limits(self) -> None:
        settings = self._settings
        self._following.set_limits(self._model.following_tolerance(settings), settings.following_delay)
        tools, rates = self._model.tools(), settings.tool_rates()
        workspaces = [Workspace.of(tool.arm, settings.workspace) for tool, _ in tools]
        self._gates.set_limits(workspaces, *rates)
        arms = [(tool.arm, columns) for tool, columns in tools]
        self.arm.motion.set_pace(ToolPace(arms, *rates, self._model.rolls))
        self.arm.motion.keeps = None if self._gates.cones is None else self._gates.cones.keeps
        self.motion_check = MotionCheck(self._model, workspaces, self._ahead)
        checked = any(workspace.given for workspace in workspaces) or self._model.collision is not None
        self.arm.motion.guard = self._may_pass if checked else None

    def _may_pass(self, low: Array, high: Array, places: Callable[[], Array]) -> bool:
        """Whether motion_check allows a motion; other joints at their last positions. See JointMotion."""
        return self.motion_check.is_clear(low, high, self._values) or not self.motion_check.rejection(
            places(), self._values
        )

    @property
    def far_behind(self) -> bool:
        """Whether the arm is still far from its target."""
        return bool((np.abs(self.arm.target - self.arm.motion.position) > FAR).any())

    def pursue(self, plan: TargetPlan, feedback: Feedback, fresh: Mapping[str, float] | None) -> None:
        """Move to the targets of a plan. Joints off the arm start where they are measured, else at rest.

        fresh: recent measurements, None if joints need not be measured. Raises InputError for a joint that
        must be measured first, and for a path that does not start at the present position.
        """
        assert plan.joints is not None
        if plan.path is not None:
            self.chased = None
            self.arm.motion.follow_path(plan.path)
            return
        self._add(plan.others, feedback, fresh)
        for name, target in plan.others.items():
            self._others[name].go_to(np.array([target]))
        self.go_to(plan.joints)

    def go_to(self, joints: Array) -> None:
        """Move the joints of the arm to joints (k,); NaN: a joint keeps its target."""
        if not np.isnan(joints).all():
            self.arm.go_to(joints)
        self._goal = joints

    def chase(self, target: MotionState | None, smoothing: float) -> None:
        """Follow a moving target with the next setpoint; None: move to the last target of go_to."""
        if self.waiting:
            return
        if target is not None:
            self.arm.motion.follow(target, smoothing)
        elif self.chased is not None:
            self.arm.go_to(self._goal)
        self.chased = None if target is None else target.position

    def blocked(self) -> str | None:
        """Return why the arm must not continue; None if it may.

        Checked when another arm has changed its motion, and when a stream of goals has ended.
        """
        motion = self.arm.motion
        changed = self._robot.take_change(self)
        if self._model.collision is None or motion.follows or motion.braking or not motion.moving:
            return None  # a stream is checked at every step
        unchecked, self._unchecked = self._unchecked or changed, False
        if not unchecked:
            return None
        return self.motion_check.rejection(places_of(motion.twin()), self._values, CLEARANCE_EN_ROUTE)

    def brake(self) -> None:
        """Stop as soon as the limits allow, and forget the goal."""
        self.chased, self.waiting = None, ''
        for group in self.groups:
            group.stop()

    def keep_back(self, feedback: Feedback) -> str | None:
        """Brake and wait while measurements are so late that the command is too far ahead of them.

        Return why the arm must stop instead: a path cannot be resumed, or the motion would collide.
        """
        share = CATCH_UP if self.waiting else 1.0
        late = self._following.late(share) if feedback.expected else None
        if late is not None and not self.waiting:
            if self.arm.motion.on_path:
                return late
            self.waiting = late
            for group in self.groups:
                group.wait()
        elif late is None and self.waiting:
            self.waiting = ''
            for group in self.groups:
                group.go_on()
            if self._model.collision is not None and self.arm.motion.moving:
                return self.motion_check.rejection(
                    places_of(self.arm.motion.twin()), self._values, CLEARANCE_EN_ROUTE
                )
        return None

    def guide(self) -> None:
        """Use the velocity limits of hand guiding."""
        limits = limits_of_motion(self._model, self._model.index, self._settings)
        self.arm.limit(limits, HAND_GUIDING_SHARE)

    def follow(self, positions: Mapping[str, float]) -> None:
        """Move to measured positions."""
        self.arm.go_to(np.array([positions.get(name, np.nan) for name in self.arm.names]))

    def step(
        self,
        time: float,
        dt: float,
        feedback: Feedback,
        caught_up: float = 0.0,
        trajectories: TrajectoryStreamer | None = None,
    ) -> tuple[Setpoint | None, str | None]:
        """Advance by dt [s] to time [s]; return the setpoint, and why the arm must stop, else None.

        There is no setpoint if it, or the braking trajectory, is rejected. If another trajectory is rejected,
        the setpoint has none, and the controller stays on the previous one until the next setpoint brakes.
        The setpoint has all joints that were ever commanded; those of the whole robot, for display, if no
        joint is measured and no other node publishes joints. caught_up: time [s] before dt during which the
        plans advanced without setpoints. trajectories: for outputs that run plans.
        """
        rejection: str | None = None
        last = [group.motion.position for group in self.groups]
        motion = self.arm.motion
        followed = motion.follows
        for group in self.groups:
            rejection = group.step(dt, caught_up) or rejection
        self._unchecked |= followed and not motion.follows and not motion.braking
        self._following.commanded(time, motion.position)
        before, self._plans = self._plans, [group.motion.plan for group in self.groups]
        replanned = any(plan is not None and plan not in before for plan in self._plans)
        # Each step after a moving target was checked against the plans of the other arms, so they may wait.
        if (followed and not motion.follows) or (
            replanned and not (motion.follows and 0.0 <= time - self._announced < ANNOUNCE_PERIOD)
        ):
            self._announced = time
            self._robot.announce_change(self)
        values, rates = self.values(feedback)
        self._values = values
        rejection = rejection or self._gates.reject(motion, dt + caught_up, values)
        if rejection is not None:
            for group, position in zip(self.groups, last, strict=True):
                group.reset(position)  # at the last setpoint: no later one was sent
            self._robot.announce_change(self)
            return None, f'a setpoint was not published: {rejection}'
        whole = feedback.alone and not feedback.expected
        setpoint = self._setpoint(time, values, rates, whole, replanned)
        if trajectories is None:
            return setpoint, None
        trajectories.note(setpoint, self._states(setpoint), dt + caught_up, followed and caught_up > 0.0)
        return self._with_trajectory(setpoint, trajectories, feedback)

    def _with_trajectory(
        self, setpoint: Setpoint, trajectories: TrajectoryStreamer, feedback: Feedback
    ) -> tuple[Setpoint | None, str | None]:
        """Return a setpoint with the trajectory to send with it, if any; see step."""
        if not trajectories.due(setpoint, self.moving, self.braking):
            return setpoint, None
        if trajectories.astray and not self._fall_back(trajectories.resume()):
            return None, 'trajectory dropped: the controller has left the motion'
        motions = [(group.names, group.motion) for group in self.groups]
        trajectory = trajectories.next(setpoint, motion_ahead(motions))
        checks = self._gates.checks(self._values, self._ahead)
        rejection = reject_trajectory(trajectory, [group.gate for group in self.groups], checks)
        if rejection is not None:
            return None if self.braking else setpoint, f'trajectory dropped: {rejection}'
        if setpoint.time >= trajectories.ends and self._elsewhere(trajectory, feedback):
            trajectories.withhold()  # following_error() reports an arm that does not follow
            return setpoint, None
        trajectories.sent(trajectory)
        return replace(setpoint, trajectory=trajectory), None

    def _elsewhere(self, trajectory: JointTrajectory, feedback: Feedback) -> bool:
        """Whether the arm is not at the start of a trajectory for a controller at rest."""
        if not feedback.expected:
            return False
        starts = dict(zip(trajectory.names, trajectory.positions[0].tolist(), strict=True))
        begin = np.array([starts[name] for name in self.arm.names])
        return self._following.elsewhere(self._measured(feedback), begin) is not None

    def _fall_back(self, states: Mapping[str, tuple[float, float, float]]) -> bool:
        """Continue from the state of a controller, by joint name; return whether all of its joints can."""
        if not self._go_on_from(states):
            return False
        self._gates.go_on_from(self.arm.motion.position)
        self._plans = [group.motion.plan for group in self.groups]
        return True

    def lacking(self, feedback: Feedback, tolerance: Array) -> str | None:
        """Return which joints are farther than tolerance (k,) from their targets; None if none is."""
        measured, targets = self._measured(feedback), self.arm.motion.position
        errors = self._following.apart(measured, targets)
        far = np.flatnonzero(np.nan_to_num(errors) > tolerance)
        if not far.size:
            return None
        joints = [
            f'joint {quoted(self.arm.names[i])} is {errors[i]:.3g} {unit}'
            for i, unit in zip(far, np.where(self._model.prismatic, 'm', 'rad')[far], strict=True)
        ]
        reached = np.where(np.isnan(measured), targets, measured)
        off = max(
            float(np.linalg.norm(tool.arm.fk(reached[columns])[0] - tool.arm.fk(targets[columns])[0]))
            for tool, columns in self._model.tools()
        )
        whose = 'its target' if far.size == 1 else 'their targets'
        return f'{" and ".join(joints)} away from {whose}, the tool {1e3 * off:.1f} mm off'

    def hanging(self, feedback: Feedback) -> str | None:
        """Return which joints are farther than their arrival tolerance from their targets, and what helps."""
        tolerance = self._model.arrival_tolerance(self._settings)
        found = self.lacking(feedback, tolerance)
        return found and (
            f'{found}: raise the P gain of their servos or take load off, or, if that is near enough, raise '
            f'arrival_tolerance ({self._settings.arrival_tolerance:g} rad; linear_arrival_tolerance: '
            f'{self._settings.linear_arrival_tolerance:g} m)'
        )

    def inexact(self, feedback: Feedback) -> str | None:
        """Return which joints are not quite at their targets, None if all are."""
        prompt = np.where(self._model.prismatic, *PROMPT)
        return self.lacking(feedback, np.minimum(prompt, self._model.arrival_tolerance(self._settings)))

    def following_error(
        self, positions: Mapping[str, float], time: float, received: float, lag: float
    ) -> str | None:
        """Return which joint exceeds its following error by positions measured at time [s]; None: none.

        lag: of the controller behind the commands, beyond the usual [s].
        """
        measured = np.array([positions.get(name, np.nan) for name in self.arm.names])
        return self._following.error(measured, time, received, lag)
