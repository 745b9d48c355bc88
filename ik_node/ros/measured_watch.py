"""MeasuredWatch: whether joints are measured, and who else publishes joints of this robot."""

from __future__ import annotations

from rclpy.node import Node

from ik_node.errors import InputError

CHECK = 0.1  # [s] between two checks of the publishers
QUIET = 0.3  # [s] without samples after a new subscriber: a driver may be about to publish measurements


class MeasuredWatch:
    """Watches the topics of a node; poll() is cheap enough for every sample.

    expected: measurements are expected. alone: no other publisher of joint_states. quiet: hold samples back.
    """

    def __init__(self, node: Node, measured: str, always: bool) -> None:
        """measured: topic of the measurements. always: auto expects them in any case."""
        self._node = node
        self._commands = node.resolve_topic_name('joint_states')
        self._measured = node.resolve_topic_name(measured)
        self._always = always or self._commands != node.resolve_topic_name('joint_states', only_expand=True)
        if self._commands == self._measured and measured != 'joint_states':
            raise InputError(
                f'joint_states and measured_joint_states are both {self._commands}: commands would count as '
                'measurements; remap joint_states too, for example to joint_commands'
            )
        self._listeners = 0
        self._checked = self._quiet_until = float('-inf')
        self.expected = False
        self.alone = True
        self.quiet = False

    def poll(self, wait_for_measured: str, time: float) -> None:
        """Check the topics at time [s] of a steady clock. wait_for_measured: the parameter of that name."""
        if wait_for_measured == 'auto' and not (self.expected or self._always):
            listeners = self._node.count_subscribers(self._commands)
            if listeners > self._listeners:
                self._quiet_until = time + QUIET
                self._checked = float('-inf')
            self._listeners = listeners
        if time >= self._checked + CHECK:
            self._checked = time
            heard = self._node.count_publishers(self._measured) > 0
            auto = wait_for_measured == 'auto' and (self.expected or self._always or heard)
            self.expected = auto or wait_for_measured == 'true'
            self.alone = self._commands == self._measured or self._node.count_publishers(self._commands) <= 1
        self.quiet = not self.expected and time < self._quiet_until
