# SPDX-License-Identifier: Apache-2.0
"""Servos: between the folder Servos of the panel and the services of ik_servos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import viser
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.client import Client
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from ik_node.ros.conversions import report_values
from ik_node.ros.interfaces import subscribe
from ik_node.ros.qos import STREAM
from ik_node.ros.remote_parameters import RemoteParameters
from ik_node.steady import steady
from ik_node.viewer.panel.buttons import RESUME
from ik_node.viewer.room import Moment, Room
from ik_node.viewer.servos.panel import CLEAR, HOLD, OFF, ON, RELEASE, ZERO, ServosPanel

NAME = 'ik_servos'
PATIENCE = 20.0  # [s] for a response: a bus may be slow
SUPPORTED = 10.0  # [s] for which the button that releases the arm is shown


class Servos(Room):
    """Shows the state of the driver, and calls its services; it publishes nothing."""

    def __init__(self, node: Node, server: viser.ViserServer) -> None:
        self._node = node
        self._panel = ServosPanel(server.gui)
        self._torque = node.create_client(SetBool, f'{NAME}/torque')
        self._triggers = {
            HOLD: node.create_client(Trigger, f'{NAME}/hold'),
            CLEAR: node.create_client(Trigger, f'{NAME}/clear'),
            ZERO: node.create_client(Trigger, f'{NAME}/set_zero'),
        }
        self._resume = node.create_client(Trigger, 'ik_node/resume')
        self._parameters = RemoteParameters(node, NAME, ('known_pose',), self._posed)
        self._driver = node.resolve_service_name(f'{NAME}/hold').rpartition('/')[0]
        self._status: DiagnosticStatus | None = None
        self._pending: tuple[str, Client, Future, float] | None = None  # button, and until when it is awaited
        self._said: tuple[str, bool] | None = None  # what is to be shown, and whether it is an error
        self._asked_until = 0.0

    def subscribe(self) -> Sequence[Subscription]:
        """Subscribe to the status of the driver."""
        return (subscribe(self._node, DiagnosticArray, '/diagnostics', self._take, STREAM),)

    def _take(self, message: DiagnosticArray) -> None:
        self._status = next((one for one in message.status if one.name == self._driver), self._status)

    def refresh(self) -> None:
        """Show the folder if there is a driver, and give up requests that nobody answers."""
        self._panel.show(self._torque.service_is_ready())
        if self._parameters.busy:
            self._parameters.refresh()
        if self._pending is not None and steady() > self._pending[3]:
            button, client, future, _ = self._pending
            client.remove_pending_request(future)
            self._pending, self._said = None, (f'{button}: no response within {PATIENCE:g} s', True)

    def update(self, moment: Moment) -> None:  # noqa: ARG002
        """Process the inputs of users, and show state and answers."""
        for button, pose in self._panel.pressed.take():
            self._press(button, pose)
        if self._asked_until and steady() > self._asked_until:
            self._ask(False)
        if self._said is not None:
            self._panel.say(*self._said)
            self._said = None
        if self._status is not None:
            values = report_values(self._status)
            level = int.from_bytes(self._status.level, 'little')
            self._panel.show_state(
                values.get('state', ''), level, self._status.message, values.get('torque', '')
            )

    def _press(self, button: str, pose: str) -> None:
        if button == OFF:
            self._ask(True)
            return
        self._ask(False)
        if button == ON:
            self._call(button, self._torque, SetBool.Request(data=True))
        elif button == RELEASE:
            self._call(button, self._torque, SetBool.Request(data=False))
        elif button != ZERO:
            self._call(button, self._triggers[button], Trigger.Request())
        elif not self._parameters.set(known_pose=pose):
            self._said = f'{NAME} is not running', True

    def _ask(self, on: bool) -> None:
        self._asked_until = steady() + SUPPORTED if on else 0.0
        self._panel.ask(on)

    def _posed(self, rejected: str) -> None:
        """Set the zero once the driver knows the pose."""
        if rejected:
            self._said = f'{ZERO}: {rejected}', True
        else:
            self._call(ZERO, self._triggers[ZERO], Trigger.Request())

    def _call(self, button: str, client: Client, request: Any) -> None:
        """Call a service; the answer to the request before is not shown any more."""
        if not client.service_is_ready():
            self._said = f'{button}: {NAME} is not running', True
            return
        self._said = f'{button} …', False
        future = client.call_async(request)
        self._pending = button, client, future, steady() + PATIENCE
        future.add_done_callback(self._answered)

    def _answered(self, future: Future) -> None:
        if self._pending is None or self._pending[2] is not future:
            return
        answer, button = future.result(), self._pending[0]
        if button == CLEAR and answer.success and self._resume.service_is_ready():
            self._call(RESUME, self._resume, Trigger.Request())
            return
        self._pending, self._said = None, (f'{button}: {answer.message}', not answer.success)
