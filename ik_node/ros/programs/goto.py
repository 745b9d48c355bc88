# SPDX-License-Identifier: Apache-2.0
"""ik_goto: sends one goal to ik_node, and waits for the arrival or for the reason of a failure."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseArray, PoseStamped
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger

from ik_node.arguments import PlainParser, add_goal, unit_direction
from ik_node.checks import Array, count_in, yaml_number
from ik_node.console import run, say, without_ros
from ik_node.errors import OTHER_USER, InputError
from ik_node.ros.conversions import array_point, matrix_pose, report_values, stamp_text
from ik_node.ros.graph import graph
from ik_node.ros.interfaces import subscribe
from ik_node.ros.neighbours import LATE, PERIOD, Neighbours
from ik_node.ros.parameters import RemoteParameters
from ik_node.ros.run import PATIENCE, Spinner, begin
from ik_node.ros.sessions import join
from ik_node.steady import steady
from ik_node.tracks import NO_TRACK, tip_pose

STATUS_QOS = QoSProfile(depth=100)
ENDS = ('arrived', 'held', 'stopped')
ARM = 'ik_node'
TRACK = 'track'  # parameter of ik_goals
SILENT = f'{ARM} exists, but has not responded within {PATIENCE:g} s. {OTHER_USER}'


class Goto:
    """A node that sends goals for a tool and receives the reports on them."""

    _neighbours: Neighbours

    def __init__(self, tool: str = '') -> None:
        """tool: its name where there are several."""
        self._prefix, self._of_tool = (f'{tool}/', f'{tool}.') if tool else ('', '')
        self._node = rclpy.create_node('ik_goto')
        self.spinner = Spinner(self._node)
        self._stop = self._node.create_client(Trigger, f'{ARM}/{self._prefix}stop')
        self._stamp = ''  # of the goal, once it is sent
        self._unread: deque[dict[str, str]] = deque()  # reports on the goal
        self._number = 0  # of the goal
        self._other_number, self._other_stamp = 0, 0.0  # the highest of other goals that moved the arm
        self._statuses = subscribe(
            self._node, DiagnosticStatus, f'{ARM}/{self._prefix}status', self._on_status, STATUS_QOS
        )

    def close(self) -> None:
        """End the node."""
        self._node.destroy_node()

    def goal(self, position: Array, direction: Array | None, line: bool, frame: str) -> tuple[str, Any]:
        """Return topic and message of a goal; position [m] and unit direction (None: free), each (3,)."""
        message: Any
        if direction is None:
            message, topic = PointStamped(point=array_point(position)), 'goal_point'
        else:
            axis, point = self._parameters('tool_axis', 'tool_point')
            pose = matrix_pose(tip_pose(position, direction, axis, point))
            message, topic = (PoseArray(poses=[pose]), 'goal_path') if line else (PoseStamped(pose=pose), 'goal_pose')
        message.header.frame_id = frame  # empty: the base link
        return topic, message

    def send(self, topic: str, message: Any) -> int:
        """Send a goal, print the reports on it; return 0 once the arm has arrived, 1 if it fails.

        Raises InputError if ik_node is not there, or ends before the motion does.
        """
        publisher = self._node.create_publisher(type(message), self._prefix + topic, 1)
        self.spinner.wait(
            lambda: publisher.get_subscription_count() and self._statuses.get_publisher_count(),
            f'{ARM} is not running: {publisher.topic_name} has no subscriber',
        )
        neighbours = self._neighbours = Neighbours(self._node, 'ik_goto', sends=[self._prefix + topic])
        self.spinner.wait(lambda: neighbours.settled or neighbours.arms, '')
        end = steady() + LATE + PERIOD  # within which an arm that looks for others has found them
        while neighbours.arms and all(one.waits for one in neighbours.arms) and steady() < end:
            self.spinner.spin(0.1)
        if refused := neighbours.foreign():
            raise InputError(refused)
        self._end_track()
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._stamp = stamp_text(message.header.stamp)
        publisher.publish(message)
        self.spinner.wait(
            lambda: self._unread or self._other_stamp > float(self._stamp),
            SILENT,
        )
        if not self._unread:  # not all goals of a stream are reported
            say(self._replaced())
            return 1
        reporters = self._reporters()
        while True:
            while self._unread:
                report = self._unread.popleft()
                say(report['message'])
                if report['status'] == 'rejected' or report['state'] in ENDS:
                    return 0 if report['state'] == 'arrived' and report['status'] == 'solved' else 1
            if self._other_number > self._number:
                say(self._replaced())
                return 1
            if not reporters & self._reporters():  # a node that was started later does not know the goal
                raise InputError(f'{ARM} has ended or cannot be reached: there will be no more reports on the goal')
            self.spinner.spin(1.0)

    def _end_track(self) -> None:
        """End the track of ik_goals, whose next goal would replace this one."""
        publishers = graph.publishing_nodes(self._node, self._node.resolve_topic_name(f'{self._prefix}goal_pose'))
        if not any(name.endswith('/ik_goals') for name in publishers):
            return
        remote = RemoteParameters(self._node, f'{self._prefix}ik_goals', [TRACK])
        self.spinner.wait(lambda: remote.available, '')
        remote.refresh()
        self.spinner.wait(lambda: not remote.reading, 'ik_goals does not respond')
        track = remote.values.get(TRACK, NO_TRACK)
        if track != NO_TRACK:
            say(f'ik_goals ends its track {track}')
            remote.set(**{TRACK: NO_TRACK})
            self.spinner.wait(lambda: not remote.busy, 'ik_goals does not respond')

    def _replaced(self) -> str:
        sentence = 'another goal has replaced this one'
        one = next((one for one in self._neighbours.others if one.program == 'ik_goals'), None)
        if one is None:
            return sentence
        return (
            f'{sentence}: {one} sends goals along a track. Choose the track none on the page, or start '
            'ik_demo with --track none'
        )

    def stop(self) -> None:
        """Stop the arm; a second signal does not prevent that."""
        self.spinner.ignore_signals()
        self.spinner.wait(
            self._stop.service_is_ready, f'{ARM} is not running: there is no service {self._stop.srv_name}'
        )
        future = self._stop.call_async(Trigger.Request())
        self.spinner.wait(future.done, SILENT)
        say(future.result().message)

    def _on_status(self, status: DiagnosticStatus) -> None:
        report = report_values(status)
        number, stamp = count_in(report.get('goal_number')), report.get('goal_stamp')
        if stamp and stamp == self._stamp:
            self._unread.append(report)
            self._number = max(self._number, number)
        elif report.get('state') == 'moving':
            self._other_number = max(self._other_number, number)
            self._other_stamp = max(self._other_stamp, yaml_number(stamp) or 0.0)

    def _reporters(self) -> set[tuple[int, ...]]:
        """Return the ids of the publishers of reports."""
        return graph.publisher_ids(self._node, self._statuses.topic_name)

    def _parameters(self, *names: str) -> list[tuple[float, ...]]:
        names = tuple(self._of_tool + name for name in names)
        remote = RemoteParameters(self._node, ARM, names)
        self.spinner.wait(lambda: remote.available, f'{ARM} is not running: there is no service {ARM}/get_parameters')
        remote.refresh()
        self.spinner.wait(lambda: not remote.reading, SILENT)
        if len(remote.values) < len(names):
            raise InputError(f'{ARM} has no parameter {names[0]}, so there is no such tool')
        return list(remote.values.values())


def main(given: Sequence[str] | None = None) -> int:
    """Return 0 once the arm has arrived, 1 if it fails.

    Return 2 for invalid arguments, without ik_node, or if ik_node ends before the motion does.
    """
    parser = PlainParser(description='Send one goal to ik_node and wait for the arm; Ctrl-C stops the arm.')
    add_goal(parser)
    parser.add_argument('--line', action='store_true', help='move there in a straight line')
    parser.add_argument('--tool', default='', help='name of the tool, where there are several')
    parser.add_argument('--frame', default='', help='frame of the goal (default: the base link)')
    arguments = without_ros(sys.argv[1:] if given is None else given)
    return run(_goto, parser.parse_args(arguments))


def _goto(arguments: argparse.Namespace) -> int:
    if arguments.line and arguments.direction is None:
        raise InputError('--line needs a --direction')
    direction = None if arguments.direction is None else unit_direction(arguments.direction)
    join('ik_goto')
    begin()
    goto, sent = Goto(arguments.tool), False
    goto.spinner.handle_signals()
    try:
        position = np.array((arguments.x, arguments.y, arguments.z))
        topic, message = goto.goal(position, direction, arguments.line, arguments.frame)
        sent = True
        return goto.send(topic, message)
    except KeyboardInterrupt:
        if sent:
            goto.stop()
        raise
    finally:
        goto.close()
        rclpy.utilities.try_shutdown()
