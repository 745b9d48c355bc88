# SPDX-License-Identifier: Apache-2.0
"""ArmClient: moves the arm of a running ik_node from Python; ik_goto does so from a terminal.

from ik_node.client import ArmClient

with ArmClient() as arm:
    arm.gripper(1.0)
    print(arm.move((0.3, 0.0, 0.15), (0, 0, -1)))
    arm.gripper(0.0)
"""

from __future__ import annotations

import argparse
import asyncio
import math
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseArray, PoseStamped, PoseWithCovarianceStamped
from numpy.typing import ArrayLike
from rclpy.qos import QoSProfile

from ik_node.arguments import PlainParser, add_goal
from ik_node.checks import Array, count_in, unit_vector, vector3, yaml_number
from ik_node.console import ENDING, run, say, without_ros
from ik_node.control.settings import ArmSettings
from ik_node.errors import OTHER_USER, InputError
from ik_node.ros.conversions import array_point, matrix_pose, pose_matrix, report_values, stamp_text
from ik_node.ros.graph import graph
from ik_node.ros.gripper import NO_GRIPPER, GripperRemote
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
SPEED = 'goal_speed'  # parameter of ik_node
MIN_SPEED: float = ArmSettings.__dataclass_fields__[SPEED].metadata['low']
ABSENT = f'{ARM} is not running, start it first (ik_demo does)'
SILENT = f'{ARM} exists, but has not responded within {PATIENCE:g} s. {OTHER_USER}'
LOOK = 0.1  # [s] between two looks at whether a call was cancelled
GRIPPED = ('reached', 'holding', 'empty', 'unmeasured')  # states in which a gripper has done what it was asked
MAX_GRIP_TIME = 10.0  # [s]


@dataclass(frozen=True)
class Result:
    """How a call ended. It is true if the arm did what it was asked.

    state: of a move 'arrived', 'unreachable', 'rejected', 'stopped', 'replaced' by another goal, 'cancelled' or
    'timed out'; of a gripper as in ~/gripper_status; of a service its name. message: one sentence. position_error [m],
    direction_error [rad]: of the solution; NaN if unknown. nearest: position [m] and direction of the nearest pose that
    the arm can reach, for a goal with a direction that it cannot meet. opening: of the gripper from 0, closed, to 1,
    open.
    """

    done: bool
    state: str
    message: str
    position_error: float = math.nan
    direction_error: float = math.nan
    nearest: tuple[Array, Array] | None = None
    opening: float = math.nan

    def __bool__(self) -> bool:
        return self.done

    def __str__(self) -> str:
        return self.message


