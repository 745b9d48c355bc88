# SPDX-License-Identifier: Apache-2.0
"""Drive: moves the tool by the sticks on the page, or by a gamepad at the browser, while they are held."""

from __future__ import annotations

import math
import threading
from urllib.parse import parse_qsl

from geometry_msgs.msg import TwistStamped
from rclpy.node import Node

from ik_node.errors import InputError
from ik_node.ros.gripper import GripperRemote
from ik_node.ros.interfaces import NEWEST
from ik_node.steady import steady

LATE = 0.15  # [s] by which a message may take longer than the fastest one of its page
DRIFT = 1e-3  # [s/s] by which two clocks may differ: quartzes do by 1e-4, one that NTP corrects by 5e-4
SILENT = 0.5  # [s] without messages of a page, after which another one may drive
PAGES = 16  # whose delays are kept
GRIP_RATE = 0.7  # strokes per second
MAX_PERIOD = 0.1  # [s] of the gripper's motion for one message
AXES = ('x', 'y', 'z', 'yaw', 'grip')  # each from -1 to 1


class Drive:
    """Publishes twists for messages of pages. Thread-safe: the web server calls it in its own thread.

    A message that waited somewhere is dropped: it tells where the hand was, not where it is. Then ik_node hears
    nothing, and brakes after its incoming_command_timeout, as it does when the page is lost.
    refused: why no commands may be sent, else empty.
    """

    def __init__(self, node: Node, tool: str = '') -> None:
        """tool: its name where there are several."""
        arm = f'ik_node/{tool}' if tool else 'ik_node'
        self._node, self.refused = node, ''
        self._twists = node.create_publisher(TwistStamped, f'{arm}/delta_twist_cmds', NEWEST)
        self.gripper = GripperRemote(node, arm)
        self._lock = threading.Lock()
        # By page, the least difference of its clock from this one [s], and when that was known (steady).
        self._least: dict[str, tuple[float, float]] = {}
        self._driver, self._heard = '', -math.inf  # the page that drives, and its last message

    def take(self, query: str) -> str:
        """Carry out a message 'page=..&time=..&x=..&y=..&z=..&yaw=..&grip=..'; return why it is ignored, else ''.

        time [s]: on the clock of the page. x, y, z, yaw: velocity in the base link, shares of the scales. grip:
        above 0 opens the gripper, below 0 closes it. A message without these only tells the time.
        """
        try:
            page, sent, values = _read(query)
        except InputError as error:
            return str(error)
        now = steady()
        with self._lock:
            least, known = self._least.pop(page, (math.inf, now))
            least = min(least + DRIFT * (now - known), now - sent)
            self._least[page] = least, now
            if len(self._least) > PAGES:
                del self._least[next(iter(self._least))]
            if not values:
                return ''
            if now - sent > least + LATE:
                return 'the connection is slow: the arm brakes; if that does not end, reload the page'
            if page != self._driver and now - self._heard < SILENT:
                return 'another page moves the arm'
            period = min(now - self._heard, MAX_PERIOD) if page == self._driver else 0.0
            self._driver, self._heard = page, now
        if self.refused:
            return self.refused
        message = TwistStamped()
        message.header.stamp = self._node.get_clock().now().to_msg()
        twist = message.twist
        twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z = (values[axis] for axis in AXES[:4])
        self._twists.publish(message)
        return self.gripper.move(values['grip'] * GRIP_RATE * period) if values['grip'] else ''


def _read(query: str) -> tuple[str, float, dict[str, float]]:
    """Return the page, its time [s] and the values by axis. Raises InputError."""
    given = dict(parse_qsl(query))
    page = given.pop('page', '')
    try:
        values = {name: float(text) for name, text in given.items()}
        sent = values.pop('time')
    except (KeyError, ValueError):
        raise InputError('a page sends its time, and numbers') from None
    known = not values or set(values) == set(AXES)
    if not (0 < len(page) <= 40 and math.isfinite(sent) and known and all(abs(one) <= 1.0 for one in values.values())):
        raise InputError('a page sends its name, its time, and x, y, z, yaw and grip, each from -1 to 1')
    return page, sent, values
