"""JointModel: joints of a robot that are commanded together, with one tool or several on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.robot.settings import ArmSettings
from ik_node.errors import InputError, listed
from ik_node.model.collision.collision import SelfCollision
from ik_node.model.joint_set import JointSet
from ik_node.model.urdf.reader import Robot
from ik_node.solver.goal import Goal, Solution

if TYPE_CHECKING:
    from ik_node.control.robot.arm_model import ArmModel

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

    @property
    def blocks(self) -> tuple[Columns, ...]:
        """Which of joint_names wait for each other in a motion: no block delays another."""
        return (np.arange(len(self.joint_names)),)

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
        """Return the largest following error of each joint (k,)."""
        return np.where(self.prismatic, settings.max_linear_following_error, settings.max_following_error)

    def arrival_tolerance(self, settings: ArmSettings) -> Array:
        """Return how near its target each joint (k,) has arrived."""
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