class ArmClient:
    """Moves an arm; each call waits for its end. One call at a time, from any thread.

    The methods ending in _async do the same in asyncio; to cancel their task cancels the motion. Ctrl-C during a
    motion stops the arm, and raises KeyboardInterrupt. All raise InputError for arguments that are not allowed, and
    if ik_node is not running, does not respond or ends.
    """

    _neighbours: Neighbours

    def __init__(
        self,
        tool: str = '',
        *,
        namespace: str = '',
        name: str = 'arm_client',
        log: Callable[[str], object] | None = None,
    ) -> None:
        """tool: its name where there are several. namespace: of ik_node. name: of this program.

        log: gets what ik_node reports, sentence by sentence.
        """
        join(name)
        self._began = not rclpy.utilities.ok()
        if self._began:
            begin()
        self._name, self._log = name, log or (lambda _: None)
        self._prefix, self._of_tool = (f'{tool}/', f'{tool}.') if tool else ('', '')
        self._node = rclpy.create_node(name, namespace=namespace)
        self._spinner = Spinner(self._node)
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._stamp = ''  # of the goal, once it is sent
        self._unread: deque[dict[str, str]] = deque()  # reports on the goal
        self._number = 0  # of the goal
        self._other_number, self._other_stamp = 0, 0.0  # the highest of other goals that moved the arm
        self._grips: deque[Mapping[str, str]] = deque(maxlen=100)  # reports of the gripper
        prefix = f'{ARM}/{self._prefix}'
        self._statuses = subscribe(self._node, DiagnosticStatus, f'{prefix}status', self._on_status, STATUS_QOS)
        self._gripper = GripperRemote(self._node, prefix.rstrip('/'), self._grips.append)
        self._met: dict[str, Neighbours] = {}
        self._publishers: dict[str, Any] = {}

    def __enter__(self) -> ArmClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the client; the arm holds its position."""
        self._node.destroy_node()
        if self._began:
            rclpy.utilities.try_shutdown()

    # Moves

    def move(
        self,
        position: ArrayLike,
        direction: ArrayLike | None = None,
        *,
        cone: float = 0.0,
        tolerance: float = 0.0,
        line: bool = False,
        speed: float = 1.0,
        frame: str = '',
        timeout: float = math.inf,
    ) -> Result:
        """Move the tool point to a position (3,) [m], its axis along a direction (3,) of any length; None: free.

        cone [rad]: by how much the axis may lean. tolerance [m]: by how much the point may miss; 0: as ik_node has
        it. line: along a straight line. speed: share of speed_scaling, 0.001 to 1. frame: of the goal, by default
        the base link. timeout [s]: then the motion is cancelled: the arm brakes, and accepts other goals.
        """
        if not MIN_SPEED <= speed <= 1.0:
            raise InputError(f'speed is a share from {MIN_SPEED:g} to 1, got {speed!r}')
        axis = None if direction is None else unit_vector('direction', direction)
        if (line or cone) and axis is None:
            raise InputError(f'{"a line" if line else "a cone"} needs a direction')
        if not (0.0 <= cone <= math.pi and 0.0 <= tolerance <= 1.0):
            raise InputError(
                f'a cone is from 0 to pi [rad], and a tolerance from 0 to 1 [m], got {cone!r} and {tolerance!r}'
            )
        if line and (cone or tolerance):
            raise InputError('a line has no cone and no tolerance')
        with self._call():
            topic, message = self._goal(vector3('position', position), axis, cone, tolerance, line, frame)
            result = self._send(topic, message, timeout, speed)
            if result.state == 'unreachable' and axis is not None:
                nearest = self._nearest(message)
                result = Result(**{**vars(result), 'nearest': nearest})
            return result

    async def move_async(self, *arguments: Any, **named: Any) -> Result:
        """As move()."""
        return await self._awaited(self.move, *arguments, **named)

    def gripper(self, opening: float, timeout: float = MAX_GRIP_TIME) -> Result:
        """Move the gripper to an opening from 0, closed, to 1, open; an object that it holds ends the motion, too."""
        if not 0.0 <= opening <= 1.0:
            raise InputError(f'an opening is from 0 (closed) to 1 (open), got {opening!r}')
        with self._call():
            topic = f'{ARM}/{self._prefix}gripper'
            self._spinner.wait(lambda: self._gripper.connected, f'{ABSENT}: {topic} has no subscriber')
            self._meet(topic)
            self._spinner.wait(lambda: self._grips, NO_GRIPPER)
            self._grips.clear()
            self._gripper.open(float(opening))
            end = steady() + timeout
            with self._interruptible():
                while steady() < end and not self._cancelled.is_set():
                    self._spinner.spin(LOOK)
                    for report in self._grips:
                        state, target = report['state'], yaml_number(report['target'])
                        if target is None or abs(target - opening) > 1e-6 or state in ('moving', 'idle'):
                            continue
                        found = yaml_number(report['opening'])
                        found = math.nan if found is None else found
                        return Result(state in GRIPPED, state, report['message'], opening=found)
                why = 'cancelled' if self._cancelled.is_set() else 'timed out'
                self._trigger('cancel')
                return Result(False, why, f'the gripper did not arrive within {timeout:g} s' if why[0] == 't' else why)

    async def gripper_async(self, *arguments: Any, **named: Any) -> Result:
        """As gripper()."""
        return await self._awaited(self.gripper, *arguments, **named)

    def cancel(self) -> None:
        """Cancel the call that another thread waits for: the arm brakes, and accepts other goals."""
        self._cancelled.set()

    def stop(self) -> Result:
        """Stop the arm; it rejects goals until resume. A call that another thread waits for is cancelled."""
        self._cancelled.set()
        while not self._lock.acquire(timeout=LOOK):
            self._cancelled.set()  # also the call of a third thread, which began meanwhile
        try:
            return self._trigger('stop')
        finally:
            self._lock.release()

    def resume(self) -> Result:
        """Let the arm accept goals again after a stop or a fault."""
        with self._call():
            return self._trigger('resume')

    async def _awaited(self, act: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        call = asyncio.ensure_future(asyncio.to_thread(act, *arguments, **named))
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            self.cancel()
            await call  # until the arm brakes
            raise

    @contextmanager
    def _call(self) -> Iterator[None]:
        with self._lock:
            self._cancelled.clear()
            yield

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Stop the arm after Ctrl-C or another signal that ends the program."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in ENDING}
        self._spinner.handle_signals()
        try:
            yield
        except KeyboardInterrupt:
            self._spinner.ignore_signals()  # a second one does not prevent the stop
            self._log(self._trigger('stop').message)
            raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _set_speed(self, share: float) -> None:
        """Make the next motion one at a share of speed_scaling; ik_node ends that itself."""
        answers: list[str] = []
        remote = RemoteParameters(self._node, ARM, [SPEED], on_set=answers.append)
        self._spinner.wait(lambda: remote.available, f'{ARM} is not running')
        remote.set(**{SPEED: share})
        self._spinner.wait(lambda: not remote.busy, SILENT)
        if answers != ['']:
            raise InputError(f'{SPEED}: {answers[0] if answers else "not set"}')

    def _goal(
        self, position: Array, direction: Array | None, cone: float, tolerance: float, line: bool, frame: str
    ) -> tuple[str, Any]:
        """Return topic and message of a goal; see move."""
        message: Any
        if direction is None:
            if tolerance:
                raise InputError('a tolerance needs a direction; a cone of pi leaves it free')
            message, topic = PointStamped(point=array_point(position)), 'goal_point'
        else:
            axis, point = self._parameters(self._of_tool + 'tool_axis', self._of_tool + 'tool_point')
            pose = matrix_pose(tip_pose(position, direction, axis, point))
            if cone or tolerance:
                message, topic = PoseWithCovarianceStamped(), 'goal_cone'
                message.pose.pose = pose
                message.pose.covariance[0], message.pose.covariance[21] = tolerance**2, cone**2
            elif line:
                message, topic = PoseArray(poses=[pose]), 'goal_path'
            else:
                message, topic = PoseStamped(pose=pose), 'goal_pose'
        message.header.frame_id = frame  # empty: the base link
        return self._prefix + topic, message

    def _publisher(self, topic: str, kind: Any) -> Any:
        publisher = self._publishers.get(topic)
        if publisher is None:
            publisher = self._publishers[topic] = self._node.create_publisher(kind, topic, 1)
        self._spinner.wait(
            lambda: publisher.get_subscription_count() and self._statuses.get_publisher_count(),
            f'{ABSENT}: {publisher.topic_name} has no subscriber',
        )
        return publisher

    def _meet(self, topic: str) -> None:
        """Raise InputError if an arm that this program must not move listens to a topic."""
        neighbours = self._met.get(topic)
        if neighbours is None:
            neighbours = self._met[topic] = Neighbours(self._node, self._name, sends=[topic])
        self._neighbours = neighbours
        self._spinner.wait(lambda: neighbours.settled or neighbours.arms, '')
        end = steady() + LATE + PERIOD  # within which an arm that looks for others has found them
        while neighbours.arms and all(one.waits for one in neighbours.arms) and steady() < end:
            self._spinner.spin(LOOK)
        if refused := neighbours.foreign():
            raise InputError(refused)

    def _send(self, topic: str, message: Any, timeout: float, speed: float) -> Result:
        """Send a goal, and return how the motion ended."""
        publisher = self._publisher(topic, type(message))
        self._meet(topic)
        self._end_track()
        (now,) = self._parameters(SPEED)
        speed = min(speed, now) if self._prefix else speed  # of all tools: another one must not speed up
        if speed != 1.0 or now != 1.0:
            self._set_speed(speed)  # last: it does not hold for long without a motion
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._unread.clear()
        self._number = self._other_number
        self._stamp = stamp_text(message.header.stamp)
        end = steady() + timeout
        with self._interruptible():
            publisher.publish(message)
            self._spinner.wait(lambda: self._unread or self._other_stamp > float(self._stamp), SILENT)
            if not self._unread:  # not all goals of a stream are reported
                return self._replaced()
            reporters = self._reporters()
            while True:
                while self._unread:
                    report = self._unread.popleft()
                    self._log(report['message'])
                    if report['status'] == 'rejected' or report['state'] in ENDS:
                        return _result(report)
                if self._other_number > self._number:
                    return self._replaced()
                if not reporters & self._reporters():  # a node that was started later does not know the goal
                    raise InputError(f'{ARM} has ended or cannot be reached: there will be no more reports on the goal')
                if self._cancelled.is_set() or steady() > end:
                    why = 'cancelled' if self._cancelled.is_set() else 'timed out'
                    self._trigger('cancel')
                    return Result(False, why, f'the motion was {why}, so the arm stops')
                self._spinner.spin(LOOK)

    def _end_track(self) -> None:
        """End the track of ik_goals, whose next goal would replace this one."""
        publishers = graph.publishing_nodes(self._node, self._node.resolve_topic_name(f'{self._prefix}goal_pose'))
        if not any(name.endswith('/ik_goals') for name in publishers):
            return
        remote = RemoteParameters(self._node, f'{self._prefix}ik_goals', [TRACK])
        self._spinner.wait(lambda: remote.available, '')
        remote.refresh()
        self._spinner.wait(lambda: not remote.reading, 'ik_goals does not respond')
        track = remote.values.get(TRACK, NO_TRACK)
        if track != NO_TRACK:
            self._log(f'the goal no longer moves along the {track}')
            remote.set(**{TRACK: NO_TRACK})
            self._spinner.wait(lambda: not remote.busy, 'ik_goals does not respond')

    def _replaced(self) -> Result:
        sentence = 'another goal has replaced this one'
        one = next((one for one in self._neighbours.others if one.program == 'ik_goals'), None)
        if one is not None:
            sentence = (
                f'{sentence}: {one} moves the goal. Choose the target track none on the page, or start '
                'ik_demo with --track none'
            )
        self._log(sentence)
        return Result(False, 'replaced', sentence)

    def _nearest(self, goal: Any) -> tuple[Array, Array] | None:
        """Return position and direction of the nearest pose that the arm can reach; None if ik_node does not tell."""
        pose = goal.pose.pose if isinstance(goal, PoseWithCovarianceStamped) else getattr(goal, 'pose', None)
        if pose is None:  # the end of a line
            pose = goal.poses[-1]
        found: list[PoseStamped] = []
        prefix = f'{ARM}/{self._prefix}'
        answers = subscribe(self._node, PoseStamped, f'{prefix}projected_pose', found.append, STATUS_QOS)
        asked = self._node.create_publisher(PoseStamped, f'{prefix}project_pose', 1)
        try:
            query = PoseStamped(header=goal.header, pose=pose)
            query.header.stamp = self._node.get_clock().now().to_msg()
            ready = lambda: answers.get_publisher_count() and asked.get_subscription_count()  # noqa: E731
            self._spinner.wait(ready, SILENT)
            asked.publish(query)
            stamp = query.header.stamp
            self._spinner.wait(lambda: any(one.header.stamp == stamp for one in found), SILENT)
        except InputError:
            return None
        finally:
            self._node.destroy_subscription(answers)
            self._node.destroy_publisher(asked)
        T = pose_matrix(next(one for one in found if one.header.stamp == stamp).pose)
        axis, point = self._parameters(self._of_tool + 'tool_axis', self._of_tool + 'tool_point')
        return T[:3, :3] @ point + T[:3, 3], T[:3, :3] @ axis

    def _trigger(self, name: str) -> Result:
        """Call a service of ik_node."""
        service = f'{ARM}/{self._prefix}{name}'
        response = self._spinner.call(service, f'{ABSENT}: there is no service {service}', SILENT)
        return Result(response.success, name, response.message)

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

    def _parameters(self, *names: str) -> list[Any]:
        remote = RemoteParameters(self._node, ARM, names)
        self._spinner.wait(lambda: remote.available, f'{ABSENT}: there is no service {ARM}/get_parameters')
        remote.refresh()
        self._spinner.wait(lambda: not remote.reading, SILENT)
        if len(remote.values) < len(names):
            raise InputError(f'{ARM} has no parameter {names[0]}, so there is no such tool')
        return [remote.values[name] for name in names]


def _result(report: dict[str, str]) -> Result:
    """Return the result that a last report on a goal gives."""
    done = report['state'] == 'arrived' and report['status'] == 'solved'
    state = 'arrived' if done else report['status'] if report['status'] != 'solved' else report['state']
    if state == 'not found':
        state = 'unreachable'  # as far as is known
    position, direction = (yaml_number(report.get(key, '')) for key in ('position_error', 'direction_error'))
    return Result(
        done,
        state,
        report['message'],
        math.nan if position is None else position,
        math.nan if direction is None else direction,
    )


def main(given: Sequence[str] | None = None) -> int:
    """Run ik_goto. Return 0 once the arm has arrived, 1 if it fails.

    Return 2 for invalid arguments, without ik_node, or if ik_node ends before the motion does.
    """
    parser = PlainParser('ik_goto')
    add_goal(parser, optional=True)
    parser.add_argument(
        '--cone', type=float, default=0.0, help='angle by which the tool may point elsewhere [rad] (default: 0)'
    )
    parser.add_argument('--line', action='store_true', help='move the tool there along a straight line')
    parser.add_argument(
        '--gripper',
        type=float,
        metavar='OPENING',
        help='move the gripper, after the arm has arrived: 0 closes it, 1 opens it',
    )
    parser.add_argument(
        '--speed',
        type=float,
        default=1.0,
        help='share of the speed that is set in ik_node, from 0.001 to 1 (default: 1)',
    )
    parser.add_argument('--tool', default='', help='name of the tool, where there are several')
    parser.add_argument('--frame', default='', help='frame of the goal (default: the base link)')
    arguments = without_ros(sys.argv[1:] if given is None else given)
    return run(_goto, parser.parse_args(arguments))


def _goto(arguments: argparse.Namespace) -> int:
    place = [arguments.x, arguments.y, arguments.z]
    if None in place and (place != [None] * 3 or arguments.gripper is None):
        raise InputError('give x, y and z of the goal, or --gripper alone')
    if arguments.line and arguments.direction is None:
        raise InputError('--line needs a --direction')
    direction = None if arguments.direction is None else unit_vector('--direction', arguments.direction)
    with ArmClient(arguments.tool, name='ik_goto', log=say) as arm:
        if None not in place and not arm.move(
            np.array(place),
            direction,
            cone=arguments.cone,
            line=arguments.line,
            speed=arguments.speed,
            frame=arguments.frame,
        ):
            return 1
        if arguments.gripper is None:
            return 0
        result = arm.gripper(arguments.gripper)
        say(result.message)
        return 0 if result else 1
