# SPDX-License-Identifier: Apache-2.0
"""Servos: between the folder Servos of the panel and the services of ik_servos."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import viser
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.client import Client
from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from ik_node.ros.conversions import report_values
from ik_node.ros.interfaces import STREAM, subscribe
from ik_node.ros.parameters import RemoteParameters
from ik_node.steady import steady

from . import panel
from .panel import AMBER, GREEN, RED, RESUME, Inputs, by_user
from .section import Moment, Section

ON, OFF, RELEASE, HOLD, CLEAR, ZERO = BUTTONS = (
    'Torque on',
    'Torque off',
    'I support the arm: release it',
    'Hold',
    'Clear',
    'Set zero',
)
HINTS = {
    ON: 'Holds every joint where it is.',
    OFF: 'Needs a second click: without torque the arm sinks.',
    RELEASE: 'The torque is off within 3 s.',
    HOLD: 'Holds the arm and rejects commands until Clear or Resume.',
    CLEAR: 'Ends a hold or a fault. Support the arm: an overloaded servo has no torque for a moment.',
    ZERO: 'Sets the zeros so that the present pose is the known pose; the torque must be off.',
}
POSE_HINT = (
    "Positions [rad or m] of joints that you hold, such as 'elbow_flex=1.57'; others keep their zeros."
)
ORDER = 2e6  # of the folder: below the joints
TROUBLE_ORDER = 0.0  # of what is wrong with the arm: above all, since it tells why goals are rejected
TORQUE_OFF = 'the torque is off: switch it on in the folder Servos'
COLOURS = (GREEN, AMBER, RED, RED)  # by level of the status


class ServosPanel:
    """The controls, hidden until there is a driver.

    pressed: the buttons that users pressed, each with the known pose then, until they are taken.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        self.pressed: Inputs[tuple[str, str]] = Inputs()
        self._trouble = gui.add_html('', order=TROUBLE_ORDER, visible=False)
        self._folder = gui.add_folder('Servos', order=ORDER, visible=False)
        with self._folder:
            self._state = gui.add_html('')
            self._buttons = {name: gui.add_button(name, hint=HINTS[name]) for name in BUTTONS[:-1]}
            with gui.add_folder('Zero', expand_by_default=False):
                self._pose = gui.add_text('Known pose', '', hint=POSE_HINT)
                self._buttons[ZERO] = gui.add_button(ZERO, hint=HINTS[ZERO])
            self._said = gui.add_html('')
        self._buttons[RELEASE].visible = False
        self._buttons[RELEASE].color = 'red'
        for name, button in self._buttons.items():
            button.on_click(self._adder(name))

    def _adder(self, name: str) -> Any:
        @by_user
        def add(_: viser.GuiEvent[Any]) -> bool:
            return self.pressed.add((name, self._pose.value), stops=name == HOLD)

        return add

    def show(self, there: bool) -> None:
        """Show the folder if there is a driver."""
        self._folder.visible = there
        self._trouble.visible = there and bool(self._trouble.content)

    def ask(self, on: bool) -> None:
        """Ask whether somebody supports the arm, or ask no more."""
        self._buttons[RELEASE].visible = on

    def show_state(self, state: str, level: int, reason: str, torque: str) -> None:
        """Show state and reason of the driver, and how many joints have torque."""
        colour = COLOURS[min(level, len(COLOURS) - 1)]
        content = panel.pills((state, colour))
        content += panel.row('torque', escape(torque)) + panel.paragraph(reason if reason != state else '')
        self._state.content = panel.box(content)
        trouble = reason if reason != state else TORQUE_OFF if state == 'passive' else ''
        pill = panel.pills((f'Servos: {state}', colour))
        self._trouble.content = panel.box(pill + panel.paragraph(trouble)) if trouble else ''
        self._trouble.visible = self._folder.visible and bool(trouble)

    def say(self, sentence: str, wrong: bool = False) -> None:
        """Show how the last request ended."""
        self._said.content = panel.answer(sentence, 'Not possible' if wrong else '')


NAME = 'ik_servos'
PATIENCE = 20.0  # [s] for a response: a bus may be slow
SUPPORTED = 10.0  # [s] for which the button that releases the arm is shown


class Servos(Section):
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
        self._parameters = RemoteParameters(node, NAME, ('known_pose',), on_set=self._posed)
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
