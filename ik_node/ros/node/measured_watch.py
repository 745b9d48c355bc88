# SPDX-License-Identifier: Apache-2.0
"""MeasuredWatch: whether joints are measured, and who else publishes joints of this robot."""

from __future__ import annotations

from rclpy.node import Node

from ik_node.errors import InputError
from ik_node.ros.graph import graph
from ik_node.steady import steady

CHECK = 0.1  # [s] between two checks of the publishers
OTHER_CLOCK = 60.0  # [s] from the node's clock: no message takes so long
YEAR_2000 = 946684800.0  # [s] since 1970: earlier stamps count from somewhere else
QUIET = 0.3  # [s] without setpoints after a new subscriber: a driver may be starting to publish measurements


class MeasuredWatch:
    """Watches the topics of a node, by a steady clock; cheap enough for every setpoint.

    topic: of the measurements, resolved; offered: whether it has a publisher.
    expected: measurements are expected. alone: no other publisher of joint_states. quiet: hold setpoints
    back.
    """

    def __init__(self, node: Node, measured: str, always: bool) -> None:
        """measured: topic of the measurements. always: auto expects them in any case.

        The node must have created its publisher of joint_states, if any.
        """
        self._node = node
        self._commands = node.resolve_topic_name('joint_states')
        self._measured = node.resolve_topic_name(measured)
        self._always = always or self._commands != node.resolve_topic_name('joint_states', only_expand=True)
        if self._commands == self._measured and measured != 'joint_states':
            raise InputError(
                f'joint_states and measured_joint_states are both {self._commands}: commands would count as '
                'measurements; remap joint_states too, for example to joint_commands'
            )
        self._publishers = [p for p in node.publishers if p.topic_name == self._commands]
        self._listeners = 0
        self._questioned = False  # stamps were, once
        self._checked = self._quiet_until = float('-inf')
        self._auto = True
        self.topic, self.offered = self._measured.removeprefix('/'), False
        self._offered = (
            False  # measurements have a publisher, or had one that was heard, or are always needed
        )
        self.heard = False  # a measurement has arrived
        self.expected = False
        self.alone = True

    @property
    def quiet(self) -> bool:
        """Whether setpoints are held back at present."""
        return not self.expected and steady() < self._quiet_until

    @property
    def real(self) -> bool:
        """Whether the commands may move a real or simulated arm, not only a display."""
        return self._always or self.expected

    def poll(self, wait_for_measured: str) -> bool:
        """Check the topics if a check is due; return whether it was. wait_for_measured: the parameter."""
        self._auto = wait_for_measured == 'auto'
        self.hold_back()
        if steady() < self._checked + CHECK:
            return False
        self._checked = steady()
        self.offered = graph.count_publishers(self._node, self._measured) > 0
        had = self._offered and self.heard
        self._offered = self._auto and (had or self._always or self.offered)
        self.expected = wait_for_measured == 'true' or self._offered
        self.alone = (
            self._commands == self._measured or graph.count_publishers(self._node, self._commands) <= 1
        )
        return True

    def age(self, stamp: float | None, now: float, since_1970: float) -> float:
        """Return the age [s] of a measurement by its stamp, both on the node's clock [s].

        since_1970: the same stamp, as it was sent [s].

        0, the time of arrival, without a stamp or for a stamp in the future or of another clock.
        """
        age = 0.0 if stamp is None else now - stamp
        if abs(age) <= OTHER_CLOCK:
            return max(age, 0.0)
        if not self._questioned:
            self._questioned = True
            where = f'{age:.3g} s old' if age > 0.0 else f'{-age:.3g} s in the future'
            why = f'{where}; is use_sim_time the same everywhere?'
            if since_1970 < YEAR_2000 < age:
                why = (
                    f'{since_1970:.3g} s: the driver counts from its own start. Synchronise its clock, or '
                    'leave the stamps zero'
                )
            self._node.get_logger().warning(
                f'measured joints are timed by their arrival, because their stamps are {why}'
            )
        return 0.0

    def hold_back(self) -> bool:
        """Return whether to hold back a setpoint, also when called directly before it is published.

        Between the check and the publication a driver could connect, and receive a made-up position.
        """
        if self._auto and not (self.expected or self._always):
            listeners = sum(publisher.get_subscription_count() for publisher in self._publishers)
            if listeners > self._listeners:
                self._quiet_until = steady() + QUIET
                self._checked = float('-inf')
            self._listeners = listeners
        return self.quiet
