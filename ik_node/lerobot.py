# SPDX-License-Identifier: Apache-2.0
"""RobotKinematics: a drop-in for lerobot.model.kinematics.RobotKinematics. It imports nothing of LeRobot."""

from __future__ import annotations

import logging
import math
import numbers
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from ik_node import kernels
from ik_node.checks import Array, are_names, positive, real_array
from ik_node.control.teleop import JogKinematics
from ik_node.errors import LARGEST, InputError, join_names, quoted, safe_repr
from ik_node.kernels.arrays import LATERAL
from ik_node.model.arm import Arm
from ik_node.model.robot import Robot
from ik_node.model.urdf.reader import read_file
from ik_node.servos.calibration import recorded
from ik_node.servos.calibration.profile import read_profile
from ik_node.servos.calibration.zeros import ArmCalibration, calibrate
from ik_node.solver.goal import Cause, Goal, Reason, Solution
from ik_node.solver.solver import IkSolver

POSITION_TOLERANCE, DIRECTION_TOLERANCE = 1e-4, 1e-2  # [m] and [rad] that count as met
RIGID = 1e-3  # by which the columns of a rotation may miss unit length and right angles
LOG = logging.getLogger('ik_node')


class RobotKinematics:
    """Forward and inverse kinematics in degrees, in the root link of the URDF, for LeRobot's processors.

    joint_names: what the entries of all joint vectors belong to; names that are not joints of the arm, such
    as a gripper, are passed through. last: the result of the last inverse_kinematics, with errors and
    reason; its q is in radians, in the order of arm.joint_names.
    """

    def __init__(
        self,
        urdf_path: str | os.PathLike[str],
        target_frame_name: str = 'gripper_frame_link',
        joint_names: Sequence[str] | None = None,
        *,
        tool_axis: ArrayLike = (0.0, 0.0, 1.0),
        largest_step: float = 10.0,
        calibration: str | os.PathLike[str] | ArmCalibration | None = None,
        xacro_args: Mapping[str, object] | str | None = None,
    ) -> None:
        """target_frame_name: the tip link. joint_names: default all that can move.

        tool_axis: the unit axis of the target frame whose direction counts most: the one along which the
        gripper approaches. largest_step [deg]: of any joint in one call; what is left follows in later calls.
        calibration: LeRobot's file for this SO-100 or SO-101, or the calibration of another arm, from which
        follow the zeros of the URDF and where the joints end. None: LeRobot's degrees are those of the URDF.
        xacro_args: as for Arm.from_file.
        Raises InputError, and UrdfError for a description without such an arm.
        """
        robot = read_file(urdf_path, xacro_args)
        arm = Arm(robot, target_frame_name, tool_axis=tool_axis)
        self._zero, self._scale = np.zeros(arm.n), np.full(arm.n, np.radians(1.0))  # [rad], [rad/deg]
        if calibration is None:
            _warn_of_zeros()
        else:
            known = _calibration(calibration)
            arm = Arm(_ending(robot, arm.joint_names, known), target_frame_name, tool_axis=tool_axis)
            ends = [known.from_lerobot(dict.fromkeys(arm.joint_names, angle)) for angle in (0.0, 1.0)]
            self._zero, one = (np.array([end[name] for name in arm.joint_names]) for end in ends)
            self._scale = one - self._zero
        self.arm = arm
        movable = [joint.name for joint in arm.robot.joints.values() if joint.movable]
        if joint_names is not None and not are_names(joint_names):
            raise InputError(f'joint_names must be a list of names, got {safe_repr(joint_names)}')
        self.joint_names = list(movable if joint_names is None else joint_names)
        if len(set(self.joint_names)) < len(self.joint_names):
            raise InputError(f'joint_names must differ from each other, got {join_names(self.joint_names)}')
        missing = [name for name in arm.joint_names if name not in self.joint_names]
        if missing:
            raise InputError(
                f'joint_names must have all joints of the arm, {join_names(missing)} missing, '
                f'got {join_names(self.joint_names)}'
            )
        if arm.prismatic.any():
            raise InputError(f'{arm.name} has prismatic joints: LeRobot uses degrees only')
        self._columns = [self.joint_names.index(name) for name in arm.joint_names]
        self._step = positive('largest_step', largest_step) * np.abs(self._scale)
        self._solver = IkSolver(arm, position_tolerance=POSITION_TOLERANCE, direction_tolerance=DIRECTION_TOLERANCE)
        # rows: lateral axis, the one across, and tool axis, in the target frame
        self._axes = np.array([arm.tool_lateral, np.cross(arm.tool_axis, arm.tool_lateral), arm.tool_axis])
        self.last: Solution | None = None

    def forward_kinematics(self, joint_pos_deg: ArrayLike) -> Array:
        """Return the pose (4, 4) of the target frame. joint_pos_deg: as joint_names, further ones ignored."""
        frames = self.arm.frames(self._joints(joint_pos_deg)[1])
        z, x = frames[-2], frames[-1]
        pose = np.eye(4)
        pose[:3, :3] = np.column_stack([x, np.cross(z, x), z]) @ self._axes
        pose[:3, 3] = frames[-3]
        return pose

    def inverse_kinematics(
        self,
        current_joint_pos: ArrayLike,
        desired_ee_pose: ArrayLike,
        position_weight: float = 1.0,  # noqa: ARG002 - LeRobot passes it
        orientation_weight: float = 0.01,
    ) -> Array:
        """Return joint positions [deg] nearer to a pose (4, 4), as close as a continuous motion leads.

        current_joint_pos [deg]: start of the motion; entries of other joints are returned as they
        are. The position comes first, then the direction of the tool axis, then the turn about it, whatever
        the weights are; orientation_weight 0: the position alone. Joints outside their limits come back by
        largest_step per call. Raises InputError for wrong shapes and
        numbers that are not finite.
        """
        values, q = self._joints(current_joint_pos)
        goal = self._goal(_rigid(desired_ee_pose), _counts(orientation_weight))
        jog = JogKinematics(self._solver, q)
        found = jog.ahead(goal, q, 1.0, self._step)
        # Where the tool is a little off the axis of its roll, turning that has moved it.
        found = jog.ahead(goal, found, 1.0, np.maximum(self._step - np.abs(found - q), 0.0))
        found = q + np.clip(found - q, -self._step, self._step)  # from outside the limits, too
        self.last = self._judged(goal, q, found)
        values[self._columns] = (found - self._zero) / self._scale
        return values

    def _joints(self, degrees: ArrayLike) -> tuple[Array, Array]:
        """Return all entries [deg] and the joints of the arm (n,) [rad]."""
        try:
            values = real_array(degrees)
        except (TypeError, ValueError, OverflowError):
            values = np.empty(0)
        count = len(self.joint_names)
        if values.ndim != 1 or len(values) < count or not np.isfinite(values[self._columns]).all():
            raise InputError(
                f'joint positions must be {count} numbers or more ({join_names(self.joint_names)}), '
                f'got {safe_repr(degrees)}'
            )
        return values, self._zero + self._scale * values[self._columns]

    def _goal(self, T: Array, oriented: bool) -> Goal:
        if not oriented:
            return Goal(T[:3, 3])
        R = T[:3, :3]
        return Goal(T[:3, 3], R @ self.arm.tool_axis, R @ self.arm.tool_lateral)

    def _judged(self, goal: Goal, before: Array, q: Array) -> Solution:
        """Return what is true of q (n,), reached from before (n,)."""
        solver, turn = self._solver, self._turn_left(goal, q)
        judged = replace(solver.evaluate(goal, q), lateral_error=turn)
        if judged.solved:
            return judged
        packed = goal.packed.copy()
        packed[LATERAL:] = np.nan
        best = solver.solve(Goal.unpacked(packed), q)
        if not best.solved:
            return replace(judged, status=best.status, reason=best.reason)
        left = float(np.degrees(np.abs(best.q - q).max()))
        if (np.abs(q - before) >= self._step - 1e-9).any():
            sentence = f'on the way: {left:.3g} degrees are left'
        else:
            sentence = 'no continuous motion leads to the goal; the nearest configuration that meets it is '
            sentence += f'{left:.3g} degrees away'
        reason = Reason(Cause.BRANCH_ENDS, left, sentence)
        return replace(judged, reason=reason, other_branch=best.q)

    def _turn_left(self, goal: Goal, q: Array) -> float | None:
        """Return the angle [rad] between the lateral axis at q (n,) and that of goal, None if it has none."""
        if goal.lateral is None:
            return None
        return float(kernels.angle_between(self.arm.frames(q)[-1], goal.lateral))


