# SPDX-License-Identifier: Apache-2.0
"""TreeTargets: the targets of tools that share joints. A goal of one leaves the others at theirs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ik_node.checks import Array
from ik_node.control.motion.goal_stream import GoalStream
from ik_node.control.robot.arm_model import Columns, JointModel
from ik_node.control.robot.tree_model import TreeModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.control.state.requests import Request
from ik_node.control.state.target_plan import TargetPlan
from ik_node.control.targets.targets import ArmTargets, Targets
from ik_node.errors import quoted
from ik_node.solver.goal import Cause, Goal, Solution
from ik_node.solver.trees.tree_solver import TreeSolution


class TreeTargets(Targets):
    """Every goal is solved together with the last ones of the other tools, which stay without one.

    Goals of different tools come at different times: every tool has a stream for the joints that only it
    moves, and one for its spare roll; the joints that tools share have one that every goal adds to.
    """

    model: TreeModel

    def __init__(self, model: TreeModel) -> None:
        super().__init__(model)
        self._goals: dict[str, Goal] = {}

    def _new_streams(self) -> list[tuple[Columns, GoalStream]]:
        velocity = self.model.joints.velocity[self.model.index]
        own = [self.model.alone(tool) for tool in self.model.arms]
        shared = np.setdiff1d(np.arange(self.model.tree.n), np.concatenate(own))
        parts = [np.intersect1d(block, columns) for columns in (*own, shared) for block in self.model.blocks]
        return [(columns, GoalStream(velocity[columns])) for columns in parts if columns.size]

    def restart(self) -> None:
        """Restart: the tools keep their present poses."""
        super().restart()
        self._goals.clear()

    def accept(self, plan: TargetPlan, request: Request) -> None:
        """Note that a plan is pursued; a goal that is not pursued leaves the other tools at theirs."""
        if plan.joints is not None:
            super().accept(plan, request)

    def _solve(
        self,
        goal: Goal,
        tool: str,
        arrival: float,
        position: Array,
        settings: ArmSettings,  # noqa: ARG002 - the solver of a tree has one method
    ) -> tuple[Solution, Array, str]:
        before, last = self._goals.copy(), self._last  # read once: teleoperation may clear them concurrently
        goals, solver = {**before, tool: goal}, self.model.solver
        if last is None or not last.streams(arrival):
            found = solver.solve(goals, position)
        elif last.solved and tool in before:
            found = solver.track(goals, last.q, last.before)
        else:
            found = solver.solve(goals, last.q)
        switched = next((str(x.reason) for x in found.tools.values() if x.other_branch is not None), '')
        if switched:
            found = solver.solve(goals, found.q)
        return _told(tool, found), found.q, switched

    def _followed(self, q: Array, plan: TargetPlan, request: Request) -> None:
        """Keep the goal, and add to the streams of the joints that it moves."""
        assert plan.goal is not None
        assert plan.solution is not None
        arm, columns = self.model.of(request.tool)
        reason = plan.solution.reason
        wished = plan.solution.solved or (reason is not None and reason.cause is Cause.CONFLICT)
        self._goals[request.tool] = plan.goal if wished else Goal(*arm.arm.fk(q[columns]))
        others = [self.model.alone(tool) for tool in self.model.arms if tool != request.tool]
        for joints, stream in self._streams:
            if not np.isin(joints, np.concatenate(others)).any():
                stream.add(q[joints], request.received, request.goal_time)


def _told(tool: str, found: TreeSolution) -> Solution:
    """Return the solution of a tool, not solved if another one cannot meet its goal, or stay, meanwhile."""
    own = found.tools[tool]
    if own.solved:
        for name, other in found.tools.items():
            if not other.solved and other.reason is not None:
                sentence = f'tool {quoted(name)}: {other.reason.sentence}'
                return replace(own, status=other.status, reason=replace(other.reason, sentence=sentence))
    return own


def targets_of(model: JointModel) -> Targets:
    """Return the targets for a model."""
    return TreeTargets(model) if isinstance(model, TreeModel) else ArmTargets(model)
