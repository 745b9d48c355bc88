# SPDX-License-Identifier: Apache-2.0
"""IncomingCommands: whether a command may be carried out, by its age and by who sent it."""

from __future__ import annotations

import math
import time

from builtin_interfaces.msg import Time
from rclpy.node import Node

from ik_node.errors import InputError
from ik_node.ros.compat import MessageInfo
from ik_node.ros.conversions import NS_PER_S, age_of
from ik_node.steady import steady

MOST_LOST = 1000  # messages in a row of one publisher
OTHER_CLOCK = 5.0  # [s]: an age beyond that is more likely a clock that is wrong
AFTER = 2.0  # [s] since the commands of another publisher, within which two publishers send


class IncomingCommands:
    """Checks the commands of one topic; of one thread.

    A stamp of zero means now, so the time at which the middleware sent a message counts too. rclpy does not
    tell who sent a message. Each publisher numbers its messages, so the commands of two are told apart by
    numbers that do not continue.
    """

    def __init__(self, node: Node, topic: str, timeout: float) -> None:
        """timeout: how old a command may be [s]."""
        self._node, self._topic, self._timeout = node, node.resolve_topic_name(topic), timeout
        self._number = -1  # of the last message
        # When the last one was taken, and when one was contested (steady).
        self._taken = self._contested = -math.inf

    @property
    def contested(self) -> bool:
        """Whether two publishers send."""
        return steady() < self._contested + AFTER

    def check(self, stamp: Time, info: MessageInfo) -> None:
        """Raise InputError unless a command with a stamp may be carried out."""
        self._check_age(age_of(stamp, self._node.get_clock().now().nanoseconds), 'its stamp')
        if sent := info.get('source_timestamp') or 0:
            self._check_age((time.time_ns() - sent) / NS_PER_S, 'the time at which it was sent')
        self._check_sender(info.get('publication_sequence_number'), steady())

    def _check_age(self, age: float, by: str) -> None:
        if abs(age) <= self._timeout:
            return
        where = f'{age:.2f} s old' if age > 0.0 else f'{-age:.2f} s in the future'
        clocks = ''
        if age < 0.0 or age > OTHER_CLOCK:
            clocks = (
                '; if it was sent just now, the clocks of the two computers differ by that: synchronise them '
                '(timedatectl shows whether they are), and set use_sim_time alike in all nodes'
            )
        raise InputError(f'by {by} it is {where}, but command_timeout allows {self._timeout:g} s{clocks}')

    def _check_sender(self, number: int | None, now: float) -> None:
        broken = number is None or not self._number < number <= self._number + MOST_LOST
        recently = number is None or now < max(self._taken, self._contested) + AFTER
        if broken and recently and len(self._publishers()) > 1:  # it is no restarted publisher
            self._contested = now
        self._number = self._number if number is None else number
        if self.contested:
            raise InputError(
                f'{" and ".join(self._publishers())} publish {self._topic}: the arm holds until only one of '
                'them does'
            )
        self._taken = now

    def _publishers(self) -> list[str]:
        found = self._node.get_publishers_info_by_topic(self._topic)
        return sorted(f'{one.node_namespace.rstrip("/")}/{one.node_name}' for one in found)
