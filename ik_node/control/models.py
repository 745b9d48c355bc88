# SPDX-License-Identifier: Apache-2.0
"""ArmModel: joints that move together, their limits and collision shapes, and the tools that they move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ik_node import kernels
from ik_node.checks import Array
from ik_node.errors import ChainError, InputError, MissingError, join_names
from ik_node.model.arm import Arm, tool_at
from ik_node.model.collision import SelfCollision, collision_shapes, disabled_pairs, unknown_links
from ik_node.model.gripper import Gripper
from ik_node.model.plausibility import Span, doubtful_limits, given_outside
from ik_node.model.robot import JointSet, Robot
from ik_node.model.tree import Tree, joined
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
from ik_node.solver.trees import KERNELS, TreeSolution, TreeSolver

from .settings import ArmSettings, RobotSettings

OFF = 'self-collision is not checked'
MAX_NOTES = 3  # maximum number of ignored shapes in the log


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
    if len(notes) > MAX_NOTES:
        notes = [*notes[:MAX_NOTES], f'and {len(notes) - MAX_NOTES} more collision shapes are ignored']
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
SEEDS = 8  # from which other solutions of tools that share joints are searched
Columns = NDArray[np.int64]


class Description(NamedTuple):
    """A robot description as read. robot: with the limits of joint_limits_file, by driving joint."""

    text: str
    limits_file: str
    robot: Robot
    limits: Mapping[str, JointLimits]


@dataclass(frozen=True, eq=False)
class ToolModel:
    """One tool of an arm.

    home (arm.n,). columns, index (arm.n,): where its joints are among joint_names and joints.variables of the
    model. own: those of columns that move no other tool. gripper: that it carries, None without one.
    """

    arm: Arm
    solver: IkSolver
    home: Array
    columns: Columns
    index: Columns
    own: Columns
    gripper: Gripper | None

    def pose_goal(self, T_base_tip: Array, cone: float = 0.0, tolerance: float | None = None) -> Goal:
        """Return the goal that puts the tip frame at T_base_tip (4, 4), roll free; cone and tolerance: see Goal."""
        lateral = T_base_tip[:3, :3] @ self.arm.tool_lateral
        return Goal(*tool_at(self.arm, T_base_tip), lateral, cone=cone, tolerance=tolerance)


@dataclass(frozen=True, eq=False)
class ArmModel:
    """The k joints that move together, for one description and settings, and the tools that they move.

    Most arms have one tool; several tools are one arm if they share joints, directly or through others.
    robot: with the limits and margins of the settings. bounds: the settings that the margins depend on.
    rates: (n, 2) acceleration and jerk limits by variable, infinite where the parameters give them. joints:
    all joints of the robot, with n variables. tree: the tools with their k joints, joint_names; index (k,):
    where these are in joints.variables; home: (k,). tools: by name. together: solves goals of several tools;
    None for one, whose own solver does that.
    """

    description: Description
    bounds: tuple[object, ...]
    robot: Robot
    rates: Array
    joints: JointSet
    tree: Tree
    index: Columns
    home: Array
    tools: Mapping[str, ToolModel]
    together: TreeSolver | None
    collision: SelfCollision | None
    notes: tuple[str, ...]  # lines for the log

    @classmethod
    def build(cls, description: Description, arms: Mapping[str, Arm], settings: RobotSettings) -> ArmModel:
        """Build from the arms of one robot, by tool, that move together. Raises IkError."""
        tree, general = Tree.of(arms), settings.general
        joints, names = JointSet(tree.robot), tree.joint_names
        limits = [description.limits.get(name, JointLimits()) for name in joints.variables]
        uses = np.bincount(np.concatenate(list(tree.columns.values())), minlength=tree.n)
        home, tools = np.empty(tree.n), {}
        for tool, arm in arms.items():
            own, columns = settings.arms[tool], tree.columns[tool]
            home[columns] = _home(own.home, arm)
            tools[tool] = ToolModel(
                arm,
                IkSolver(arm, **own.search()),
                home[columns],
                columns,
                joints.indices(arm.joint_names),
                columns[uses[columns] == 1],
                own.gripper(arm),
            )
        together = None
        if len(arms) > 1:
            together = TreeSolver(
                tree,
                method=general.solver,
                position_tolerance=general.position_tolerance,
                direction_tolerance=general.direction_tolerance,
                restarts=general.restarts,
                random_seed=general.random_seed,
            )
        return cls(
            description,
            _bounds(arms, settings),
            tree.robot,
            np.array([[limit.acceleration, limit.jerk] for limit in limits]).reshape(-1, 2),
            joints,
            tree,
            joints.indices(names),
            home,
            tools,
            together,
            *arm_collision(description.text, tree.robot, names, joints, general),
        )

    @property
    def text(self) -> str:
        """The text of the description."""
        return self.description.text

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The names of the joints (k)."""
        return self.tree.joint_names

    @property
    def first(self) -> ToolModel:
        """The first tool: the only one of most arms."""
        return next(iter(self.tools.values()))

    @cached_property
    def rolls(self) -> Columns:
        """Which of joint_names only roll a tool, and move no other one."""
        found = [tool.columns[roll] for tool in self.tools.values() if (roll := spare_roll(tool.arm)) >= 0]
        alone = np.concatenate([tool.own for tool in self.tools.values()])
        return np.array([column for column in found if column in alone], np.int64)

    @cached_property
    def blocks(self) -> tuple[Columns, ...]:
        """Which of joint_names are synchronised in a motion: those that position the tools, then each roll.

        No block delays another.
        """
        others = np.setdiff1d(np.arange(len(self.joint_names)), self.rolls)
        return tuple(block for block in (others, *self.rolls[:, None]) if block.size)

    def solve(self, goals: Mapping[str, Goal], q: Array, time_budget: float | None = None) -> TreeSolution:
        """Solve goals by tool, near q (k,); tools without a goal stay as at q; time_budget [s] or the usual one."""
        if self.together is not None:
            return self.together.solve(goals, q, time_budget=time_budget)
        ((name, goal),) = goals.items()
        found = self.tools[name].solver.solve(goal, q, time_budget)
        return TreeSolution(found.q, {name: found})

    def track(self, goals: Mapping[str, Goal], q: Array, before: Array | None) -> TreeSolution:
        """Follow moving goals by tool from q (k,) on its branch; before: the joints before q."""
        if self.together is not None:
            return self.together.track(goals, q, before)
        ((name, goal),) = goals.items()
        found = self.tools[name].solver.track(goal, q, before)
        return TreeSolution(found.q, {name: found})

    def alternatives(self, tool: str, goal: Goal, q: Array) -> Iterator[tuple[Array, Solution]]:
        """Yield joints (k,) that meet the goal of a tool while all other tools stay as at q (k,).

        Each comes with the solution for the tool. Of one tool all of them, nearest to q first; of several
        those that are found from random seeds, in no order.
        """
        if self.together is None:
            for solution in self.tools[tool].solver.solve_all(goal, q):
                yield solution.q, solution
            return
        goals = {name: Goal(*place) for name, place in self.tree.fk(q).items()} | {tool: goal}
        for seed in self.tree.sample(np.random.default_rng(0), SEEDS):
            found = self.together.solve(goals, seed)
            if found.solved:
                yield found.q, found.tools[tool]

    def link_in_base(self, link: str, values: Array) -> Array:
        """Return T_base_link (4, 4) at the variables' values (n,)."""
        return self.first.arm.link_in_base(link, self.joints.named(values))

    def moves_as(self, other: ArmModel) -> bool:
        """Whether both have the same joints of the same robot."""
        return self.robot is other.robot and self.joint_names == other.joint_names

    def following_tolerance(self, settings: ArmSettings) -> Array:
        """Return the largest following error of each joint (k,)."""
        return np.where(self.tree.prismatic, settings.max_linear_following_error, settings.max_following_error)

    def arrival_tolerance(self, settings: ArmSettings) -> Array:
        """Return the tolerance of each joint (k,) at its target."""
        return np.where(self.tree.prismatic, settings.linear_arrival_tolerance, settings.arrival_tolerance)

    def driven_by(self, variables: Sequence[str]) -> NDArray[np.bool_]:
        """Return which joints (m,) move with these variables: the variables and their mimic joints."""
        alone = np.isin(self.joints.variables, variables).astype(np.float64)
        return self.joints.expand(np.zeros(self.joints.n), alone)[1] != 0.0

    def path(self, values: Array, positions: Mapping[str, Array]) -> Array:
        """Return a path (k, n): values (n,) of all variables, but positions (at most k,) of those given by name.

        k: of the longest of positions; variables with fewer stay at the last one.
        """
        path = np.tile(values, (max(map(len, positions.values())), 1))
        for i, name in enumerate(self.joints.variables):
            if name in positions:
                path[: len(positions[name]), i] = positions[name]
                path[len(positions[name]) :, i] = positions[name][-1]
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


