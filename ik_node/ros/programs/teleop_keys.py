# SPDX-License-Identifier: Apache-2.0
"""ik_teleop: move the tool of an arm with the keys of a terminal."""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
import tty
from collections import deque
from collections.abc import Mapping
from typing import Any

from geometry_msgs.msg import TwistStamped
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from std_msgs.msg import Int8
from std_srvs.srv import Trigger

from ik_node.console import say
from ik_node.errors import InputError
from ik_node.ros.gripper import GripperRemote
from ik_node.ros.interfaces import NEWEST, SERVO_STATUS
from ik_node.ros.neighbours import Neighbours
from ik_node.ros.run import ClosableNode, run
from ik_node.ros.sessions import join
from ik_node.steady import steady

RATE = 100.0  # [Hz] of the twists
KEY_TIMEOUT = 0.15  # [s] for which a key is active: terminals repeat a held key faster
MISSED = 1.5  # gaps between its last repeats after which a key is let go, where that is sooner
KEY_JITTER = 0.05  # [s] for which it is active at least
BURST = 0.01  # [s] between repeats that a network has held back, and delivers together
SPEEDS = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)  # shares of scale_linear and scale_rotational
# By key: direction of the linear and of the angular velocity in the base link.
KEYS: dict[str, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    'w': ((1, 0, 0), (0, 0, 0)),
    's': ((-1, 0, 0), (0, 0, 0)),
    'a': ((0, 1, 0), (0, 0, 0)),
    'd': ((0, -1, 0), (0, 0, 0)),
    'r': ((0, 0, 1), (0, 0, 0)),
    'f': ((0, 0, -1), (0, 0, 0)),
    'u': ((0, 0, 0), (1, 0, 0)),
    'o': ((0, 0, 0), (-1, 0, 0)),
    'i': ((0, 0, 0), (0, 1, 0)),
    'k': ((0, 0, 0), (0, -1, 0)),
    'j': ((0, 0, 0), (0, 0, 1)),
    'l': ((0, 0, 0), (0, 0, -1)),
}
STILL = (0, 0, 0), (0, 0, 0)
GRIPS = {'[': -0.05, ']': 0.05}  # shares of the stroke by which a press moves the gripper
SERVICES = {'h': 'home', ' ': 'stop', 'c': 'resume'}
HELP = """\
Move the tool in the base link:
  w s  +x -x      a d  +y -y      r f  up, down
  u o  about x    i k  about y    j l  about z
  [ ]  close and open the gripper
  + -  speed      h  home         space  stop    c  resume after a stop
  q  quit
"""
CODES = {
    -1: 'the command was ignored, see the log of ik_node',
    0: '',
    6: 'at a limit or at the edge of the workspace',
}


class KeysNode(ClosableNode):
    """Publishes twists while a key is held down; options are those of rclpy's Node."""

    def __init__(self, **options: Any) -> None:
        super().__init__('ik_teleop', **options)
        tool = self.declare_parameter('tool', '').value  # its name where there are several
        arm = f'ik_node/{tool}' if tool else 'ik_node'
        self._twists = self.create_publisher(TwistStamped, f'{arm}/delta_twist_cmds', NEWEST)
        self._met = Neighbours(self, 'ik_teleop', sends=[f'{arm}/delta_twist_cmds'])
        self.create_subscription(SERVO_STATUS.type, f'{arm}/servo_status', self._on_status, SERVO_STATUS.qos)
        self._gripper = GripperRemote(self, arm, self._on_gripper)
        self._askers = {key: self.create_client(Trigger, f'{arm}/{name}') for key, name in SERVICES.items()}
        self._speed = 2
        self._key, self._pressed, self._until = '', 0.0, 0.0
        self._gaps: deque[float] = deque(maxlen=3)  # [s] between the last repeats of the key
        self._closing = threading.Event()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(1.0 / RATE, self._publish, clock=steady)
        self._reader = threading.Thread(target=self._read, daemon=True)
        say(HELP)

    def start_threads(self) -> None:
        """Read the keys."""
        self._reader.start()

    def close(self) -> None:
        """End the thread, restore the terminal, and close the node."""
        self._closing.set()
        if self._reader.is_alive():
            self._reader.join(timeout=1.0)
        self.destroy_node()

    def press(self, key: str) -> None:
        """Process a key."""
        asks = key in self._askers and SERVICES[key] != 'stop'
        if (asks or key in KEYS or key in GRIPS) and (refused := self._met.foreign()):
            say(refused)
        elif key in KEYS:
            self._hold(key, steady())
        elif key in GRIPS:
            if why := self._gripper.move(GRIPS[key]):
                say(why)
        elif key in self._askers:
            self._key = ''
            self._call(key)
        elif key in '+-':
            step = 1 if key == '+' else -1
            self._speed = min(max(self._speed + step, 0), len(SPEEDS) - 1)
            say(f'speed {SPEEDS[self._speed]:g}')
        elif key == 'q':
            self.context.try_shutdown()

    def _hold(self, key: str, now: float) -> None:
        """Take a press of a key, or its repeat by the terminal: it sends no release, only no more repeats."""
        if key != self._key:
            self._gaps.clear()
        elif now - self._pressed > BURST:
            self._gaps.append(now - self._pressed)
        known = len(self._gaps) == self._gaps.maxlen
        active = min(max(MISSED * max(self._gaps), KEY_JITTER), KEY_TIMEOUT) if known else KEY_TIMEOUT
        self._key, self._pressed, self._until = key, now, now + active

    def _publish(self) -> None:
        key = self._key  # another thread changes it
        if not key:
            return
        linear, angular = KEYS[key]
        if steady() > self._until:  # zero: the arm brakes at once
            self._key, linear, angular = '', *STILL
        message = TwistStamped()
        message.header.stamp = self.get_clock().now().to_msg()
        speed = SPEEDS[self._speed]
        twist = message.twist
        twist.linear.x, twist.linear.y, twist.linear.z = (speed * value for value in linear)
        twist.angular.x, twist.angular.y, twist.angular.z = (speed * value for value in angular)
        self._twists.publish(message)

    def _on_gripper(self, report: Mapping[str, str]) -> None:
        if report['state'] in ('holding', 'blocked', 'lost', 'rejected'):
            say(report['message'])

    def _call(self, key: str) -> None:
        client = self._askers[key]
        if not client.service_is_ready():
            say(f'{SERVICES[key]}: ik_node is not running')
            return
        client.call_async(Trigger.Request()).add_done_callback(
            lambda future: say(f'{SERVICES[key]}: {future.result().message}')
        )

    def _on_status(self, message: Any) -> None:
        code = message.data if isinstance(message, Int8) else message.code
        sentence = CODES.get(code, f'status {code}')
        if sentence:
            say(sentence)

    def _read(self) -> None:
        """Read keys until the end, from a terminal or a pipe."""
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor) if os.isatty(descriptor) else None
        if before is not None:
            tty.setcbreak(descriptor)
        try:
            while not self._closing.is_set():
                if select.select([descriptor], [], [], 0.1)[0]:
                    keys = os.read(descriptor, 64).decode(errors='ignore')
                    if not keys:  # the end of a pipe
                        return
                    for key in keys.lower():
                        self.press(key)
        finally:
            if before is not None:
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def main() -> int:
    """Run ik_teleop."""
    try:
        join('ik_teleop')
    except InputError as error:
        say(f'error: {error}', sys.stderr)
        return 2
    return run('ik_teleop', KeysNode)
