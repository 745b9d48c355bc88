# SPDX-License-Identifier: Apache-2.0
"""TreeModel: several tools that share joints, on one robot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.control.robot.arm_collision import arm_collision
from ik_node.control.robot.arm_model import ArmModel, Columns, JointModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.model.joint_set import JointSet
from ik_node.model.tree import Tool, Tree
from ik_node.solver.goal import Goal, Solution
from ik_node.solver.trees.tree_search import KERNELS
from ik_node.solver.trees.tree_solver import TreeSolver

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
            ('schedule', settings.schedule, ('greedy',)),
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
