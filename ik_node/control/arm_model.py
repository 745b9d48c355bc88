"""ArmModel: one description and the settings, made ready to serve goals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ik_node.control.motion import JointMotion
from ik_node.control.settings import ArmSettings
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.joints import JointSet
from ik_node.model.urdf import Robot, read_urdf
from ik_node.solver.goal import Goal
from ik_node.solver.solver import IkSolver

Vector = NDArray[np.float64]

SLACK = 1e-4  # a joint goal may be beyond a limit by this much [rad or m] and is then clipped


@dataclass(frozen=True, eq=False)
class ArmModel:
    """What one description and the settings give. values (n,) are those of joints.variables.

    home: (n,) values of ~/home. arm_index: (arm.n,) where the joints of the arm are in joints.variables.
    """

    text: str
    robot: Robot
    joints: JointSet
    arm: Arm
    solver: IkSolver
    home: Vector
    arm_index: NDArray[np.int64]

    @classmethod
    def build(cls, text: str, settings: ArmSettings, before: ArmModel | None = None) -> ArmModel:
        """Read text and prepare arm and solver; what before has of the same text is kept. Raises IkError."""
        robot, joints, arm, home = _read(text, settings, before)
        solver = IkSolver(arm, **settings.search())
        return cls(text, robot, joints, arm, solver, home, joints.indices(arm.joint_names))

    @staticmethod
    def check(text: str, settings: ArmSettings, before: ArmModel | None = None) -> None:
        """Raise the IkError that build() would raise, without compiling anything."""
        _read(text, settings, before)

    def limit(self, motion: JointMotion, settings: ArmSettings) -> None:
        """Set the limits of motion to those of the robot and the settings."""
        every = np.ones(self.joints.n)
        motion.set_limits(
            settings.speed_scaling * self.joints.velocity,
            settings.max_acceleration * every,
            settings.max_jerk * every,
        )

    def link_in_base(self, link: str, values: Vector) -> Vector:
        """Return T_base_link (4, 4) at values (n,)."""
        named = self.joints.named(values)
        T_root_base = self.robot.link_pose(self.arm.base_link, named)
        return np.linalg.inv(T_root_base) @ self.robot.link_pose(link, named)

    def pose_goal(self, T_base_tip: Vector) -> Goal:
        """Return the goal of the tool when the tip frame is to be at T_base_tip (4, 4), roll free."""
        R = T_base_tip[:3, :3]
        position = R @ self.arm.tool_point + T_base_tip[:3, 3]
        return Goal(position, R @ self.arm.tool_axis, R @ self.arm.tool_lateral)

    def joint_goal(self, named: Mapping[str, float], others: Vector) -> Vector:
        """Return (n,): others with the named values in their places; those that mimic are passed over.

        Raises InputError for a value beyond the limits of its joint.
        """
        target = others.copy()
        for index, name in enumerate(self.joints.variables):
            if name in named:
                target[index] = named[name]
        low, high = self.joints.lower, self.joints.upper
        beyond = ((target < low - SLACK) | (target > high + SLACK)) & (target != others)
        for i in np.flatnonzero(beyond):
            raise InputError(
                f'joint "{self.joints.variables[i]}" cannot go to {target[i]:.6g}, '
                f'its limits are {low[i]:.6g} to {high[i]:.6g}'
            )
        return np.clip(target, low, high)


def _read(text: str, settings: ArmSettings, before: ArmModel | None) -> tuple[Robot, JointSet, Arm, Vector]:
    if before is not None and before.text == text:
        robot, joints = before.robot, before.joints
    else:
        robot = read_urdf(text)
        joints = JointSet(robot)
    arm = Arm(robot, **settings.tool())
    return robot, joints, arm, _home(settings.home, arm, joints)


def _home(home: tuple[float, ...], arm: Arm, joints: JointSet) -> Vector:
    if len(home) not in (1, arm.n):
        raise InputError(
            f'parameter home must be one number or {arm.n} ({", ".join(arm.joint_names)}), got {list(home)}'
        )
    values = joints.rest.copy()
    values[joints.indices(arm.joint_names)] = home
    return np.clip(values, joints.lower, joints.upper)