@cache  # once
def _warn_of_zeros() -> None:
    LOG.warning(
        'LeRobot counts degrees from the middle of each recorded range, which is not the zero of '
        'a URDF: the tool of an SO-101 is 46 mm off in the median. Pass the calibration of the '
        'arm to RobotKinematics'
    )


def _calibration(given: str | os.PathLike[str] | ArmCalibration) -> ArmCalibration:
    """Return the calibration, of an SO-101 if it is a file, and log its warnings. Raises InputError."""
    if isinstance(given, ArmCalibration):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise InputError(f'calibration must be a path or an ArmCalibration, got {safe_repr(given)}')
    profile = read_profile('so101')
    found = calibrate(profile, {}, file=recorded.read_calibration(given, profile))
    for text in found.warnings:
        LOG.warning('calibration: %s', text)
    return found


def _ending(robot: Robot, names: Sequence[str], calibration: ArmCalibration) -> Robot:
    """Return the robot with joints that end where those of the arm do, too. Raises InputError."""
    joints = dict(robot.joints)
    for name in names:
        known, joint = calibration.joint(name), joints[name]
        lower, upper = max(joint.lower, known.lower), min(joint.upper, known.upper)
        if lower > upper:
            raise InputError(
                f'the calibration has joint {quoted(name)} from {known.lower:.3f} to {known.upper:.3f}, the '
                f'URDF from {joint.lower:.3f} to {joint.upper:.3f}: they do not belong to the same arm'
            )
        kind = 'revolute' if joint.type == 'continuous' else joint.type
        joints[name] = replace(joint, type=kind, lower=lower, upper=upper)
    return robot.with_joints(joints)


