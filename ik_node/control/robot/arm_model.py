"""ArmModel: arm and solver built from one description and the settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.control.robot.arm_collision import arm_collision
from ik_node.control.robot.joint_model import Columns, JointModel
from ik_node.control.robot.settings import ArmSettings
from ik_node.errors import InputError, listed
from ik_node.model.arm import Arm
from ik_node.model.joint_set import JointSet
from ik_node.model.urdf.joint_limits import (
    JointLimits,
    limited,
    limits_of_drivers,
    read_joint_limits,
    with_margins,
)
from ik_node.model.urdf.reader import Robot, read_urdf
from ik_node.solver.goal import Goal, Solution
from ik_node.solver.redundancy.spare_roll import spare_roll
from ik_node.solver.solver import IkSolver


@dataclass(frozen=True, eq=False)
class ArmModel(JointModel):
    """The joints of an arm with one tool, and its solver.

    shared: another tool moves with some of the joints, so that paths and hands cannot have them alone.
    """

    arm: Arm
    solver: IkSolver
    shared: bool = False

    @classmethod
    def build(cls, text: str, settings: ArmSettings, before: ArmModel | None = None) -> ArmModel:
        """Read text, build arm and solver; for the same text reuse the robot of before. Raises IkError."""
        parts, arm = _read(text, settings, before)
        collision = arm_collision(text, parts.robot, parts.joint_names, parts.joints, settings)
        return cls(*parts, *collision, arm, IkSolver(arm, **settings.search()))

    @staticmethod
    def check(text: str, settings: ArmSettings, before: ArmModel | None = None) -> Arm:
        """Return the arm, or raise the IkError that build() would raise, without building a solver."""
        return _read(text, settings, before)[1]

    @property
    def continuous(self) -> NDArray[np.bool_]:
        """Which joints (k,) have no limits."""
        return self.arm.continuous

    def of(self, tool: str) -> tuple[ArmModel, Columns]:  # noqa: ARG002 - there is only one
        """Return this arm, and where its joints are among joint_names."""
        return self, np.arange(self.arm.n)

    def alone(self, tool: str) -> Columns:
        """Return all joints."""
        return self.of(tool)[1]

    def tools(self) -> Sequence[tuple[ArmModel, Columns]]:
        """Return the same, as the only one."""
        return (self.of(''),)

    @cached_property
    def blocks(self) -> tuple[Columns, ...]:
        """The joints that place the tool, and alone the last one, if it does nothing but roll the tool."""
        roll, every = spare_roll(self.arm), np.arange(self.arm.n)
        return (every,) if roll < 0 or self.arm.n < 2 else (np.delete(every, roll), every[[roll]])

    def alternatives(self, tool: str, goal: Goal, q: Array) -> Iterator[tuple[Array, Solution]]:  # noqa: ARG002
        """Yield all solutions, nearest to q (k,) first."""
        for solution in self.solver.solve_all(goal, q):
            yield solution.q, solution

    def describe(self) -> str:
        """Return one sentence on the arm."""
        return self.arm.describe()

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


class _Parts(NamedTuple):
    """The first fields of JointModel."""

    text: str
    bounds: tuple[object, ...]
    robot: Robot
    rates: Array
    joints: JointSet
    joint_names: tuple[str, ...]
    indices: Columns
    home: Array


def _read(text: str, settings: ArmSettings, before: ArmModel | None) -> tuple[_Parts, Arm]:
    """Return the fields of the model up to those on collision, and the arm."""
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
    names = arm.joint_names
    missing = [name for name in names if name not in settings.listed_joints(names)]
    if missing:
        raise InputError(
            f'parameter controller_joints must have every joint of the arm, missing: {listed(missing)}'
        )
    home = _home(settings.home, arm)
    return _Parts(text, bounds, robot, rates, joints, names, joints.indices(names), home), arm


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
    q = np.clip(np.full(arm.n, home) if len(home) == 1 else np.array(home), arm.lower, arm.upper)
    kernels.clip(q, arm.limits)
    return q
