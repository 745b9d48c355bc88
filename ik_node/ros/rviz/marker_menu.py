# SPDX-License-Identifier: Apache-2.0
"""MarkerMenu: the context menu of the marker, with services and parameters of ik_node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

from rclpy.node import Node
from std_srvs.srv import Trigger

from ik_node.control.settings.arm import ArmSettings
from ik_node.ros.remote_parameters import RemoteParameters

BUTTONS = 'Home', 'Stop', 'Resume'  # each is a service of ik_node
MENUS = {'Method': 'solver', 'On unreachable': 'on_unreachable'}  # of parameters of ik_node


class MarkerMenu:
    """The entries of a MenuHandler of interactive_markers; pressed() is called before a service."""

    def __init__(self, node: Node, menu: Any, pressed: Callable[[], None]) -> None:
        self._menu, self._pressed, self._log = menu, pressed, node.get_logger()
        self._parameters = RemoteParameters(node, 'ik_node', list(MENUS.values()), self._rejected)
        self._checked: dict[str, str] = {}
        for name in BUTTONS:
            client = node.create_client(Trigger, f'ik_node/{name.lower()}')
            menu.insert(name, callback=partial(self._press, name, client))
        choices = {field.name: field.metadata['choices'] for field in fields(ArmSettings)}
        self._entries: dict[tuple[str, str], int] = {}  # handles by parameter and value
        for title, parameter in MENUS.items():
            parent = menu.insert(title)
            for value in choices[parameter]:
                handle = menu.insert(value, parent=parent, callback=partial(self._choose, parameter, value))
                menu.setCheckState(handle, menu.UNCHECKED)
                self._entries[parameter, value] = handle

    def refresh(self) -> None:
        """Request the values of the parameters."""
        self._parameters.refresh()

    def apply(self, server: Any, name: str) -> None:
        """Add the menu to a marker of server."""
        self._checked = {}
        self._menu.apply(server, name)

    def check(self, server: Any) -> None:
        """Tick the entries of the present values."""
        if self._parameters.values == self._checked:
            return
        self._checked = dict(self._parameters.values)
        for (parameter, value), handle in self._entries.items():
            checked = self._checked.get(parameter) == value
            self._menu.setCheckState(handle, self._menu.CHECKED if checked else self._menu.UNCHECKED)
        self._menu.reApply(server)

    def _press(self, name: str, client: Any, _: object) -> None:
        self._pressed()
        if client.service_is_ready():
            client.call_async(Trigger.Request()).add_done_callback(partial(self._answered, name))
        else:
            self._rejected(f'{name}: the service {client.srv_name} is not available')

    def _answered(self, name: str, future: Any) -> None:
        if not future.result().success:
            self._rejected(f'{name}: {future.result().message}')

    def _choose(self, parameter: str, value: str, _: object) -> None:
        if not self._parameters.set(**{parameter: value}):
            self._rejected('the parameters of ik_node are not available')

    def _rejected(self, reason: str) -> None:
        if reason:
            self._log.warning(reason)
