# SPDX-License-Identifier: Apache-2.0
"""Servos: between the folder Servos of the panel and the services of ik_servos."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.client import Client
from rclpy.subscription import Subscription
from rclpy.task import Future
from std_srvs.srv import SetBool, Trigger

from ik_node.ros.conversions import report_values
from ik_node.ros.interfaces import STREAM, subscribe
from ik_node.ros.parameters import RemoteParameters
from ik_node.steady import steady

from . import panel
from .panel import AMBER, GREEN, RED, RESUME, TORQUE_ON, update
from .section import Frame, Page, Section

ON, OFF, RELEASE = TORQUE_ON, 'Torque off', 'I support the arm: release it'
HOLD, CLEAR, ZERO = 'Hold', 'Clear', 'Set zero'
HINTS = {
    ON: 'Holds every joint where it is.',
    OFF: 'Needs a second click: without torque the arm sinks.',
    RELEASE: 'The torque is off within 3 s.',
    HOLD: 'Holds the arm and rejects commands until Clear or Resume.',
    CLEAR: 'Ends a hold or a fault. Support the arm: an overloaded servo has no torque for a moment.',
    ZERO: 'Sets the zeros so that the present pose is the known pose; the torque must be off.',
}
POSE_HINT = "Positions [rad or m] of joints that you hold, such as 'elbow_flex=1.57'; others keep their zeros."
ORDER = 2e6  # of the folder: below the joints
TORQUE_OFF = f'the torque is off: press {ON}, then give a goal'
COLOURS = (GREEN, AMBER, RED, RED)  # by level of the status


NAME = 'ik_servos'
PATIENCE = 20.0  # [s] for a response: a bus may be slow
SUPPORTED = 60.0  # [s] for which the button that releases the arm is shown


class Servos(Section):
    """Shows the state of the driver and calls its services. It is hidden without a driver."""

    def __init__(self, page: Page, alarm: Callable[[str, str, str, bool], object], faulted: Callable[[], bool]) -> None:
        """Add the folder.

        alarm: called with what is wrong with the servos in a word and a sentence, '' if nothing, a colour, and
        whether nothing else can be done before. faulted: whether ik_node has faulted, as it does without torque.
        """
        super().__init__(page, 'Servos', ORDER, first=True, expand_by_default=True, visible=False)
        node, self._alarm, self._faulted = self.node, alarm, faulted
        self.torque_off = False
        self._resume_until = 0.0  # until when a fault is ended once the torque is on
        self._torque = node.create_client(SetBool, f'{NAME}/torque')
        hold, clear, self._set_zero = (
            node.create_client(Trigger, f'{NAME}/{service}') for service in ('hold', 'clear', 'set_zero')
        )
        self._resume = node.create_client(Trigger, 'ik_node/resume')
        self._parameters = RemoteParameters(node, NAME, ('known_pose',), on_set=self._posed)
        self._driver = node.resolve_service_name(f'{NAME}/hold').rpartition('/')[0]
        self._status: DiagnosticStatus | None = None
        self._pending: tuple[str, Client, Future, float] | None = None  # button, and until when it is awaited
        self._support_until = 0.0  # when the question whether somebody supports the arm ends, 0 without it
        switch_off = SetBool.Request(data=False)
        with self.folder:
            self._state = self.gui.add_html('')
            self._add_button(ON, self.switch_on)
            self._add_button(OFF, self._confirm_support, confirms=True)
            self._release = self._add_button(
                RELEASE,
                lambda: self._call(RELEASE, self._torque, switch_off),
                visible=False,
                color=panel.ALERT,
            )
            self._add_button(HOLD, lambda: self._call(HOLD, hold, Trigger.Request()), always=True)
            self._add_button(CLEAR, lambda: self._call(CLEAR, clear, Trigger.Request()))
            with self.gui.add_folder('Zero', expand_by_default=False):
                self._pose = self.gui.add_text('Known pose', '', hint=POSE_HINT)
                self._add_button(ZERO, self._set_pose)
            self._answer = self.gui.add_html('')

    def _add_button(self, name: str, act: Callable[[], object], confirms: bool = False, **options: Any) -> Any:
        """Add a button; asks: it asks for support, any other one ends the question."""

        def press() -> None:
            if not confirms:
                self._end_question()
            act()

        return self.button(name, press, hint=HINTS[name], **options)

    def switch_on(self) -> None:
        """Switch the torque on, then end the fault that its absence was to ik_node; a stop stays."""
        self._end_question()
        self._call(ON, self._torque, SetBool.Request(data=True))

    def _confirm_support(self) -> None:
        self._support_until = steady() + SUPPORTED
        self._release.visible = True

    def _end_question(self) -> None:
        self._support_until = 0.0
        self._release.visible = False

    def subscribe(self) -> Sequence[Subscription]:
        """Subscribe to the status of the driver."""
        return (subscribe(self.node, DiagnosticArray, '/diagnostics', self._take, STREAM),)

    def _take(self, message: DiagnosticArray) -> None:
        self._status = next((one for one in message.status if one.name == self._driver), self._status)

    def refresh(self) -> None:
        """Show the folder if there is a driver, and give up requests that nobody answers."""
        self.folder.visible = self._torque.service_is_ready()
        if not self.folder.visible:
            self._alarm('', '', GREEN, False)
            self.torque_off = False
        if self._parameters.busy:
            self._parameters.refresh()
        if self._pending is not None and steady() > self._pending[3]:
            button, client, future, _ = self._pending
            client.remove_pending_request(future)
            self._pending = None
            self._reject(f'{button}: no response within {PATIENCE:g} s')

    def update(self, frame: Frame) -> None:  # noqa: ARG002
        """Show the state of the driver."""
        if self._support_until and steady() > self._support_until:
            self._end_question()
        if self._status is not None:
            self._show_state(self._status)

    def _show_state(self, status: DiagnosticStatus) -> None:
        values = report_values(status)
        state = values.get('state', '')
        reason = status.message if status.message != state else ''
        colour = COLOURS[min(int.from_bytes(status.level, 'little'), len(COLOURS) - 1)]
        row = panel.row('torque', escape(values.get('torque', '')))
        update(self._state, content=panel.box(panel.pills((state, colour)) + row + panel.paragraph(reason)))
        passive = state == 'passive' and self.folder.visible
        self.torque_off = passive and not reason
        alarm = reason or (TORQUE_OFF if passive else '')
        if self.folder.visible:
            self._alarm(f'Servos: {state}' if alarm else '', alarm, colour, self.torque_off)
        if not passive and steady() < self._resume_until and self._pending is None:
            self._resume_until = 0.0
            if self._faulted() and self._resume.service_is_ready():
                self._call(RESUME, self._resume, Trigger.Request())

    def _reject(self, sentence: str) -> None:
        self._answer.content = panel.answer(sentence, 'Not possible')

    def _set_pose(self) -> None:
        """Tell the driver the pose; _posed sets the zero then."""
        if not self._parameters.set(known_pose=self._pose.value):
            self._reject(f'{NAME} is not running')

    def _posed(self, rejected: str) -> None:
        if rejected:
            self._reject(f'{ZERO}: {rejected}')
        else:
            self._call(ZERO, self._set_zero, Trigger.Request())

    def _call(self, button: str, client: Client, request: Any) -> None:
        """Call a service; the answer to the request before is not shown any more."""
        if not client.service_is_ready():
            self._reject(f'{button}: {NAME} is not running')
            return
        self._answer.content = panel.answer(f'{button} …')
        future = client.call_async(request)
        self._pending = button, client, future, steady() + PATIENCE
        future.add_done_callback(self._answered)

    def _answered(self, future: Future) -> None:
        if self._pending is None or self._pending[2] is not future:
            return
        response, button = future.result(), self._pending[0]
        self._pending = None
        if button == CLEAR and response.success and self._resume.service_is_ready():
            self._call(RESUME, self._resume, Trigger.Request())
        elif response.success:
            self._resume_until = steady() + PATIENCE if button == ON else 0.0
            self._answer.content = panel.answer(f'{button}: {response.message}')
        else:
            self._reject(f'{button}: {response.message}')
