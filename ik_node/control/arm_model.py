"""ArmModel: arm and solver built from one description and the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.settings import ArmSettings
from ik_node.errors import InputError, listed
from ik_node.model.arm import Arm
from ik_node.model.joints import JointSet
from ik_node.model.urdf import Robot, read_urdf
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver

SLACK = 1e-4  # a joint goal may exceed a limit by this much [rad or m] and is then clipped


@dataclass(frozen=True, eq=False)
class ArmModel:
    """Robot, arm and solver for one description and settings.

    joints: all joints of the robot, with n variables. home: (arm.n,). arm_index: (arm.n,) indices of the
    joints of the arm in joints.variables.
    """

    text: str
    robot: Robot
    joints: JointSet
    arm: Arm
    solver: IkSolver
    home: Array
    arm_index: NDArray[np.int64]

    @classmethod
    def build(cls, text: str, settings: ArmSettings, before: ArmModel | None = None) -> ArmModel:
        """Read text, build arm and solver; for the same text reuse the robot of before. Raises IkError."""
        robot, joints, arm, home = _read(text, settings, before)
        solver = IkSolver(arm, **settings.search())
        return cls(text, robot, joints, arm, solver, home, joints.indices(arm.joint_names))

    @staticmethod
    def check(text: str, settings: ArmSettings, before: ArmModel | None = None) -> None:
        """Raise the IkError that build() would raise, without building a solver."""
        _read(text, settings, before)

    def moves_as(self, other: ArmModel) -> bool:
        """Whether both arms have the same joints of the same robot."""
        return self.robot is other.robot and self.arm.joint_names == other.arm.joint_names

    def limits_of_motion(self, index: Sequence[int] | NDArray[np.int64], settings: ArmSettings) -> Limits:
        """Return the limits of the variables at index (k), each (k,)."""
        prismatic = self.joints.prismatic[index]
        return Limits(
            self.joints.lower[index],
            self.joints.upper[index],
            settings.speed_scaling * self.joints.velocity[index],
            np.where(prismatic, settings.max_linear_acceleration, settings.max_acceleration),
            np.where(prismatic, settings.max_linear_jerk, settings.max_jerk),
        )

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


def _read(text: str, settings: ArmSettings, before: ArmModel | None) -> tuple[Robot, JointSet, Arm, Array]:
    if before is not None and before.text == text:
        robot, joints = before.robot, before.joints
    else:
        robot = read_urdf(text)
        joints = JointSet(robot)
    arm = Arm(robot, **settings.tool())
    listed_joints = settings.listed_joints(arm.joint_names)
    missing = [name for name in arm.joint_names if name not in listed_joints]
    if missing:
        raise InputError(
            f'parameter controller_joints must have every joint of the arm, missing: {listed(missing)}'
        )
    return robot, joints, arm, _home(settings.home, arm)


def _home(home: tuple[float, ...], arm: Arm) -> Array:
    if len(home) not in (1, arm.n):
        raise InputError(
            f'parameter home must be one number or {arm.n} ({", ".join(arm.joint_names)}), got {list(home)}'
        )
    return np.clip(np.full(arm.n, home) if len(home) == 1 else np.array(home), arm.lower, arm.upper)
