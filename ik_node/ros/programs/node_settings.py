# SPDX-License-Identifier: Apache-2.0
"""NodeSettings: all parameters of a running ik_node, as the settings that it has made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from rcl_interfaces.srv import GetParameters
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.task import Future

from ik_node.control.settings.arm import ArmSettings
from ik_node.control.settings.robot import OF_TOOL, RobotSettings, tool_names
from ik_node.errors import InputError

DESCRIPTION = ('robot_description', 'urdf_file')  # the topic has it
GENERAL = tuple(field.name for field in dataclasses.fields(ArmSettings) if field.name not in DESCRIPTION)


class NodeSettings:
    """Asks ik_node for its parameters. settings: once they have arrived. failure: why there are none."""

    def __init__(self, node: Node) -> None:
        self._client = node.create_client(GetParameters, 'ik_node/get_parameters')
        self._pending: Future | None = None
        self.settings: RobotSettings | None = None
        self.failure = ''

    @property
    def available(self) -> bool:
        """Whether ik_node is there."""
        return bool(self._client.service_is_ready())

    @property
    def idle(self) -> bool:
        """Whether no answer is pending."""
        return self._pending is None

    def ask(self) -> None:
        """Ask for them; settings is None until they arrive."""
        self.settings, self.failure = None, ''
        self._get(GENERAL, self._take_general)

    def _get(self, names: Sequence[str], then: Callable[[dict[str, Any]], None]) -> None:
        if self._pending is not None:
            self._client.remove_pending_request(self._pending)
        future = self._pending = self._client.call_async(GetParameters.Request(names=list(names)))

        def answered(_: Future) -> None:
            if future is not self._pending:
                return
            self._pending = None
            found = map(parameter_value_to_python, future.result().values)
            pairs = zip(names, found, strict=False)
            try:
                then({name: _plain(value) for name, value in pairs if value is not None})
            except InputError as error:
                self.failure = f'ik_node has other parameters than this version: {error}'

        future.add_done_callback(answered)

    def _take_general(self, values: dict[str, Any]) -> None:
        general = ArmSettings(**values)
        tools = tool_names(general.tools)
        if not tools:
            self.settings = RobotSettings(general, {})
            return

        def take_own(own: dict[str, Any]) -> None:
            named = {
                tool: {name: own[f'{tool}.{name}'] for name in OF_TOOL if f'{tool}.{name}' in own}
                for tool in tools
            }
            self.settings = RobotSettings(general, named)

        self._get([f'{tool}.{name}' for tool in tools for name in OF_TOOL], take_own)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) else tuple(value)