Models = dict[str, ArmModel]  # by the first of the tools whose joints move together


def build_models(text: str, settings: RobotSettings, before: Mapping[str, ArmModel]) -> Models:
    """Build the models of a description. before: those that there were. Raises IkError."""
    description = _read(text, settings.general, before)
    groups = _groups(description, settings, before)
    return {next(iter(arms)): ArmModel.build(description, arms, settings) for arms in groups}


def check_models(text: str, settings: RobotSettings, before: Mapping[str, ArmModel]) -> None:
    """Raise the IkError that build_models would raise, without building solvers."""
    _groups(_read(text, settings.general, before), settings, before)


def _read(text: str, settings: ArmSettings, before: Mapping[str, ArmModel]) -> Description:
    """Read a description and joint_limits_file, unless a model of before has the same."""
    for model in before.values():
        if (model.text, model.description.limits_file) == (text, settings.joint_limits_file):
            return model.description
    robot, limits = _limited(read_urdf(text), settings.joint_limits_file)
    return Description(text, settings.joint_limits_file, robot, limits)


def _limited(robot: Robot, path: str) -> tuple[Robot, dict[str, JointLimits]]:
    """Return the robot with the limits of a file, if there is one, and these by driving joint."""
    if not path:
        return robot, {}
    found, unused = read_joint_limits(path)
    limits = limits_of_drivers(robot, found)
    spans = [
        Span(name, one.lower, one.upper, one.velocity, robot.joints[name].type == 'prismatic')
        for name, one in found.items()
        if name in robot.joints
    ]
    questions = doubtful_limits(spans, 'joint_limits_file')
    return limited(robot.with_joints(robot.joints, [*unused, *questions]), limits), limits


