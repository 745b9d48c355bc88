# SPDX-License-Identifier: Apache-2.0
"""The folder Servos of the panel: state of the driver, torque, hold, clear, and the zero."""

from __future__ import annotations

from html import escape
from typing import Any

import viser

from ik_node.viewer.panel import html
from ik_node.viewer.panel.html import AMBER, GREEN, RED
from ik_node.viewer.panel.inputs import Inputs, by_user

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
        content = html.pills((state, colour))
        content += html.row('torque', escape(torque)) + html.paragraph(reason if reason != state else '')
        self._state.content = html.box(content)
        trouble = reason if reason != state else TORQUE_OFF if state == 'passive' else ''
        pill = html.pills((f'Servos: {state}', colour))
        self._trouble.content = html.box(pill + html.paragraph(trouble)) if trouble else ''
        self._trouble.visible = self._folder.visible and bool(trouble)

    def say(self, sentence: str, wrong: bool = False) -> None:
        """Show how the last request ended."""
        self._said.content = html.answer(sentence, 'Not possible' if wrong else '')
