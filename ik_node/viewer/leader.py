# SPDX-License-Identifier: Apache-2.0
"""LeaderView: what ik_leader waits for, and the leader as a ghost until the arm follows it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.subscription import Subscription

from ik_node.checks import yaml_number
from ik_node.ros.conversions import report_values
from ik_node.ros.interfaces import LATCHED, subscribe
from ik_node.steady import steady

from . import panel
from .scene import Ghost
from .section import Frame, Page, RobotView, Section

ORDER = 2.1e6  # of the folder: below the servos
OLD = 2.5  # [s] without a message after which it does not count


class LeaderView(Section):
    """Shows a leader that must turn before the arm follows it as a ghost. It is hidden without ik_leader."""

    def __init__(self, page: Page) -> None:
        super().__init__(page, 'Leader', ORDER, first=True, expand_by_default=True, visible=False)
        self._report: Mapping[str, str] = {}
        self._heard = -math.inf
        self._ghost: Ghost | None = None
        with self.folder:
            self._text = self.gui.add_html('')

    def subscribe(self) -> Sequence[Subscription]:
        """Subscribe to what is said about the leader."""
        return [subscribe(self.node, DiagnosticStatus, 'ik_leader/status', self._take, LATCHED)]

    def _take(self, status: DiagnosticStatus) -> None:
        self._report, self._heard = report_values(status), steady()

    def show(self, robot: RobotView | None) -> None:
        """Forget the ghost: the scene was cleared."""
        super().show(robot)
        self._ghost = None

    def update(self, frame: Frame) -> None:
        """Show the sentence, and the ghost where the joints stand that must turn."""
        report = self._report if steady() - self._heard < OLD else {}
        self.folder.visible = bool(report)
        state = report.get('state', '')
        pill = panel.pills((state, panel.GREEN if state == 'following' else panel.AMBER))
        panel.update(self._text, content=panel.box(pill + panel.paragraph(report.get('message', ''))))
        given = {name: yaml_number(report.get(name)) for name in frame.values}
        ways = {name: way for name, way in given.items() if way is not None and math.isfinite(way)}
        if ways and self.robot is not None:
            if self._ghost is None:
                self._ghost = Ghost(self.server, '/leader', self.robot.arms, self.robot.drawing, (234, 128, 30))
            self._ghost.place({**frame.values, **{name: frame.values[name] - way for name, way in ways.items()}})
        elif self._ghost is not None:
            self._ghost.hide()
