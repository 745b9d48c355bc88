# SPDX-License-Identifier: Apache-2.0
"""JointModel: joints of a robot that are commanded together; ArmModel: those of an arm with one tool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.control.robot.arm_collision import arm_collision
from ik_node.control.settings.arm import ArmSettings
from ik_node.errors import InputError, join_names
from ik_node.model.arm import Arm, tool_at
from ik_node.model.collision.collision import SelfCollision
from ik_node.model.joint_set import JointSet
from ik_node.model.plausibility import Span, doubtful_limits, given_outside
from ik_node.model.urdf.limit_overrides import (
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

SLACK = 1e-4  # a joint goal may exceed a limit by this much [rad or m] and is then clipped
Columns = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class JointModel(ABC):
    """The k joints that move together, for one description and settings.

    robot: with the limits of the settings. rates: (n, 2) acceleration and jerk limits by variable, infinite
    where the parameters give them. joints: all joints of the robot, with n variables. joint_names (k): those
    that move together; index (k,): where they are in joints.variables; home: (k,).
    """

    text: str
    bounds: tuple[object, ...]  # the settings that the limits of the robot depend on
    robot: Robot
    rates: Array
    joints: JointSet
    joint_names: tuple[str, ...]
    index: Columns
    home: Array
    collision: SelfCollision | None
    notes: tuple[str, ...]  # lines for the log

    @property
    @abstractmethod
    def continuous(self) -> NDArray[np.bool_]:
        """Which joints (k,) have no limits."""

    @abstractmethod
    def of(self, tool: str) -> tuple[ArmModel, Columns]:
        """Return the arm of a tool, and where its joints are among joint_names."""

    @abstractmethod
    def alone(self, tool: str) -> Columns:
        """Return which of joint_names move no other tool."""

    @cached_property
    def rolls(self) -> Columns:
        """Which of joint_names only roll a tool, and move no other one."""
        tools = self.tools()
        uses = np.bincount(np.concatenate([columns for _, columns in tools]))
        found = [columns[roll] for tool, columns in tools if (roll := spare_roll(tool.arm)) >= 0]
        return np.array([column for column in found if uses[column] == 1], np.int64)

    @cached_property
    def blocks(self) -> tuple[Columns, ...]:
        """Which of joint_names are synchronised in a motion: those that position the tools, then each roll.

        No block delays another.
        """
        others = np.setdiff1d(np.arange(len(self.joint_names)), self.rolls)
        return tuple(block for block in (others, *self.rolls[:, None]) if block.size)

    @abstractmethod
    def tools(self) -> Sequence[tuple[ArmModel, Columns]]:
        """Return the same of every tool."""

    @abstractmethod
    def alternatives(self, tool: str, goal: Goal, q: Array) -> Iterator[tuple[Array, Solution]]:
        """Yield joints (k,) that meet the goal of a tool while all other tools stay as at q (k,).

        Each comes with the solution for the tool.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return one sentence on the joints and what they can do."""

    @property
    def prismatic(self) -> NDArray[np.bool_]:
        """Which joints (k,) are prismatic."""
        return self.joints.prismatic[self.index]

    def moves_as(self, other: JointModel) -> bool:
        """Whether both have the same joints of the same robot."""
        return self.robot is other.robot and self.joint_names == other.joint_names

    def following_tolerance(self, settings: ArmSettings) -> Array:
        """Return the largest following error of each joint (k,)."""
        return np.where(self.prismatic, settings.max_linear_following_error, settings.max_following_error)

    def arrival_tolerance(self, settings: ArmSettings) -> Array:
        """Return the tolerance of each joint (k,) at its target."""
        return np.where(self.prismatic, settings.linear_arrival_tolerance, settings.arrival_tolerance)

    def driven_by(self, variables: Sequence[str]) -> NDArray[np.bool_]:
        """Return which joints (m,) move with these variables: the variables and their mimic joints."""
        alone = np.isin(self.joints.variables, variables).astype(np.float64)
        return self.joints.expand(np.zeros(self.joints.n), alone)[1] != 0.0

    def path(self, values: Array, places: Mapping[str, Array]) -> Array:
        """Return rows (k, n): values (n,) of all variables, but for those of places by name.

        k: of the longest of places; variables with fewer stay at the last one.
        """
        path = np.tile(values, (max(map(len, places.values())), 1))
        for i, name in enumerate(self.joints.variables):
            if name in places:
                path[: len(places[name]), i] = places[name]
                path[len(places[name]) :, i] = places[name][-1]
        return path

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
                doubt = given_outside(self.joints.spans[i], value)
                raise InputError(
                    f'joint "{name}" cannot move to {value:.6g}, its limits are {low:.6g} to {high:.6g}'
                    + (f'; {doubt.rpartition(": ")[2]}' if doubt else '')
                )
            targets[name] = min(max(value, low), high)
        if not targets:
            raise InputError(
                f'none of {join_names(named)} can be commanded; joints: {join_names(self.joints.variables)}'
            )
        return targets


@dataclass(frozen=True, eq=False)
class ArmModel(JointModel):
    """The joints of an arm with one tool, and its solver.

    shared: another tool moves with some of the joints, so this tool accepts neither paths nor teleoperation.
    """

    arm: Arm
    solver: IkSolver
    shared: bool = False

    @classmethod
    def build(cls, text: str, settings: ArmSettings, before: ArmModel | None = None) -> ArmModel:
        """Read text, build arm and solver; for the same text reuse the robot of before. Raises IkError."""
        robot, rates, joints, home, arm = _read(text, settings, before)
        bounds, names = settings.bounds(), arm.joint_names
        collision = arm_collision(text, robot, names, joints, settings)
        solver, index = IkSolver(arm, **settings.search()), joints.indices(names)
        return cls(text, bounds, robot, rates, joints, names, index, home, *collision, arm, solver)

    @staticmethod
    def check(text: str, settings: ArmSettings, before: ArmModel | None = None) -> Arm:
        """Return the arm, or raise the IkError that build() would raise, without building a solver."""
        return _read(text, settings, before)[-1]

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

    def alternatives(self, tool: str, goal: Goal, q: Array) -> Iterator[tuple[Array, Solution]]:  # noqa: ARG002
        """Yield all solutions, nearest to q (k,) first."""
        for solution in self.solver.solve_all(goal, q):
            yield solution.q, solution

    def describe(self) -> str:
        """Return one sentence on the arm."""
        return self.arm.describe()

    def link_in_base(self, link: str, values: Array) -> Array:
        """Return T_base_link (4, 4) at the variables' values (n,)."""
        return self.arm.link_in_base(link, self.joints.named(values))

    def pose_goal(self, T_base_tip: Array) -> Goal:
        """Return the goal that puts the tip frame at T_base_tip (4, 4), roll free."""
        return Goal(*tool_at(self.arm, T_base_tip), T_base_tip[:3, :3] @ self.arm.tool_lateral)


