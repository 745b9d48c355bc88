# SPDX-License-Identifier: Apache-2.0
"""Link lengths of the shown robot, changed by a parameter of the description's publisher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import viser
from rclpy.node import Node

from ik_node.errors import IkError
from ik_node.model.urdf.link_lengths import LinkLengths
from ik_node.ros.graph import graph
from ik_node.ros.parameters import RemoteParameters
from ik_node.steady import steady

from . import panel
from .panel import Inputs, by_user, merged

RANGE = (0.7, 1.5)  # of a slider, as shares of the length in the file
ORDER = 2e6  # of the folder: below the methods
HINT = 'Rebuilds the description with these lengths; joints keep their positions.'


class LengthsPanel:
    """A slider in millimetres for each length; inputs are kept until take returns them."""

    def __init__(self, gui: viser.GuiApi, lengths: Mapping[str, float]) -> None:
        """lengths: [m] by name."""
        self._touched: Inputs[dict[str, float]] = Inputs()
        self._sliders: dict[str, Any] = {}
        self._folder = gui.add_folder('Link lengths', order=ORDER, expand_by_default=False, visible=False)
        with self._folder:
            for name, value in lengths.items():
                low, high = (round(1e3 * share * value) for share in RANGE)
                label = f'{name.replace("_", " ")} [mm]'
                self._sliders[name] = gui.add_slider(label, low, high, 0.1, round(1e3 * value, 1))
                self._sliders[name].on_update(self._on_update)
            self._answer = gui.add_html('')
        self.answer('')

    @by_user
    def _on_update(self, event: viser.GuiEvent[Any]) -> bool:
        moved = {
            name: 1e-3 * slider.value for name, slider in self._sliders.items() if slider is event.target
        }
        return self._touched.add(moved)

    @property
    def touched(self) -> bool:
        """Whether there are inputs that take has not returned."""
        return bool(self._touched.waiting())

    def take(self) -> dict[str, float]:
        """Return the lengths [m] that users set since the last call."""
        return merged(self._touched.take())

    def show(self, lengths: Mapping[str, float] | None) -> None:
        """Show these lengths [m], or hide the folder."""
        if self._folder.visible is (lengths is None):
            self._folder.visible = lengths is not None
        touched = merged(self._touched.waiting())
        for name, value in (lengths or {}).items():
            if name not in touched:
                self._sliders[name].value = round(1e3 * value, 1)

    def answer(self, rejection: str) -> None:
        """Show why lengths were rejected, or a help text."""
        self._answer.content = panel.answer(rejection or HINT, 'Rejected' if rejection else '')


REST = 0.15  # [s] between two changes: building a description takes time
OUTPUT, MEASURED = 'output', 'wait_for_measured'  # parameters of ik_node
DISPLAY_ONLY = 'joint_states'
DESCRIPTION = 'robot_description'


class VariableLinks:
    """The sliders for link lengths, shown while the description is the expansion of the file.

    The publisher of robot_description, ik_node or robot_state_publisher, gets the new text as its parameter
    of that name and publishes it, so that there is one publisher. Never for a real or simulated arm.
    """

    def __init__(self, node: Node, gui: viser.GuiApi, lengths: LinkLengths, solver: RemoteParameters) -> None:
        """solver: the parameters of ik_node."""
        self._node, self._lengths, self._solver = node, lengths, solver
        self._text = lengths.description()
        self._sent: tuple[LinkLengths, str] | None = None
        self._panel = LengthsPanel(gui, lengths.values)
        self._publisher = ''
        self._remote: RemoteParameters | None = None
        self._due = 0.0
        self._shown = ''  # the description that the scene shows

    def set_description(self, text: str) -> None:
        """Set the description that the scene shows."""
        self._shown = text
        if self._sent is not None and text == self._sent[1]:
            self._lengths, self._text = self._sent
            self._sent = None
        self._panel.show(self._lengths.values if text == self._text else None)

    def refresh(self) -> None:
        """Detect a missing response; call regularly."""
        if self._remote is not None:
            self._remote.refresh()

    def update(self) -> None:
        """Process the inputs of users; call once per frame."""
        now = steady()
        busy = self._remote is not None and self._remote.busy
        if not self._panel.touched or now < self._due or busy:
            return
        self._due = now + REST
        touched = self._panel.take()
        rejection = self._rejection()
        if not rejection:
            try:
                lengths = self._lengths.changed(**touched)
                text = lengths.description()
            except IkError as error:
                rejection = str(error)
        if rejection:
            self._answered(rejection)
            return
        self._sent = lengths, text
        publishing = self._publishing()
        if publishing is None:
            self._answered('nothing publishes robot_description any more')
        elif not publishing.set(**{DESCRIPTION: text}):
            self._answered(f'{self._publisher} has no services to set its parameters')

    def _answered(self, rejection: str) -> None:
        if rejection:
            self._sent = None
            self._panel.show(self._lengths.values if self._shown == self._text else None)
        self._panel.answer(rejection)

    def _publishing(self) -> RemoteParameters | None:
        """Return the parameters of the publisher of robot_description, None if it has ended."""
        name = next(iter(self._publishers(DESCRIPTION)), None)
        if name is None:
            return None
        if self._remote is None or name != self._publisher:
            self._publisher = name
            self._remote = RemoteParameters(self._node, name, on_set=self._answered)
        return self._remote

    def _publishers(self, topic: str) -> list[str]:
        return graph.publishing_nodes(self._node, self._node.resolve_topic_name(topic))

    def _rejection(self) -> str:
        """Return why link lengths cannot change now."""
        if self._shown != self._text:
            return 'the description is no longer that of the sliders'
        publishers = self._publishers(DESCRIPTION)
        if len(publishers) != 1:
            names = ', '.join(publishers) or 'none'
            return f'exactly one node must publish robot_description; its publishers: {names}'
        values = self._solver.values
        if OUTPUT not in values:
            return 'ik_node does not respond, so the arm could be real'
        if values[OUTPUT] != DISPLAY_ONLY or values.get(MEASURED) == 'true':
            return (
                f'ik_node commands a real or simulated arm ({OUTPUT}: {values[OUTPUT]}, {MEASURED}: '
                f'{values.get(MEASURED)}), whose links do not change'
            )
        own = f'{self._node.get_namespace().rstrip("/")}/ik_node'
        others = {name for name in self._publishers('joint_states') if name != own}
        others |= set(self._publishers('measured_joint_states'))
        if others:
            return f'the joints are measured by {", ".join(sorted(others))}: links of that arm do not change'
        return ''
