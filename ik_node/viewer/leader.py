# SPDX-License-Identifier: Apache-2.0
"""LeaderView: what ik_leader waits for, and the leader as a ghost until the arm follows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from ik_node.control.leading import TOPIC
from ik_node.ros.conversions import finite_positions, report_values
from ik_node.ros.interfaces import LATCHED, MEASURED, subscribe
from ik_node.steady import steady

from . import panel
from .scene import Ghost
from .section import Frame, Page, RobotView, Section

ORDER = 2.1e6  # of the folder: below the servos
OLD = 2.5  # [s] without a message after which it does not count


class LeaderView(Section):
    """Shows a leader that has the joints of the arm as a ghost. It is hidden without ik_leader."""

    def __init__(self, page: Page) -> None:
        super().__init__(page, 'Leader', ORDER, first=True, expand_by_default=True, visible=False)
        self._heard: dict[type, tuple[Any, float]] = {}  # the newest message of each type, and when it came
        self._ghost: Ghost | None = None
        with self.folder:
            self._text = self.gui.add_html('')

    def subscribe(self) -> Sequence[Subscription]:
        """Subscribe to the leader and to what is said about it."""
        given = (DiagnosticStatus, 'ik_leader/status', LATCHED), (JointState, TOPIC, MEASURED)
        return [subscribe(self.node, kind, topic, self._take, qos) for kind, topic, qos in given]

    def _take(self, message: Any) -> None:
        self._heard[type(message)] = message, steady()

    def show(self, robot: RobotView | None) -> None:
        """Forget the ghost: the scene was cleared."""
        super().show(robot)
        self._ghost = None

    def update(self, frame: Frame) -> None:
        """Show the sentence, and the ghost while the arm does not follow."""
        new = {kind: message for kind, (message, at) in self._heard.items() if steady() - at < OLD}
        report = report_values(new[DiagnosticStatus]) if DiagnosticStatus in new else {}
        self.folder.visible = bool(report)
        state = report.get('state', '')
        pill = panel.pills((state, panel.GREEN if state == 'following' else panel.AMBER))
        panel.update(self._text, content=panel.box(pill + panel.paragraph(report.get('message', ''))))
        if state == 'waiting' and JointState in new and self.robot is not None:
            names = {name for arm in self.robot.arms for name in arm.joint_names}
            if self._ghost is None:
                self._ghost = Ghost(self.server, '/leader', self.robot.arms, self.robot.drawing, (234, 128, 30))
            self._ghost.place({**frame.values, **finite_positions(new[JointState], names)})
        elif self._ghost is not None:
            self._ghost.hide()
