# SPDX-License-Identifier: Apache-2.0
"""Diagnostics: /diagnostics of the node, and reminders of conditions that prevent motion."""

from __future__ import annotations

from collections.abc import Sequence

from diagnostic_msgs.msg import DiagnosticArray

from ik_node import kernels
from ik_node.control.controller.arm_state import NO_MODEL
from ik_node.control.state.report import Level
from ik_node.control.state.states import State
from ik_node.ros.goals.node_time import NO_CLOCK
from ik_node.ros.goals.reports import diagnostic
from ik_node.ros.interfaces import DIAGNOSTICS
from ik_node.ros.node.garbage import Garbage
from ik_node.ros.node.robot_switch import RobotSwitch
from ik_node.ros.tools.tool_interface import NodeContext, ToolInterface
from ik_node.steady import steady

PATIENCE = 2.0  # [s] without a description or a clock after which it is logged
REMINDER = 10.0  # [s] to the second line in the log while the arm cannot move; then twice as long each time


class Diagnostics:
    """Publishes the condition of every tool, and reports those that last."""

    def __init__(
        self,
        shared: NodeContext,
        tools: Sequence[ToolInterface],
        switch: RobotSwitch,
        garbage: Garbage | None,
    ) -> None:
        self._shared, self._tools, self._switch, self._garbage = shared, tools, switch, garbage
        self._log = shared.node.get_logger()
        self._started = steady()
        self._announced: dict[str, str] = {}  # by tool, the last condition other than OK
        self._since: dict[str, float] = {}  # when it began (steady)
        self._remind_at: dict[str, float] = {}  # when it is logged again (steady)
        self._kernels = kernels.KernelState(kernels.Stage.PLAIN)
        self._diagnostics = DIAGNOSTICS.publisher(shared.node)

    def publish(self, period: float) -> None:
        """Publish the condition of every tool; period [s]: of the setpoints."""
        self._announce_kernels()
        array = DiagnosticArray()
        summary = self._shared.statistics.summary(period)
        for tool in self._tools:
            tool.publish_due()  # there are no setpoints while simulated time is paused
            state = tool.leader.own.state  # read first: a later one has reports of its own
            level, message = self._condition(tool)
            if tool.leads:
                self._remind(tool, state, level, message)
            values = {**summary, 'kernels': str(self._kernels), **tool.diagnostics(message)}
            name = self._shared.node.get_fully_qualified_name() + (f'/{tool.tool}' if tool.tool else '')
            array.status.append(diagnostic(level, name, message, values))
        array.header.stamp = self._shared.node.get_clock().now().to_msg()
        self._diagnostics.publish(array)

    def _announce_kernels(self) -> None:
        """Report when kernels are being compiled, and when the compiled ones are in use."""
        now = kernels.state()
        if self._garbage is not None:
            self._garbage.on_stage(now.stage)
        before, self._kernels = self._kernels, now
        if now.stage is before.stage or not (now.compiled or now.reason):
            return
        level = Level.WARN if now.reason else Level.OK
        for tool in self._tools:
            if tool.leads:
                tool.own.tell(level, str(now), logged=tool is self._tools[0])

    def _remind(self, tool: ToolInterface, state: State, level: Level, message: str) -> None:
        """Report a condition that lasts, and log it from time to time; state: in which it was found."""
        if level is Level.OK or steady() <= self._started + PATIENCE:
            return
        if message != self._announced.get(tool.tool):  # the controller has reported its own conditions
            silent = tool.snapshot() is None or self._shared.time.stands
            if silent and not tool.own.tell(level, message, 'waiting', state):
                return
            self._since[tool.tool] = steady()
            self._remind_at[tool.tool] = steady() + REMINDER
        elif steady() >= self._remind_at[tool.tool]:
            self._remind_at[tool.tool] += max(steady() - self._since[tool.tool], REMINDER)
            self._log.info(tool.label(message))
        self._announced[tool.tool] = message

    def _condition(self, tool: ToolInterface) -> tuple[Level, str]:
        level, message = tool.leader.own.condition()
        if message == NO_MODEL and self._switch.rejected:
            return Level.ERROR, self._switch.rejected
        if message == NO_MODEL and self._switch.has_description:
            return Level.OK, 'preparing the arm'
        slow = NO_CLOCK if self._shared.time.stands else self._shared.inbox.slow if level is Level.OK else ''
        return (Level.WARN, slow) if slow else (level, message)
