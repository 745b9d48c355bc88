"""TreeTargets: the targets of tools that share joints. A goal of one leaves the others at theirs."""

from __future__ import annotations

from dataclasses import replace

from ik_node.checks import Array
from ik_node.control.goal_stream import STREAM_GAP
from ik_node.control.joint_model import JointModel
from ik_node.control.requests import Request
from ik_node.control.settings import ArmSettings
from ik_node.control.targets import Answer, ArmTargets, Targets
from ik_node.control.tree_model import TreeModel
from ik_node.solver.goal import Cause, Goal, Solution
from ik_node.solver.tree_solver import TreeSolution


class TreeTargets(Targets):
    """Every goal is solved together with the last ones of the other tools, which stay without one."""

    model: TreeModel

    def __init__(self, model: TreeModel) -> None:
        super().__init__(model)
        self._goals: dict[str, Goal] = {}
        self._heard: dict[str, float] = {}  # by tool, when its last goal was received (time.perf_counter)
        self._new: set[str] = set()  # tools with a goal since the stream was last added to

    def restart(self) -> None:
        """Begin anew: the tools are where they are."""
        super().restart()
        self._goals.clear()
        self._heard.clear()
        self._new.clear()

    def _solve(
        self,
        goal: Goal,
        tool: str,
        arrival: float,
        position: Array,
        settings: ArmSettings,  # noqa: ARG002 - the solver of a tree has one method
    ) -> tuple[Solution, Array, str]:
        goals = {**self._goals, tool: goal}
        solver, last = self.model.solver, self._last
        if last is None or not self._streams(arrival):
            found = solver.solve(goals, position)
        elif last.solved and all(name in self._heard for name in goals):
            found = solver.track(goals, last.q, last.before)
        else:
            found = solver.solve(goals, last.q)
        switched = next((str(x.reason) for x in found.tools.values() if x.other_branch is not None), '')
        if switched:
            found = solver.solve(goals, found.q)
        self._beside = {name: _told(name, found) for name in found.tools if name != tool}
        return _told(tool, found), found.q, switched

    def _followed(self, q: Array, answer: Answer, request: Request) -> None:
        """Add to the stream once every tool that is being moved has had its turn.

        Between the goals of two tools only one of them moves: velocities would then alternate.
        """
        assert answer.goal is not None
        assert answer.solution is not None
        arm, columns = self.model.of(request.tool)
        reason = answer.solution.reason
        wished = answer.solution.solved or (reason is not None and reason.cause is Cause.CONFLICT)
        self._goals[request.tool] = answer.goal if wished else Goal(*arm.arm.fk(q[columns]))
        self._heard[request.tool] = request.arrival
        self._new.add(request.tool)
        moving = {name for name, heard in self._heard.items() if request.arrival - heard < STREAM_GAP}
        if self._new >= moving:
            self._new.clear()
            self._stream.add(q, request.received, request.goal_time)


def _told(tool: str, found: TreeSolution) -> Solution:
    """Return the solution of a tool, not solved if another tool cannot meet its goal together with it."""
    own = found.tools[tool]
    other = next((x for x in found.tools.values() if own.solved and not x.solved), own)
    return replace(own, status=other.status, reason=other.reason)


def targets_of(model: JointModel) -> Targets:
    """Return the targets for a model."""
    return TreeTargets(model) if isinstance(model, TreeModel) else ArmTargets(model)
