# SPDX-License-Identifier: Apache-2.0
"""ArmServices: the services of ik_node behind the buttons Home, Stop and Resume."""

from __future__ import annotations

from rclpy.node import Node
from std_srvs.srv import Trigger

from ik_node.viewer.panel.buttons import BUTTONS, STOP


class ArmServices:
    """The services of ik_node behind the buttons Home, Stop and Resume."""

    def __init__(self, node: Node, before: str) -> None:
        """before: prefix of the names of the services, such as left/; empty: those for all tools."""
        self._log = node.get_logger()
        self._stop_waits = False  # for a node that did not provide the service
        self._clients = {
            button: node.create_client(Trigger, f'ik_node/{before}{button.lower()}') for button in BUTTONS
        }

    def call(self, button: str) -> None:
        """Call the service of a button. Without the service a stop is pending, other buttons are ignored."""
        client = self._clients[button]
        self._stop_waits = False
        if client.service_is_ready():
            client.call_async(Trigger.Request())
            return
        self._stop_waits = button == STOP
        waits = '; it will be called when it is' if self._stop_waits else ''
        self._log.warning(f'{button}: the service {client.srv_name} is not available{waits}')

    def refresh(self) -> None:
        """Call a pending stop once its service is available; call regularly."""
        if self._stop_waits and self._clients[STOP].service_is_ready():
            self.call(STOP)
