# SPDX-License-Identifier: Apache-2.0
"""Methods: between the folder Methods of the panel, the parameters of ik_node, and slow motion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import viser
from rclpy.node import Node
from sensor_msgs.msg import JointState

from ik_node.ros.remote_parameters import RemoteParameters
from ik_node.viewer.links.lengths import MEASURED, OUTPUT
from ik_node.viewer.methods.methods_panel import SOLVER, SWITCHES_OFF, MethodsPanel
from ik_node.viewer.methods.slow_motion import SlowMotion
from ik_node.viewer.methods.slow_motion_panel import SlowMotionPanel
from ik_node.viewer.room import Moment, Room, Shown
from ik_node.viewer.tool import ViewedTool

# Parameters of ik_node; the last two decide whether the lengths of links may change.
TOLERANCES = ('position_tolerance', 'direction_tolerance')
PARAMETERS = (SOLVER, SWITCHES_OFF, *TOLERANCES, OUTPUT, MEASURED)


class Methods(Room):
    """parameters: of ik_node, as last known."""

    def __init__(self, node: Node, server: viser.ViserServer) -> None:
        self._panel = MethodsPanel(server.gui)
        self._slow = SlowMotion(server, SlowMotionPanel(server.gui, self._panel.folder))
        self.parameters = RemoteParameters(node, 'ik_node', PARAMETERS, self._panel.answer)
        self._shown: Shown | None = None
        self._watching = False
        self._tool: ViewedTool | None = None  # whose gizmo moves the ghosts

    @property
    def watching(self) -> bool:
        """Whether users watch slow motion: the gizmo does not command the arm then."""
        return self._slow.on

    def moment(self, tool: ViewedTool, values: Mapping[str, float], states: JointState | None) -> Moment:
        """Return what is known with joint positions by name, and joint_states of this frame."""
        known = self.parameters.values
        options = {name: known[name] for name in TOLERANCES if name in known}
        return Moment(tool, values, states, not self.watching, options)

    def dragged(self, tool: ViewedTool) -> None:
        """Restart soon: a user has moved the gizmo of a tool."""
        if tool.arm is not None:
            self._tool = tool
            self._slow.choose(tool.arm)
            self._slow.moved()

    def show(self, shown: Shown | None) -> None:
        """Set the tools of a robot, after the scene was cleared, or none."""
        self._shown = shown
        self._tool = shown.tools[0] if shown is not None else None
        if shown is None or self._tool is None:
            self._slow.show(None, None)
        else:
            self._slow.show(self._tool.arm, shown.drawing)

    def update(self, moment: Moment) -> None:
        """Show the solver of ik_node and the next frame of slow motion."""
        shown = self._shown
        changed: dict[str, Any] = self._panel.take() if shown is not None else {}
        if changed and not self.parameters.set(**changed):
            self._panel.answer('ik_node is not running')
        self._panel.show(self.parameters.values)
        if self._watching and not self.watching and shown is not None:
            for tool in shown.tools:
                tool.release_gizmo()
        self._watching = self.watching
        scene = self._tool.scene if self._tool is not None else None
        T_base_goal = scene.gizmo_pose() if scene is not None and self.watching else None
        self._slow.update(T_base_goal, moment.values, self._panel.switches_off, **moment.options)

    def close(self) -> None:
        """End the threads."""
        self._slow.close()
