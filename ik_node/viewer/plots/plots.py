# SPDX-License-Identifier: Apache-2.0
"""Plots: keeps what the arms did in the last seconds, and shows it while users want to see it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import viser
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ik_node.errors import LARGEST
from ik_node.ros.interfaces import subscribe
from ik_node.ros.qos import MEASURED
from ik_node.steady import steady
from ik_node.viewer.panel.html import Colour
from ik_node.viewer.plots.history import Commands, History, Row, positions, velocities
from ik_node.viewer.plots.panel import PlotsPanel
from ik_node.viewer.room import Moment, Room, Shown
from ik_node.viewer.scene.ghost import Ghost
from ik_node.viewer.tool import ViewedTool

REDRAWN = 0.2  # [s] from one picture to the next
COLOUR: Colour = (100, 116, 139)  # of the ghost
SWELLING = 1.04  # larger than the arm, so that surfaces that coincide do not flicker
STATES, COMMANDED, MEASURED_STATES = 'joint_states', 'joint_commands', 'measured_joint_states'


class Plots(Room):
    """The last seconds of the tool with the newest goal. It publishes nothing."""

    def __init__(self, node: Node, server: viser.ViserServer) -> None:
        self._node, self._server = node, server
        self._panel = PlotsPanel(server.gui)
        self._shown: Shown | None = None
        self._histories: dict[str, History] = {}  # by the name of the tool
        self._ghost: Ghost | None = None
        self._past: tuple[float, dict[str, list[Row]]] | None = None  # what users look back at, and from when
        self._drawn = 0.0  # (steady)
        self._commands: dict[str, Commands] = {}  # by topic
        self._measured: JointState | None = None

    def subscribe(self) -> Sequence[Subscription]:
        """Subscribe to commands and measurements of a driver."""
        self._measured, self._commands = None, {STATES: Commands(), COMMANDED: Commands()}
        return (
            subscribe(self._node, JointState, MEASURED_STATES, self._measure, MEASURED),
            subscribe(self._node, JointState, COMMANDED, self._commands[COMMANDED].add, MEASURED),
        )

    def _measure(self, message: JointState) -> None:
        self._measured = message

    def show(self, shown: Shown | None) -> None:
        """Forget the last robot and show another, after the scene was cleared, or none."""
        self._shown, self._ghost, self._past = shown, None, None
        self._panel.set_arm(None)
        self._histories = {}
        for tool in shown.tools if shown is not None else ():
            if tool.arm is not None:
                self._histories[tool.name] = History(tool.arm)

    def update(self, moment: Moment) -> None:
        """Keep the newest joints, and draw if it is time to."""
        self._panel.show_controls()
        shown, now = self._shown, steady()
        if shown is None or not moment.values:
            return
        states = moment.states
        if states is not None:
            self._commands[STATES].add(states)
            for tool in shown.tools:
                self._keep(tool, states, now)
        tool = moment.tool
        back = self._panel.back
        if back is None:
            self._past = None
        elif self._past is None:
            self._past = now, {name: history.rows() for name, history in self._histories.items()}
        self._place_ghost(shown, back, moment)
        if not self._panel.on:
            self._panel.set_arm(None)
        elif tool.arm is not None and now >= self._drawn + REDRAWN:
            self._drawn = now
            self._panel.set_arm(tool.arm)
            since, past = self._past or (now, {tool.name: self._histories[tool.name].rows()})
            self._panel.show(tool.arm, past[tool.name], since, back)

    def _keep(self, tool: ViewedTool, states: JointState, now: float) -> None:
        """Keep a row of a tool if one is due; states: the newest joint_states."""
        history = self._histories.get(tool.name)
        if history is None or tool.arm is None or not history.due(now):
            return
        names = tool.arm.joint_names
        q = positions(states, names)
        if not (np.abs(q) <= LARGEST).all():  # False for NaN
            return
        pose = tool.scene.gizmo_pose() if tool.scene is not None and tool.goal_shown else None
        directed = tool.scene is not None and tool.scene.directed
        following = self._commands[COMMANDED].behind(states, names)
        if self._measured is not None:
            following = self._commands[STATES].behind(self._measured, names)
        history.add(now, q, velocities(states, names), following, pose, directed)

    def _place_ghost(self, shown: Shown, back: float | None, moment: Moment) -> None:
        """Show where all arms were, if users look back."""
        if back is None or self._past is None:
            if self._ghost is not None:
                self._ghost.hide()
            return
        since, past = self._past
        values = dict(moment.values)
        for tool in shown.tools:
            rows = past.get(tool.name)
            if rows and tool.arm is not None:
                row = min(rows, key=lambda one: abs(one.time - since - back))
                values |= dict(zip(tool.arm.joint_names, row.q.tolist(), strict=True))
        if self._ghost is None:
            arms = [tool.arm for tool in shown.tools if tool.arm is not None]
            self._ghost = Ghost(self._server, '/past', arms, shown.drawing, COLOUR, SWELLING)
        self._ghost.place(values)
