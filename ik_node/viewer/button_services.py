# SPDX-License-Identifier: Apache-2.0
"""The services of ik_node behind the buttons Home, Stop and Resume."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from rclpy.node import Node
from rclpy.task import Future as Answer
from std_srvs.srv import Trigger

from ik_node.ros.spin import SideNode
from ik_node.steady import steady
from ik_node.viewer.goal_track import PATIENCE
from ik_node.viewer.panel.buttons import ALL_TOOLS, BUTTONS, HOME, STOP, ArmPress
from ik_node.viewer.panel.inputs import Inputs
from ik_node.viewer.tool import ViewedTool

TAKEN = 1.0  # [s] in which ik_node should answer a stop


class ArmButtons:
    """Calls the services of buttons. Home waits for up to PATIENCE until no goal publisher overrides it."""

    def __init__(
        self,
        node: Node,
        names: Sequence[str],
        tools: Sequence[ViewedTool],
        pressed: Inputs[ArmPress],
        refused: Callable[[], str],
    ) -> None:
        """tools: with these names, once the page has their panels.

        pressed: the presses that the executor has not processed yet. refused: why only stops are allowed.
        """
        self._log, self._tools, self._pressed = node.get_logger(), tools, pressed
        self._refused = refused
        self._services = {
            name: ButtonServices(node, f'{name}/' if name else '')
            for name in dict.fromkeys((ALL_TOOLS, *names))
        }
        self._urgent = SideNode(node, 'stop')  # its client waits for no other work of the page
        self._stop = self._urgent.node.create_client(Trigger, node.resolve_service_name('ik_node/stop'))
        self._urgent.start()
        self._home: tuple[ArmPress, float] | None = None  # and until when it waits (steady)

    def press(self, press: ArmPress) -> None:
        """End the goals of the tools and call the service."""
        for tool in self._concerned(press):
            tool.end_goal()
        self._home = None
        if press.button != STOP and self._refused():
            return
        if press.button == HOME:
            self._home = press, steady() + PATIENCE
        else:
            self._services[press.tool].call(press.button)

    async def stop_at_once(self) -> str:
        """Stop all tools from another thread: the executor may be drawing another robot.

        The executor stops them again, after what was pressed before and waits, such as Resume. Returns ''
        once ik_node has taken the stop, else why it has not.
        """
        self._pressed.add(ArmPress(STOP), stops=True)
        if not self._stop.service_is_ready():
            return 'ik_node is not running'
        taken: Future[str] = Future()

        def answered(answer: Answer) -> None:
            said = answer.result()
            if taken.set_running_or_notify_cancel():
                taken.set_result('' if said.success else said.message)

        request = self._stop.call_async(Trigger.Request())
        request.add_done_callback(answered)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(taken), TAKEN)
        except asyncio.TimeoutError:
            self._stop.remove_pending_request(request)
            return 'ik_node does not answer'

    def close(self) -> None:
        """End the thread that serves the stop."""
        self._urgent.close()

    def refresh(self) -> None:
        """Call what waited; call regularly."""
        for services in self._services.values():
            services.refresh()
        if self._home is None:
            return
        press, until = self._home
        if not any(tool.track.may_move for tool in self._concerned(press)):
            self._home = None
            self._services[press.tool].call(HOME)
        elif steady() > until:
            self._home = None
            self._log.warning('Home: ik_goals has not ended its track, so ~/home was not called')

    def _concerned(self, press: ArmPress) -> list[ViewedTool]:
        return [tool for tool in self._tools if press.tool in (ALL_TOOLS, tool.name)]


class ButtonServices:
    """The services of ik_node behind the buttons Home, Stop and Resume."""

    def __init__(self, node: Node, before: str) -> None:
        """before: prefix of the names of the services, such as left/; empty: those for all tools."""
        self._log = node.get_logger()
        self._stop_waits = False  # for a node that did not provide the service
        self._clients = {
            button: node.create_client(Trigger, f'ik_node/{before}{button.lower()}') for button in BUTTONS
        }

    def ready(self) -> bool:
        """Return whether the service of Stop is available."""
        return self._clients[STOP].service_is_ready()

    def call(self, button: str) -> None:
        """Call the service of a button. Without the service a stop is pending, other buttons are ignored.

        Only a resume ends a pending stop.
        """
        client = self._clients[button]
        self._stop_waits = self._stop_waits and button == HOME
        if client.service_is_ready():
            client.call_async(Trigger.Request())
            return
        self._stop_waits = self._stop_waits or button == STOP
        waits = '; it will be called when it is' if button == STOP else ''
        self._log.warning(f'{button}: the service {client.srv_name} is not available{waits}')

    def refresh(self) -> None:
        """Call a pending stop once its service is available; call regularly."""
        if self._stop_waits and self.ready():
            self.call(STOP)
