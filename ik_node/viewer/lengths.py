# SPDX-License-Identifier: Apache-2.0
"""Link lengths of the shown robot, changed by a parameter of the description's publisher."""

from __future__ import annotations

from functools import partial
from typing import Any

from ik_node.errors import IkError
from ik_node.model.urdf.link_lengths import LinkLengths
from ik_node.ros.graph import graph
from ik_node.ros.parameters import RemoteParameters
from ik_node.steady import steady

from . import panel
from .events import Event
from .section import Frame, Page, RobotView, Section

RANGE = (0.7, 1.5)  # of a slider, as shares of the length in the file
ORDER = 2e6  # of the folder: below the methods
HINT = 'Rebuilds the description with these lengths; joints keep their positions.'
REST = 0.15  # [s] between two changes: building a description takes time
OUTPUT, MEASURED = 'output', 'wait_for_measured'  # parameters of ik_node
DISPLAY_ONLY = 'joint_states'
DESCRIPTION = 'robot_description'


class VariableLinks(Section):
    """A slider in millimetres for each link length, shown while the description is the expansion of the file.

    The publisher of robot_description, ik_node or robot_state_publisher, gets the new text as its parameter
    of that name and publishes it, so that there is one publisher. Never for a real or simulated arm.
    """

    def __init__(self, page: Page, lengths: LinkLengths, solver: RemoteParameters) -> None:
        """solver: the parameters of ik_node."""
        super().__init__(page, 'Link lengths', ORDER, visible=False)
        self._lengths, self._solver = lengths, solver
        self._text = lengths.description()
        self._sent: tuple[LinkLengths, str] | None = None
        self._touched: dict[str, float] = {}  # lengths [m] that users have set and nobody has sent
        self._publisher = ''
        self._remote: RemoteParameters | None = None
        self._due = 0.0
        self._sliders: dict[str, Any] = {}
        with self.folder:
            for name, value in lengths.values.items():
                low, high = (round(1e3 * share * value) for share in RANGE)
                label = f'{name.replace("_", " ")} [mm]'
                slider = self.gui.add_slider(label, low, high, 0.1, round(1e3 * value, 1))
                self._sliders[name] = self.listen(slider, partial(self._touch, name))
            self._answer = self.gui.add_html(panel.answer(HINT))

    def _touch(self, name: str, event: Event) -> None:
        self._touched[name] = 1e-3 * event.value

    def show(self, robot: RobotView | None) -> None:
        """Show the lengths of a robot, or hide the sliders if its description is not from the file."""
        super().show(robot)
        if self._sent is not None and self._shown == self._sent[1]:
            self._lengths, self._text = self._sent
            self._sent = None
        self._show_lengths()

    @property
    def _shown(self) -> str:
        """The description that the page shows."""
        return self.robot.text if self.robot is not None else ''

    def _show_lengths(self) -> None:
        panel.update(self.folder, visible=self._shown == self._text)
        for name, value in self._lengths.values.items():
            if name not in self._touched and not self.events.pending(self._sliders[name]):
                panel.update(self._sliders[name], value=round(1e3 * value, 1))

    def refresh(self) -> None:
        """Detect a missing response."""
        if self._remote is not None and self._remote.busy:
            self._remote.refresh()

    def update(self, frame: Frame) -> None:  # noqa: ARG002
        """Send the lengths that users have set."""
        now = steady()
        busy = self._remote is not None and self._remote.busy
        if not self._touched or now < self._due or busy:
            return
        self._due = now + REST
        touched, self._touched = self._touched, {}
        rejection = self._rejection()
        if not rejection:
            try:
                lengths = self._lengths.changed(**touched)
                self._sent = lengths, lengths.description()
                rejection = self._send(self._sent[1])
            except IkError as error:
                rejection = str(error)
        if rejection:
            self._answered(rejection)

    def _send(self, text: str) -> str:
        """Set the parameter of the publisher of robot_description; return why that is not possible."""
        name = next(iter(self._publishers(DESCRIPTION)), None)
        if name is None:
            return 'nothing publishes robot_description any more'
        if self._remote is None or name != self._publisher:
            self._publisher = name
            self._remote = RemoteParameters(self.node, name, on_set=self._answered)
        sent = self._remote.set(**{DESCRIPTION: text})
        return '' if sent else f'{name} has no services to set its parameters'

    def _answered(self, rejection: str) -> None:
        if rejection:
            self._sent = None
            self._show_lengths()
        self._answer.content = panel.answer(rejection or HINT, 'Rejected' if rejection else '')

    def _publishers(self, topic: str) -> list[str]:
        return graph.publishing_nodes(self.node, self.node.resolve_topic_name(topic))

    def _rejection(self) -> str:
        """Return why link lengths cannot change now."""
        if self._shown != self._text:
            return 'robot_description has changed and no longer matches these sliders'
        publishers = self._publishers(DESCRIPTION)
        if len(publishers) != 1:
            names = ', '.join(publishers) or 'none'
            return f'exactly one node must publish robot_description; its publishers: {names}'
        values = self._solver.values
        if OUTPUT not in values:
            return 'ik_node does not respond, so the arm could be real'
        if values[OUTPUT] != DISPLAY_ONLY or values.get(MEASURED) == 'true':
            return (
                'link lengths cannot be changed while ik_node commands a real or simulated arm '
                f'({OUTPUT}: {values[OUTPUT]}, {MEASURED}: {values.get(MEASURED)})'
            )
        own = f'{self.node.get_namespace().rstrip("/")}/ik_node'
        others = {name for name in self._publishers('joint_states') if name != own}
        others |= set(self._publishers('measured_joint_states'))
        if others:
            return f'link lengths cannot be changed while an arm is measured by {", ".join(sorted(others))}'
        return ''
