# SPDX-License-Identifier: Apache-2.0
"""ArmGates: the final checks of a whole arm in every setpoint, after joint_gate.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ik_node.checks import Array
from ik_node.control.checks.collision_gate import CollisionGate
from ik_node.control.checks.cone_gate import ConeGate
from ik_node.control.checks.motion_check import Others
from ik_node.control.checks.tool_gate import ToolGate
from ik_node.control.checks.trajectory_gate import SPACING, Rejection
from ik_node.control.motion.motion import JointMotion
from ik_node.control.robot.arm_model import JointModel
from ik_node.control.settings.workspace import Workspace


class ArmGates:
    """Checks tools, ball joints and self-collision. cones: the gate of the ball joints, or None."""

    def __init__(self, model: JointModel) -> None:
        self._begin(model)

    def _begin(self, model: JointModel) -> None:
        self._model = model
        self._tools = [(ToolGate(tool.arm), columns) for tool, columns in model.tools()]
        self.cones = ConeGate.of(model.robot, model.joint_names)
        self._collision = None if model.collision is None else CollisionGate(model.collision)

    def take(self, model: JointModel) -> None:
        """Change to another model of the same joints; state that both models share is kept."""
        if [gate.arm for gate, _ in self._tools] != [tool.arm for tool, _ in model.tools()]:
            self._begin(model)
            return
        found, self._model = model.collision, model
        if found is None or self._collision is None or self._collision.collision is not found:
            self._collision = None if found is None else CollisionGate(found)

    def set_limits(self, workspaces: Sequence[Workspace], max_speed: float, max_turn_rate: float) -> None:
        """Set the limits of the tools, a workspace for each; see ToolGate."""
        for (gate, _), workspace in zip(self._tools, workspaces, strict=True):
            gate.set_limits(workspace, max_speed, max_turn_rate)

    def restart(self) -> None:
        """Forget the last setpoint: the arm was reinitialised at rest."""
        for tool_gate, _ in self._tools:
            tool_gate.restart()
        for gate in (self.cones, self._collision):
            if gate is not None:
                gate.restart()

    def go_on_from(self, position: Array) -> None:
        """Compare the next setpoint with this one (k,) instead of the last one."""
        for gate, columns in self._tools:
            gate.go_on_from(position[columns])

    def reject(self, motion: JointMotion, dt: float, values: Array) -> str | None:
        """Return why the setpoint after dt [s], with all variables at values (n,), must not be published."""
        for gate, columns in self._tools:
            rejection = gate.reject(motion.position[columns], motion.moving, dt)
            if rejection is not None:
                return rejection
        rejection = None if self.cones is None else self.cones.reject(motion.position)
        if rejection is None and self._collision is not None:
            rejection = self._collision.reject(values)
        return rejection

    def checks(self, values: Array, others: Others) -> list[Callable[[Mapping[str, Array]], Rejection]]:
        """Return the checks of a trajectory, see reject_trajectory.

        values: all variables (n,), for those that do not move. others: where other arms will be.
        """

        def reject_tool(by_name: Mapping[str, Array]) -> Rejection:
            rows = np.moveaxis(np.array([by_name[name] for name in self._model.joint_names]), 0, 2)
            rejection = None if self.cones is None else self.cones.reject_ahead(rows[0])
            if rejection is not None:
                return rejection
            found = [gate.reject_ahead(rows[0][:, c], rows[1][:, c]) for gate, c in self._tools]
            return min((one for one in found if one is not None), default=None)

        def reject_collision(by_name: Mapping[str, Array]) -> Rejection:
            assert self._collision is not None
            own = {name: rows[0] for name, rows in by_name.items()}
            count = len(own[self._model.joint_names[0]])
            path = self._model.path(values, {**others(SPACING), **own})
            hit = self._collision.reject_ahead(path)
            return None if hit is None else (min(hit[0], count - 1), hit[1])

        return [reject_tool] if self._collision is None else [reject_tool, reject_collision]
