# SPDX-License-Identifier: Apache-2.0
"""Services for all tools, in addition to those of each tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ik_node.control.state.states import READY
from ik_node.ros.interfaces import HOME, STOP
from ik_node.ros.tools.tool_interface import NodeContext, ServiceResult, ToolInterface, answered, offer_resume


def offer_for_all(shared: NodeContext, tools: Sequence[ToolInterface]) -> None:
    """Provide ~/home, ~/stop and ~/resume for all tools; responses contain the result of each."""

    def of_all(act: Callable[[ToolInterface], ServiceResult], leaders_only: bool) -> ServiceResult:
        answers = {tool.tool: act(tool) for tool in tools if tool.leads or not leaders_only}
        said = '; '.join(f'{tool}: {message}' for tool, (_, message) in answers.items())
        return all(success for success, _ in answers.values()), said

    HOME.provide(shared.node, answered(lambda: of_all(ToolInterface.home, leaders_only=False)))
    stop = answered(lambda: of_all(ToolInterface.stop, leaders_only=True))
    STOP.provide(shared.node, stop, by=shared.urgent)
    offer_resume(shared, lambda: of_all(resumed, leaders_only=True))


def resumed(tool: ToolInterface) -> ServiceResult:
    """Resume an arm, unless it has not stopped."""
    return (True, 'not stopped') if tool.own.state in READY else tool.resume()