def _groups(description: Description, settings: RobotSettings, before: Mapping[str, ArmModel]) -> list[dict[str, Arm]]:
    """Return the arms by tool, in groups that share joints, each of one robot with its margins.

    Raises IkError for tools, joints and settings that do not go together.
    """
    arms: dict[str, Arm] = {}
    for tool, own in settings.arms.items():
        with _errors_of(tool):
            arms[tool] = Arm(description.robot, **own.tool())
            listed = own.listed_joints(arms[tool].joint_names)
            missing = [name for name in arms[tool].joint_names if name not in listed]
            if missing:
                raise InputError(
                    f'parameter controller_joints must have every joint of the arm, missing: {join_names(missing)}'
                )
    groups = joined({tool: arm.joint_names for tool, arm in arms.items()})
    if before and {group[0] for group in groups} != before.keys():
        raise InputError('the new description changes which tools share joints; restart ik_node to use it')
    found = []
    for group in groups:
        listed = settings.arms[group[0]].listed_joints(())
        for other, arm in arms.items():
            both = set(listed) & set(arm.joint_names)
            if both and other not in group:
                raise InputError(f'parameter {group[0]}.controller_joints has joint "{min(both)}", which {other} moves')
        members = {tool: arms[tool] for tool in group}
        if len(group) > 1:
            _check_shared(members, settings.general)
        robot = _with_margins(description, members, settings, before.get(group[0]))
        if robot is not description.robot:
            members = {tool: arm.with_robot(robot) for tool, arm in members.items()}
        for tool, arm in members.items():
            with _errors_of(tool):
                _home(settings.arms[tool].home, arm)
                settings.arms[tool].gripper(arm)
        found.append(members)
    return found


def _check_shared(arms: Mapping[str, Arm], settings: ArmSettings) -> None:
    """Raise InputError for arms by tool, or settings, that tools that share joints cannot have."""
    names = ', '.join(arms)
    if len({arm.base_link for arm in arms.values()}) > 1:
        links = ', '.join(f'{name} {arm.base_link}' for name, arm in arms.items())
        raise InputError(f'tools that share joints must have the same base_link, got {links}')
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


def _bounds(arms: Mapping[str, Arm], settings: RobotSettings) -> tuple[object, ...]:
    """Return what decides the margins of the joints of arms by tool."""
    return tuple(settings.arms[tool].bounds() for tool in arms)


def _with_margins(
    description: Description,
    arms: Mapping[str, Arm],
    settings: RobotSettings,
    last: ArmModel | None,
) -> Robot:
    """Return the robot with joint_limit_margins for the joints of arms by tool; that of last if it has them.

    Control takes joints of another robot for another arm.
    """
    if last is not None and last.description is description and last.bounds == _bounds(arms, settings):
        return last.robot
    robot, margins = description.robot, settings.general.joint_limit_margins
    if not any(margins):
        return robot
    joints, balls = dict(robot.joints), robot.balls
    for tool, arm in arms.items():
        with _errors_of(tool):
            own = with_margins(robot, arm.joint_names, margins)
        joints |= {name: own.joints[name] for name in arm.joint_names}
        balls = own.balls
    return robot.with_joints(joints, balls=balls)


def limited_arm(arm: Arm, settings: ArmSettings) -> Arm:
    """Return the arm with joint_limits_file and joint_limit_margins of settings. Raises InputError."""
    robot, _ = _limited(arm.robot, settings.joint_limits_file)
    if any(settings.joint_limit_margins):
        robot = with_margins(robot, arm.joint_names, settings.joint_limit_margins)
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


@contextmanager
def _errors_of(tool: str) -> Iterator[None]:
    """Name the tool in errors on its links and parameters."""
    try:
        yield
    except (InputError, ChainError) as error:
        if not tool:
            raise
        raise InputError(f'tool {tool}: {error}') from None
