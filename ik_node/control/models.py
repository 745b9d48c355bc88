# SPDX-License-Identifier: Apache-2.0
"""ArmModel and TreeModel: solver, limits, collision shapes and margins of the arms that control moves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.errors import ChainError, InputError, MissingError, join_names
from ik_node.model.arm import Arm, tool_at
from ik_node.model.collision import SelfCollision, collision_shapes, disabled_pairs, unknown_links
from ik_node.model.plausibility import Span, doubtful_limits, given_outside
from ik_node.model.robot import JointSet, Robot
from ik_node.model.tree import Tool, Tree, joined
from ik_node.model.urdf.limit_overrides import (
    JointLimits,
    limited,
    limits_of_drivers,
    read_joint_limits,
    with_margins,
)
from ik_node.model.urdf.reader import read_urdf
from ik_node.solver.goal import Goal, Solution
from ik_node.solver.solver import IkSolver
from ik_node.solver.spare_roll import spare_roll
from ik_node.solver.trees import KERNELS, TreeSolver

from .settings import ArmSettings, RobotSettings

OFF = 'self-collision is not checked'
TOLD = 3  # maximum number of ignored shapes in the log


def arm_collision(
    text: str, robot: Robot, names: tuple[str, ...], joints: JointSet, settings: ArmSettings
) -> tuple[SelfCollision | None, tuple[str, ...]]:
    """Return the checker for motions of the joints names, None if there is none, and lines for the log.

    Raises MissingError or InputError if self_collision is true and it is not possible.
    """
    if settings.self_collision == 'false':
        return None, ()
    try:
        shapes, notes = collision_shapes(text, settings.mesh_path)
        excluded = list(disabled_pairs(settings.srdf_file)) if settings.srdf_file else []
        found = SelfCollision(robot, joints, names, shapes, excluded) if shapes else None
    except MissingError as error:
        if settings.self_collision == 'true':
            raise
        return None, (f'{OFF}: {error}',)
    if len(notes) > TOLD:
        notes = [*notes[:TOLD], f'and {len(notes) - TOLD} more collision shapes are ignored']
    if found is None or found.empty:
        why = notes[0] if notes else 'the description has no collision shapes that could touch each other'
        if settings.self_collision == 'true':
            raise InputError(f'parameter self_collision is true, but this is not possible: {why}')
        return None, (f'{OFF}: {why}',)
    unknown = unknown_links(robot, excluded)
    if unknown:
        notes = [*notes, f'srdf_file excludes links that do not exist: {unknown}']
    return found, (found.describe(), *notes)


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


def limited_arm(arm: Arm, settings: ArmSettings) -> Arm:
    """Return the arm with joint_limits_file and joint_limit_margins of settings. Raises InputError."""
    robot, _ = _limited(arm.robot, settings)
    return arm if robot is arm.robot else arm.with_robot(robot)


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


SEEDS = 8  # from which other solutions are searched


@dataclass(frozen=True, eq=False)
class TreeModel(JointModel):
    """The joints of all tools, each moved by one of them at least. arms: by tool."""

    tree: Tree
    solver: TreeSolver
    arms: dict[str, ArmModel]

    @classmethod
    def build(
        cls, arms: Mapping[str, ArmModel], settings: ArmSettings, before: TreeModel | None = None
    ) -> TreeModel:
        """Build from the arms by tool, of one description and base link; before: the last model of these.

        Raises IkError.
        """
        first = next(iter(arms.values()))
        cls.check({name: model.arm for name, model in arms.items()}, settings)
        limited = {name: model.robot.joints[name] for model in arms.values() for name in model.joint_names}
        every = {**first.robot.joints, **limited}
        if before is not None and before.text == first.text and before.robot.joints == every:
            robot, joints = before.robot, before.joints
        else:
            robot = first.robot.with_joints(every)
            joints = JointSet(robot)
        tools = {
            name: Tool(model.arm.tip_link, model.arm.tool_axis, model.arm.tool_point)
            for name, model in arms.items()
        }
        tree = Tree(robot, tools, first.arm.base_link)
        home = np.empty(tree.n)
        for name, model in arms.items():
            home[tree.columns[name]] = model.home
        names = tree.joint_names
        solver = TreeSolver(
            tree,
            method=settings.solver,
            position_tolerance=settings.position_tolerance,
            direction_tolerance=settings.direction_tolerance,
            restarts=settings.restarts,
            random_seed=settings.random_seed,
        )
        return cls(
            first.text,
            first.bounds,
            robot,
            first.rates,
            joints,
            names,
            joints.indices(names),
            home,
            *arm_collision(first.text, robot, names, joints, settings),
            tree,
            solver,
            {name: replace(model, shared=True) for name, model in arms.items()},
        )

    @staticmethod
    def check(arms: Mapping[str, Arm], settings: ArmSettings) -> None:
        """Raise InputError for arms by tool, or settings, that tools that share joints cannot have."""
        names = ', '.join(arms)
        if len({arm.base_link for arm in arms.values()}) > 1:
            said = ', '.join(f'{name} {arm.base_link}' for name, arm in arms.items())
            raise InputError(f'tools that share joints must have the same base_link, got {said}')
        if any(arm.has_cones for arm in arms.values()):
            raise InputError(f'limits of ball joints are not supported for tools that share joints: {names}')
        for name, value, allowed in (
            ('solver', settings.solver, tuple(KERNELS)),
            ('direction_weight', settings.direction_weight, (0.0,)),
        ):
            if value not in allowed:
                raise InputError(
                    f'parameter {name} must be {" or ".join(map(str, allowed))} for tools that share joints '
                    f'({names}), got {value}'
                )

    @property
    def continuous(self) -> NDArray[np.bool_]:
        """Which joints (k,) have no limits."""
        return self.tree.continuous

    def of(self, tool: str) -> tuple[ArmModel, Columns]:
        """Return the arm of a tool, and where its joints are among joint_names."""
        return self.arms[tool], self.tree.columns[tool]

    def alone(self, tool: str) -> Columns:
        """Return which of joint_names move no other tool."""
        others = [columns for name, columns in self.tree.columns.items() if name != tool]
        return np.setdiff1d(self.tree.columns[tool], np.concatenate(others))

    def tools(self) -> Sequence[tuple[ArmModel, Columns]]:
        """Return the same of every tool."""
        return [self.of(name) for name in self.arms]

    def alternatives(self, tool: str, goal: Goal, q: Array) -> Iterator[tuple[Array, Solution]]:
        """Yield what is found from random seeds, in no order."""
        goals = {name: Goal(*place) for name, place in self.tree.fk(q).items()} | {tool: goal}
        for seed in self.tree.sample(np.random.default_rng(0), SEEDS):
            found = self.solver.solve(goals, seed)
            if found.solved:
                yield found.q, found.tools[tool]

    def describe(self) -> str:
        """Return one sentence on the tools and the joints that they share."""
        return self.tree.describe()


Models = dict[str, JointModel]  # by the first of the tools whose joints move together


def build_models(text: str, settings: RobotSettings, before: Mapping[str, JointModel]) -> Models:
    """Build the models of a description. before: those that there were. Raises IkError."""
    arms: dict[str, ArmModel] = {}
    for tool, own in settings.arms.items():
        with _errors_of(tool):
            arms[tool] = ArmModel.build(text, own, _like(text, tool, before, arms))
    groups = _groups({tool: model.arm for tool, model in arms.items()}, settings, before)
    models: Models = {}
    for group in groups:
        first = group[0]
        last = before.get(first)
        models[first] = arms[first]
        if len(group) > 1:
            own = settings.arms[first]
            last = last if isinstance(last, TreeModel) else None
            models[first] = TreeModel.build({tool: arms[tool] for tool in group}, own, last)
    return models


def check_models(text: str, settings: RobotSettings, before: Mapping[str, JointModel]) -> None:
    """Raise the IkError of a tool that build_models would raise, without building solvers."""
    arms = {}
    for tool, own in settings.arms.items():
        with _errors_of(tool):
            arms[tool] = ArmModel.check(text, own, _like(text, tool, before, {}))
    for group in _groups(arms, settings, before):
        if len(group) > 1:
            TreeModel.check({tool: arms[tool] for tool in group}, settings.arms[group[0]])


def arms_of(first: str, model: JointModel) -> dict[str, ArmModel]:
    """Return the arms of a model by tool; first: the first of its tools."""
    return model.arms if isinstance(model, TreeModel) else {first: model.of(first)[0]}


@contextmanager
def _errors_of(tool: str) -> Iterator[None]:
    """Name the tool in errors on its links and parameters."""
    try:
        yield
    except (InputError, ChainError) as error:
        if not tool:
            raise
        raise InputError(f'tool {tool}: {error}') from None


def _like(
    text: str, tool: str, before: Mapping[str, JointModel], arms: Mapping[str, ArmModel]
) -> ArmModel | None:
    """Return a model of text whose robot may be used again, if there is one: first that of the same tool."""
    own: dict[str, ArmModel] = {}
    for first, model in before.items():
        own |= arms_of(first, model)
    candidates = [*([own[tool]] if tool in own else []), *arms.values()]
    return next((model for model in candidates if model.text == text), None)


def _groups(
    arms: Mapping[str, Arm], settings: RobotSettings, before: Mapping[str, JointModel]
) -> tuple[tuple[str, ...], ...]:
    """Return the tools that share joints. Raises InputError for impossible ones or controllers."""
    groups = joined({tool: arm.joint_names for tool, arm in arms.items()})
    if before and {group[0] for group in groups} != before.keys():
        raise InputError('the new description changes which tools share joints; restart ik_node to use it')
    for group in groups:
        listed = set(settings.arms[group[0]].listed_joints(()))
        for other, arm in arms.items():
            both = listed & set(arm.joint_names)
            if both and other not in group:
                raise InputError(
                    f'parameter {group[0]}.controller_joints has joint "{min(both)}", which {other} moves'
                )
    return groups
