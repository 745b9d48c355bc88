# SPDX-License-Identifier: Apache-2.0
"""Services for all tools, in addition to those of each tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rclpy.node import Node

from ik_node.control.state.states import READY
from ik_node.ros.interfaces import HOME, RESUME, STOP, Service
from ik_node.ros.tools.tool_interface import ServiceResult, ToolInterface, answered


def offer_for_all(node: Node, urgent: Node, tools: Sequence[ToolInterface]) -> None:
    """Provide ~/home, ~/stop and ~/resume for all tools; responses contain the result of each.

    urgent: as in NodeContext.
    """

    def offer(
        service: Service,
        act: Callable[[ToolInterface], ServiceResult],
        leaders_only: bool,
        by: Node | None = urgent,
    ) -> None:
        def of_all() -> ServiceResult:
            answers = {tool.tool: act(tool) for tool in tools if tool.leads or not leaders_only}
            said = '; '.join(f'{tool}: {message}' for tool, (_, message) in answers.items())
            return all(success for success, _ in answers.values()), said

        service.provide(node, answered(of_all), by=by)

    offer(HOME, ToolInterface.home, leaders_only=False, by=None)
    offer(STOP, ToolInterface.stop, leaders_only=True)
    offer(RESUME, resumed, leaders_only=True)


def resumed(tool: ToolInterface) -> ServiceResult:
    """Resume an arm, unless it has not stopped."""
    return (True, 'not stopped') if tool.own.state in READY else tool.resume()
