"""ArmModel: arm and solver built from one description and the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.arm_collision import arm_collision
from ik_node.control.settings import ArmSettings
from ik_node.errors import InputError, listed
from ik_node.model.arm import Arm
from ik_node.model.collision import SelfCollision
from ik_node.model.joint_limits import (
    JointLimits,
    limited,
    limits_of_drivers,
    read_joint_limits,
    with_margins,
)
from ik_node.model.joints import JointSet
from ik_node.model.urdf import Robot, read_urdf
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver

SLACK = 1e-4  # a joint goal may exceed a limit by this much [rad or m] and is then clipped


@dataclass(frozen=True, eq=False)
class ArmModel:
    """Robot, arm and solver for one description and settings.

    robot: with the limits of the settings. rates: (n, 2) acceleration and jerk limits by variable, infinite
    where the parameters give them. joints: all joints of the robot, with n variables. home: (arm.n,).
    arm_index: (arm.n,) indices of the joints of the arm in joints.variables.
    """

    text: str
    bounds: tuple[object, ...]  # the settings that the limits of the robot depend on
    robot: Robot
    rates: Array
    joints: JointSet
    arm: Arm
    home: Array
    arm_index: NDArray[np.int64]
    solver: IkSolver
    collision: SelfCollision | None
    notes: tuple[str, ...]  # lines for the log

    @classmethod
    def build(cls, text: str, settings: ArmSettings, before: ArmModel | None = None) -> ArmModel:
        """Read text, build arm and solver; for the same text reuse the robot of before. Raises IkError."""
        parts = _read(text, settings, before)
        arm, joints = parts[5], parts[4]
        collision = arm_collision(text, arm, joints, settings)
        return cls(*parts, IkSolver(arm, **settings.search()), *collision)

    @staticmethod
    def check(text: str, settings: ArmSettings, before: ArmModel | None = None) -> None:
        """Raise the IkError that build() would raise, without building a solver."""
        _read(text, settings, before)

    def moves_as(self, other: ArmModel) -> bool:
        """Whether both arms have the same joints of the same robot."""
        return self.robot is other.robot and self.arm.joint_names == other.arm.joint_names

    def limits_of_motion(self, index: Sequence[int] | NDArray[np.int64], settings: ArmSettings) -> Limits:
        """Return the limits of the variables at index (k), each (k,)."""
        return Limits(
            self.joints.lower[index],
            self.joints.upper[index],
            settings.speed_scaling * self.joints.velocity[index],
            self._rate(0, index, settings.max_acceleration, settings.max_linear_acceleration),
            self._rate(1, index, settings.max_jerk, settings.max_linear_jerk),
        )

    def _rate(
        self, column: int, index: Sequence[int] | NDArray[np.int64], revolute: float, linear: float
    ) -> Array:
        own = self.rates[index, column]
        return np.where(np.isfinite(own), own, np.where(self.joints.prismatic[index], linear, revolute))

    def following_tolerance(self, settings: ArmSettings) -> Array:
        """Return the largest following error of each joint of the arm (arm.n,)."""
        return np.where(self.arm.prismatic, settings.max_linear_following_error, settings.max_following_error)

    def driven_by(self, variables: Sequence[str]) -> NDArray[np.bool_]:
        """Return which joints (m,) move with these variables: the variables and their mimic joints."""
        alone = np.isin(self.joints.variables, variables).astype(np.float64)
        return self.joints.expand(np.zeros(self.joints.n), alone)[1] != 0.0

    def link_in_base(self, link: str, values: Array) -> Array:
        """Return T_base_link (4, 4) at the variables' values (n,)."""
        named = self.joints.named(values)
        T_root_base = self.robot.link_pose(self.arm.base_link, named)
        return np.linalg.inv(T_root_base) @ self.robot.link_pose(link, named)

    def pose_goal(self, T_base_tip: Array) -> Goal:
        """Return the goal that puts the tip frame at T_base_tip (4, 4), roll free."""
        R = T_base_tip[:3, :3]
        position = R @ self.arm.tool_point + T_base_tip[:3, 3]
        return Goal(position, R @ self.arm.tool_axis, R @ self.arm.tool_lateral)

    def joint_targets(self, named: Mapping[str, float]) -> dict[str, float]:
        """Return the named positions of variables, clipped to their limits; mimic joints are ignored.

        Raises InputError for a position beyond the limits of its joint.
        """
        targets = {}
        for name, value in named.items():
            if name not in self.joints.variables:
                continue
            i = self.joints.variables.index(name)
            low, high = self.joints.lower[i], self.joints.upper[i]
            if not low - SLACK <= value <= high + SLACK:
                raise InputError(
                    f'joint "{name}" cannot move to {value:.6g}, its limits are {low:.6g} to {high:.6g}'
                )
            targets[name] = min(max(value, low), high)
        if not targets:
            raise InputError(
                f'none of {listed(named)} can be commanded; joints: {listed(self.joints.variables)}'
            )
        return targets


@dataclass(frozen=True, eq=False)
class Limits:
    """Position [rad or m], velocity, acceleration and jerk limits of some joints, each (k,)."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    jerk: Array


_Parts = tuple[str, tuple[object, ...], Robot, Array, JointSet, Arm, Array, NDArray[np.int64]]


def _read(text: str, settings: ArmSettings, before: ArmModel | None) -> _Parts:
    """Return the fields of ArmModel up to the solver."""
    bounds = settings.bounds()
    if before is not None and (before.text, before.bounds) == (text, bounds):
        robot, rates, joints = before.robot, before.rates, before.joints
    else:
        robot, limits = _limited(read_urdf(text), settings)
        joints = JointSet(robot)
        settings.calibration().check(joints.names)
        own = [limits.get(name, JointLimits()) for name in joints.variables]
        rates = np.array([[limit.acceleration, limit.jerk] for limit in own]).reshape(-1, 2)
    arm = Arm(robot, **settings.tool())
    listed_joints = settings.listed_joints(arm.joint_names)
    missing = [name for name in arm.joint_names if name not in listed_joints]
    if missing:
        raise InputError(
            f'parameter controller_joints must have every joint of the arm, missing: {listed(missing)}'
        )
    return text, bounds, robot, rates, joints, arm, _home(settings.home, arm), joints.indices(arm.joint_names)


def _limited(robot: Robot, settings: ArmSettings) -> tuple[Robot, dict[str, JointLimits]]:
    """Return the robot with the limits of the settings, and the limits of the file by driving joint."""
    limits: dict[str, JointLimits] = {}
    if settings.joint_limits_file:
        found, unused = read_joint_limits(settings.joint_limits_file)
        limits = limits_of_drivers(robot, found)
        robot = limited(robot.with_joints(robot.joints, unused), limits)
    if any(settings.joint_limit_margins):
        names = Arm(robot, **settings.tool()).joint_names
        robot = with_margins(robot, names, settings.joint_limit_margins)
    return robot, limits


def _home(home: tuple[float, ...], arm: Arm) -> Array:
    if len(home) not in (1, arm.n):
        raise InputError(
            f'parameter home must be one number or {arm.n} ({", ".join(arm.joint_names)}), got {list(home)}'
        )
    return np.clip(np.full(arm.n, home) if len(home) == 1 else np.array(home), arm.lower, arm.upper)