def _rigid(pose: ArrayLike) -> Array:
    """Return a pose (4, 4) as an array. Raises InputError unless it is finite and its rotation is one."""
    try:
        T = real_array(pose)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f'desired_ee_pose must be numbers of shape (4, 4), got {safe_repr(pose)}') from None
    if T.shape != (4, 4) or not (np.abs(T) <= LARGEST).all():
        raise InputError(f'desired_ee_pose must be finite, up to {LARGEST:g}, of shape (4, 4), got {T.tolist()}')
    R = T[:3, :3]
    rotation = np.abs(R.T @ R - np.eye(3)).max() <= RIGID and np.linalg.det(R) > 0.0
    if not rotation or np.abs(T[3] - [0.0, 0.0, 0.0, 1.0]).max() > RIGID:
        raise InputError(f'desired_ee_pose must be a rotation and a position, got {T.tolist()}')
    u, _, vt = np.linalg.svd(R)
    T[:3, :3] = u @ vt
    return T


def _counts(weight: float) -> bool:
    """Whether a weight is not 0. Raises InputError unless it is a number of at least 0."""
    if not isinstance(weight, numbers.Real) or not 0.0 <= weight < math.inf:
        raise InputError(f'orientation_weight must be a number of at least 0, got {safe_repr(weight)}')
    return weight != 0.0