def _read(
    text: str, settings: ArmSettings, before: ArmModel | None
) -> tuple[Robot, Array, JointSet, Array, Arm]:
    """Return robot, rates, joints and home of the model, and its arm."""
    if before is not None and (before.text, before.bounds) == (text, settings.bounds()):
        robot, rates, joints = before.robot, before.rates, before.joints
    else:
        robot, limits = _limited(read_urdf(text), settings)
        joints = JointSet(robot)
        own = [limits.get(name, JointLimits()) for name in joints.variables]
        rates = np.array([[limit.acceleration, limit.jerk] for limit in own]).reshape(-1, 2)
    arm = Arm(robot, **settings.tool())
    names = arm.joint_names
    missing = [name for name in names if name not in settings.listed_joints(names)]
    if missing:
        raise InputError(
            f'parameter controller_joints must have every joint of the arm, missing: {join_names(missing)}'
        )
    return robot, rates, joints, _home(settings.home, arm), arm


def _limited(robot: Robot, settings: ArmSettings) -> tuple[Robot, dict[str, JointLimits]]:
    """Return the robot with the limits of the settings, and the limits of the file by driving joint."""
    limits: dict[str, JointLimits] = {}
    if settings.joint_limits_file:
        found, unused = read_joint_limits(settings.joint_limits_file)
        limits = limits_of_drivers(robot, found)
        spans = [
            Span(name, one.lower, one.upper, one.velocity, robot.joints[name].type == 'prismatic')
            for name, one in found.items()
            if name in robot.joints
        ]
        questions = doubtful_limits(spans, 'joint_limits_file')
        robot = limited(robot.with_joints(robot.joints, [*unused, *questions]), limits)
    if any(settings.joint_limit_margins):
        names = Arm(robot, **settings.tool()).joint_names
        robot = with_margins(robot, names, settings.joint_limit_margins)
    return robot, limits


def _home(home: tuple[float, ...], arm: Arm) -> Array:
    if len(home) not in (1, arm.n):
        raise InputError(
            f'parameter home must be one number or {arm.n} ({", ".join(arm.joint_names)}), got {list(home)}'
        )
    if doubt := arm.doubt(np.broadcast_to(home, arm.n)):
        raise InputError(f'parameter home: {doubt}')
    q = np.clip(np.full(arm.n, home) if len(home) == 1 else np.array(home), arm.lower, arm.upper)
    kernels.clip(q, arm.limits)
    return q
