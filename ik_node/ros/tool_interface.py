# SPDX-License-Identifier: Apache-2.0
"""ToolInterface: the topics and services of one tool, in front of the controller that moves it."""

from __future__ import annotations

import math
import threading
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, TwistStamped, Vector3
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import Bool, ColorRGBA, Int8
from std_srvs.srv import SetBool
from visualization_msgs.msg import Marker, MarkerArray

from ik_node.checks import Array
from ik_node.control.arm_motion import SHARED, JointArbiter
from ik_node.control.controller import ArmController, Inbox, Statistics
from ik_node.control.locks import Rank, ordered_lock
from ik_node.control.outputs import Output
from ik_node.control.requests import HomeRequest, Level, Report, Snapshot
from ik_node.control.settings import ArmSettings
from ik_node.control.states import NEED_RESUME, ON_ITS_WAY, State
from ik_node.control.teleop import TeleopController
from ik_node.errors import InputError, join_names
from ik_node.model.arm import Arm
from ik_node.ros.conversions import array_point, check_stamp, pose_matrix
from ik_node.ros.frames import Frames
from ik_node.ros.reports import MEASURED_AGE, NodeTime, goal_state, status_message
from ik_node.solver.goal import Goal, Status
from ik_node.steady import steady

from . import interfaces
from .goals import GOALS, GoalContext, GoalRequest, Projection
from .gripper import GripperInterface, GripperRequest
from .interfaces import (
    DELTA_JOINTS,
    DELTA_TWIST,
    ENABLE,
    PAUSE_SERVO,
    POSE_TARGET,
    SERVO_STATUS,
    SWITCH_COMMAND_TYPE,
    Remarks,
)

COLOURS = {
    Status.SOLVED: ColorRGBA(r=0.1, g=0.65, b=0.2, a=1.0),
    Status.UNREACHABLE: ColorRGBA(r=0.9, g=0.15, b=0.1, a=1.0),
    Status.NOT_FOUND: ColorRGBA(r=1.0, g=0.6, b=0.0, a=1.0),
}
PRESENT = ColorRGBA(r=0.15, g=0.7, b=0.67, a=1.0)
TRACK = ColorRGBA(r=0.45, g=0.47, b=0.52, a=0.8)

# As shares of the arm's reach. Both arrows start at the tool point and leave the gripper in front of it; the
# wanted one is longer and thinner, so that both are seen where they agree.
WANTED_LENGTH, WANTED_SHAFT = 0.32, 0.010
PRESENT_LENGTH, PRESENT_SHAFT = 0.16, 0.018
BALL, LINE, TEXT = 0.028, 0.006, 0.05
TEXT_HEIGHT = 0.15  # of the text above the goal
HEAD = 2.4  # diameter of an arrow's head, in those of its shaft
LINE_MINIMUM = 2  # points; RViz complains about a shorter line
UP = np.array([0.0, 0.0, 1.0])


def _marker(number: int, name: str, kind: int, frame: str, colour: ColorRGBA) -> Marker:
    marker = Marker(ns=name, id=number, type=kind, action=Marker.ADD, color=colour)
    marker.header.frame_id = frame  # the stamp stays zero: drawn with the newest transform there is
    marker.pose.orientation.w = 1.0
    return marker


def _arrow(marker: Marker, tail: Array, direction: Array, length: float, shaft: float) -> Marker:
    """Make marker an arrow from tail (3,) along direction (3,); length, and diameter of the shaft, in m."""
    marker.points = [array_point(tail), array_point(tail + length * direction)]
    marker.scale = Vector3(x=shaft, y=HEAD * shaft, z=2.0 * HEAD * shaft)
    return marker


def _line(marker: Marker, points: Iterable[Point], width: float) -> Marker:
    """Make marker a line through points; with fewer than two it is deleted."""
    marker.points = list(points)
    marker.scale.x = width
    if len(marker.points) < LINE_MINIMUM:
        marker.action = Marker.DELETE
    return marker


def _words(goal: Goal, status: Status, position: Array, direction: Array) -> str:
    """Return the status and the errors of a tool at position along direction, both (3,)."""
    words = f'{status.value}\n{1e3 * math.dist(position, goal.position):.1f} mm'
    if goal.direction is not None:
        cross, dot = np.linalg.norm(np.cross(direction, goal.direction)), direction @ goal.direction
        words += f'  {math.degrees(math.atan2(cross, dot)):.1f}°'
    return words


def goal_markers(
    frame: str,
    goal: Goal,
    status: Status,
    position: Array,
    direction: Array,
    reach: float,
    trail: Iterable[Point] = (),
) -> MarkerArray:
    """Return the markers of a goal while the tool is at position (3,), pointing along direction (3,).

    frame: the base link. reach [m] gives the size. trail: points where the tool has been. Without a
    wanted direction a ball marks the goal.
    """
    colour = COLOURS[status]
    arrow = _marker(0, 'wanted', Marker.ARROW, frame, colour)
    ball = _marker(1, 'wanted', Marker.SPHERE, frame, colour)
    if goal.direction is not None:
        _arrow(arrow, goal.position, goal.direction, WANTED_LENGTH * reach, WANTED_SHAFT * reach)
        ball.action = Marker.DELETE
    else:
        arrow.action = Marker.DELETE
    ball.pose.position = array_point(goal.position)
    ball.scale = Vector3(x=BALL * reach, y=BALL * reach, z=BALL * reach)
    present = _marker(2, 'present', Marker.ARROW, frame, PRESENT)
    _arrow(present, position, direction, PRESENT_LENGTH * reach, PRESENT_SHAFT * reach)
    error = (array_point(position), array_point(goal.position))
    line = _line(_marker(3, 'error', Marker.LINE_STRIP, frame, colour), error, LINE * reach)
    text = _marker(4, 'status', Marker.TEXT_VIEW_FACING, frame, colour)
    text.text = _words(goal, status, position, direction)
    text.pose.position = array_point(goal.position + TEXT_HEIGHT * reach * UP)
    text.scale.z = TEXT * reach
    been = _line(_marker(5, 'trail', Marker.LINE_STRIP, frame, PRESENT), trail, LINE * reach)
    return MarkerArray(markers=[arrow, ball, present, line, text, been])


def track_marker(frame: str, points: Iterable[Array], size: float) -> MarkerArray:
    """Return the line through points (3,) of a track of that size [m] in frame; without points none."""
    line = _marker(0, 'track', Marker.LINE_STRIP, frame, TRACK)
    return MarkerArray(markers=[_line(line, map(array_point, points), 0.02 * size)])


MARKER_PERIOD = 0.1  # seconds from one drawing to the next
TRAIL = 100  # points: ten seconds of motion


class GoalMarkers:
    """set() stores the goal to show, draw() publishes it when it is due; only one thread may draw.

    Without a subscriber nothing is drawn; the first one gets the markers of the goal at the next draw().
    """

    def __init__(self, publisher: Publisher) -> None:
        """publisher: of MarkerArray."""
        self._publisher = publisher
        self._goal: tuple[Goal, Status] | None = None
        self._trail: deque[Point] = deque(maxlen=TRAIL)
        self._stale = False
        self._drawn = 0.0

    def set(self, goal: Goal, status: Status) -> None:
        """Show goal in the colour of status."""
        self._goal = (goal, status)
        self._stale = True

    def clear(self) -> None:
        """Remove all markers."""
        if self._goal is not None:
            self._publisher.publish(MarkerArray(markers=[Marker(action=Marker.DELETEALL)]))
        self._goal = None
        self._trail.clear()
        self._stale = False

    @property
    def wait(self) -> float | None:
        """Seconds until draw() is due; None if nothing has changed."""
        due = self._stale and self._goal is not None  # set and clear run in different threads
        return max(0.0, self._drawn + MARKER_PERIOD - steady()) if due else None

    def draw(self, state: Snapshot | None) -> None:
        """Draw the goal and the tool of state if it is due; repeatedly while the arm moves."""
        shown = self._goal  # other threads may clear it
        if state is None or shown is None or self.wait != 0.0:
            return
        goal, status = shown
        arm = state.tool.arm
        position, direction = arm.fk(state.position)
        self._drawn = steady()
        point = array_point(position)
        trail = [*self._trail]
        if not trail or point != trail[-1]:
            self._trail.append(point)
            trail.append(point)
        if not self._publisher.get_subscription_count():
            return
        markers = goal_markers(arm.base_link, goal, status, position, direction, arm.reach, trail)
        self._publisher.publish(markers)
        self._stale = state.moving


PERIOD = 0.1  # [s] from one report on a stream of goals to the next


class ReportPace:
    """The reports on one tool, in order.

    Only "solved: moving to the goal" is delayed, within PERIOD of another one: until then another such report
    from the same source replaces it, or any other report follows it. Thread-safe.
    """

    def __init__(self, publish: Callable[[Report], None]) -> None:
        self._publish = publish
        self._lock = ordered_lock(Rank.REPORTS)
        self._delayed: Report | None = None
        self._due = 0.0  # when the next report on a stream is (steady)

    def add(self, report: Report) -> None:
        """Publish a report, or hold it back."""
        repeats = report.phase == 'moving' and report.status == 'solved' and report.level is Level.OK
        with self._lock:
            delayed, self._delayed = self._delayed, None
            if repeats and steady() < self._due:
                self._delayed = report
                return
            if delayed is not None and not (repeats and _source(delayed) == _source(report)):
                self._publish(delayed)
            self._publish(report)
            self._due = steady() + PERIOD if repeats else 0.0

    def publish_due(self) -> None:
        """Publish a delayed report that is due; call with every setpoint."""
        if self._delayed is None:
            return
        with self._lock:
            if self._delayed is not None and steady() >= self._due:
                delayed, self._delayed = self._delayed, None
                self._publish(delayed)
                self._due = steady() + PERIOD


def _source(report: Report) -> str:
    return '' if report.request is None else report.request.source


def arm_values(snapshot: Snapshot, report: Report | None, condition: str) -> dict[str, str]:
    """Return values by key, as text.

    report: the newest one on a goal, None before the first. condition: of the arm, as a sentence.
    """
    margin, joint = snapshot.margin
    values = {
        'state': snapshot.state.value,
        'standing still because': _why_still(snapshot, report, condition),
        'least distance to a joint limit [rad or m]': f'{margin:.4f} ({joint})',
    }
    if report is not None and report.request is not None:
        age = steady() - report.request.arrival
        values['newest goal'] = f'{report.number} ({report.request.source}): {report.phase}'
        values['age of the newest goal [s]'] = f'{age:.3f}'
    if snapshot.moving and not math.isnan(snapshot.remaining):
        values['share of the motion done'] = f'{snapshot.share:.3f}'
        values['time left [s]'] = f'{snapshot.remaining:.3f}'
    if not math.isnan(snapshot.measured_age):
        values[MEASURED_AGE] = f'{snapshot.measured_age:.3f}'
    if snapshot.model.notes:  # such as that a shape is left out
        values['self-collision'] = '; '.join(snapshot.model.notes)
    if snapshot.model.collision is not None:
        distance, pair = snapshot.model.collision.distance(snapshot.values)
        values['distance to self-collision [m]'] = f'{distance:.4f} ({pair[0]} with {pair[1]})'
    return values


def _why_still(snapshot: Snapshot, report: Report | None, condition: str) -> str:
    """Return why an arm does not move; empty if it does."""
    if snapshot.moving:
        return ''
    if snapshot.state is not State.HOLDING:
        return condition
    return 'no goal received yet' if report is None else report.message


# TeleopInterface: teleoperation topics and services, named as in MoveIt Servo, for a TeleopController.
#
# Callbacks only store the newest command; a thread converts it to joint positions, at the publish rate and
# when a command arrives. No command moves the arm for longer than incoming_command_timeout. Poses are
# ignored while the clutch is open.

JOINT_JOG, TWIST, POSE = 'joint_jog', 'twist', 'pose'  # in the order of moveit_msgs/srv/ServoCommandType
COMMANDS = (JOINT_JOG, TWIST, POSE)
INVALID, NO_WARNING, JOINT_BOUND = -1, 0, 6  # moveit_msgs/msg/ServoStatus


class TeleopInterface:
    """Passes operator commands to a TeleopController."""

    def __init__(
        self,
        node: Node,
        prefix: str,
        controller: ArmController,
        frames: Frames,
        time: NodeTime,
        settings: Callable[[], ArmSettings],
    ) -> None:
        """prefix: of the topics and services."""
        self._node, self._frames, self._time = node, frames, time
        self._rejection = ''  # why this tool cannot be teleoperated
        self._settings = settings
        self._changed = threading.Condition(ordered_lock(Rank.TELEOP))
        self._command: tuple[str, Any, float] | None = None  # kind, message, when it was received [s]
        self._new = self._closing = self._paused = False
        self._remarks = Remarks()
        self._kind = ''  # the only kind that is accepted; empty: every kind
        self._teleop = TeleopController(controller)
        self._code = NO_WARNING
        for kind, topic in ((TWIST, DELTA_TWIST), (JOINT_JOG, DELTA_JOINTS), (POSE, POSE_TARGET)):
            topic.subscription(node, partial(self._store, kind), prefix)
        ENABLE.subscription(node, self._enable, prefix)
        PAUSE_SERVO.provide(node, self._pause, prefix)
        if SWITCH_COMMAND_TYPE.type is not None:
            SWITCH_COMMAND_TYPE.provide(node, self._switch, prefix)
        self._status = SERVO_STATUS.publisher(node, prefix)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(timeout=1.0)

    def reject(self, why: str) -> None:
        """Reject commands from now on, because this tool cannot be teleoperated; empty: accept them."""
        with self._changed:
            self._rejection = why

    # Storing

    def _store(self, kind: str, message: Any) -> None:
        with self._changed:
            if self._paused or self._kind not in ('', kind):
                return
            self._command, self._new = (kind, message, self._time.now()), True
            self._changed.notify()

    def _enable(self, message: Bool) -> None:
        self._teleop.enable(message.data, self._time.now(), self._settings())

    def _pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if request.data:
            self._teleop.clutch.drop()
        with self._changed:
            if self._paused and not request.data:  # a press during the pause does not count
                self._teleop.clutch.drop()
            self._paused = request.data
            if self._command is not None:  # its motion ends
                self._command, self._new = (*self._command[:2], -math.inf), False
        response.success, response.message = True, 'paused' if request.data else 'commands are accepted'
        return response

    def _switch(self, request: Any, response: Any) -> Any:
        response.success = request.command_type in range(len(COMMANDS))
        if response.success:
            with self._changed:
                self._kind = COMMANDS[request.command_type]
        return response

    # Steps, in a thread of their own

    def _run(self) -> None:
        while not self._closing and self._node.context.ok():
            period = 1.0 / self._settings().publish_rate
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._new, None if self._command is None else period)
            self.step()

    def step(self) -> None:
        """Carry out the newest command."""
        with self._changed:
            if self._closing:
                return
            command, new, self._new = self._command, self._new, False
            rejection = self._rejection
        if command is not None and not self._try(partial(self._carry_out, command, new, rejection)):
            self._try(self._forget)

    def _try(self, act: Callable[[], None]) -> bool:
        """Whether act succeeds. An unexpected error is logged: the next command may succeed."""
        try:
            act()
        except Exception:
            if not self._closing and self._node.context.ok():
                self._node.get_logger().error(
                    f'unexpected error, please report it: {traceback.format_exc()}',
                    throttle_duration_sec=10.0,
                )
            return False
        return True

    def _carry_out(self, command: tuple[str, Any, float], new: bool, rejection: str) -> None:
        try:
            self._step(*command, new, rejection)
        except InputError as error:
            self._forget()
            self._publish_status(INVALID, str(error))
            if self._remarks.new(sentence := f'{command[0]} command ignored: {error}'):
                self._node.get_logger().warning(sentence)

    def _forget(self) -> None:
        """Discard the command and end its motion."""
        with self._changed:
            if self._new:
                return
            self._command = None
        self._teleop.end()

    def _step(self, kind: str, message: Any, received: float, new: bool, rejection: str) -> None:
        settings, now, teleop = self._settings(), self._time.now(), self._teleop
        if now - received > settings.incoming_command_timeout or now < received:
            self._forget()
            return
        if rejection:
            raise InputError(rejection)
        snapshot = teleop.ready()
        check_stamp(message.header.stamp, self._time.now_ns(), settings.goal_timeout)
        if kind == JOINT_JOG:
            moves = teleop.jog(snapshot, _joint_velocities(message, snapshot, settings), now, settings)
        elif kind == TWIST:
            R = self._in_base(message, snapshot)[:3, :3]
            linear, angular = _twist(message, settings)
            moves = teleop.twist(snapshot, R @ linear, R @ angular, now, settings)
        else:
            if new:
                pose = self._in_base(message, snapshot) @ pose_matrix(message.pose)
                teleop.take(snapshot, pose, received, self._time.of(message.header.stamp), settings)
            moves = teleop.follow(snapshot, now, settings)
            if teleop.ignored:
                self._publish_status(INVALID, teleop.ignored)
        if moves:
            self._publish_status(JOINT_BOUND if teleop.held_back else NO_WARNING)

    def _in_base(self, message: Any, snapshot: Snapshot) -> Array:
        """Return the pose T (4, 4) in the base link of the frame of a message."""
        return self._frames.in_base(message.header, snapshot.model, snapshot.values)

    def _publish_status(self, code: int, message: str = '') -> None:
        """Publish a status when its code changes."""
        if code == self._code:
            return
        self._code = code
        if SERVO_STATUS.type is Int8:
            self._status.publish(Int8(data=code))
        else:
            self._status.publish(SERVO_STATUS.type(code=code, message=message))


def _twist(message: TwistStamped, settings: ArmSettings) -> tuple[Array, Array]:
    """Return linear [m/s] and angular [rad/s] velocity, each (3,), in the frame of the message."""
    parts = message.twist.linear, message.twist.angular
    linear, angular = (np.array([part.x, part.y, part.z]) for part in parts)
    if not (np.isfinite(linear).all() and np.isfinite(angular).all()):
        raise InputError(f'a twist must be finite, got linear {linear.tolist()}, angular {angular.tolist()}')
    if settings.command_in_type == 'unitless':
        linear = settings.scale_linear * np.clip(linear, -1.0, 1.0)
        angular = settings.scale_rotational * np.clip(angular, -1.0, 1.0)
    return linear, angular


def _joint_velocities(message: Any, snapshot: Snapshot, settings: ArmSettings) -> Array:
    """Return the velocities (n,) of the joints of the arm that a JointJog or a JointState asks for."""
    names = list(getattr(message, 'joint_names', None) or getattr(message, 'name', []))
    given = list(getattr(message, 'velocities', None) or getattr(message, 'velocity', []))
    known = snapshot.tool.arm.joint_names
    if len(names) != len(given) or not np.isfinite(given).all():
        raise InputError(f'one finite velocity per joint is needed, got {given} for {join_names(names)}')
    if not names or len(set(names)) < len(names):
        raise InputError(f'each joint must be named once, got {join_names(names) if names else "none"}')
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f'unknown joints: {join_names(unknown)}; joints: {join_names(known, unknown[0])}')
    requested = dict(zip(names, given, strict=True))
    velocities = np.array([requested.get(name, 0.0) for name in known])
    if settings.command_in_type == 'unitless':
        velocities = settings.scale_joint * np.clip(velocities, -1.0, 1.0)
    fastest = settings.velocity_share * snapshot.tool.arm.velocity
    return np.clip(velocities, -fastest, fastest)


ServiceResult = tuple[bool, str]  # whether a service succeeded, and one sentence
STATE_PERIOD = 0.1  # [s] from one goal_state to the next while the arm moves


@dataclass(frozen=True, eq=False)
class NodeContext:
    """State shared by the tools of a node.

    urgent: a node whose executor serves what must not wait behind messages. inbox: of goals.
    queries: inbox of queries. send_now: called when an arm begins to move. clear_driver: ends a hold or a
    fault of the driver.
    """

    node: Any
    urgent: Node
    time: NodeTime
    frames: Frames
    inbox: Inbox
    queries: Inbox
    statistics: Statistics
    robot: JointArbiter
    send_now: Callable[[], None]
    clear_driver: Callable[[Sequence[str]], Awaitable[None]]


class ToolInterface:
    """The topics and services of one tool.

    tool: its name, empty if there is only one; prefix of the names of topics and services. group: the tools
    that share joints with it, and itself; the controller of the first one moves all of them.
    """

    def __init__(
        self,
        shared: NodeContext,
        tool: str,
        settings: Callable[[], ArmSettings],
        outputs: Callable[[ToolInterface], Sequence[Output]],
    ) -> None:
        """outputs: gives those of own_controller, once."""
        self.tool = tool
        self._node, self._time, self._send_now = shared.node, shared.time, shared.send_now
        self._inbox, self._statistics = shared.inbox, shared.statistics
        node, frames, urgent = shared.node, shared.frames, shared.urgent
        self.prefix = prefix = f'{tool}/' if tool else ''
        self.name = f'{node.get_name()}/{tool}' if tool else node.get_name()
        self.goals = GoalContext(frames, shared.time, lambda: settings().goal_timeout, tool)
        self.last_report: Report | None = None  # on a goal
        self._state_due = 0.0  # when the next goal_state is (steady)
        self._on_its_way = False  # at the last setpoint
        self._told: set[str] = set()  # why goals are rejected until a resume, as logged
        self._stopped = False  # a stop was requested, and no resume since
        self._pace = ReportPace(self._publish)
        self._status = interfaces.STATUS.publisher(node, prefix)
        self._goal_state = interfaces.GOAL_STATE.publisher(node, prefix)
        self.markers = GoalMarkers(interfaces.MARKERS.publisher(node, prefix))
        self.group = [self]
        self.own_controller = ArmController(self._on_report, outputs(self), shared.robot)
        for topic, kind in GOALS.items():
            store = partial(self._store, topic.named(prefix), kind)
            topic.subscription(node, store, prefix, refuse=store)
        self.gripper = GripperInterface(node, prefix, tool, lambda: self.controller, shared.inbox, settings)
        Projection(node, prefix, self.goals, shared.queries)
        self.teleop = TeleopInterface(node, prefix, self.own_controller, frames, shared.time, settings)
        interfaces.HOME.provide(node, answered(self.home), prefix)
        interfaces.CANCEL.provide(node, answered(self.cancel), prefix, by=urgent)
        interfaces.STOP.provide(node, answered(self.stop), prefix, by=urgent)
        offer_resume(shared, self.resume, prefix, lambda: self.controller.needed)
        interfaces.HAND_GUIDE.provide(node, self._hand_guide, prefix, by=urgent)

    def close(self) -> None:
        """End what moves the arm."""
        self.teleop.close()

    def lead(self, group: list[ToolInterface]) -> None:
        """Move the tools of a group, of which this is the first, with its own controller."""
        for tool in group:
            tool.group = group
            tool.teleop.reject(SHARED if len(group) > 1 else '')
        if any(tool._stopped for tool in group):
            self.own_controller.stop()

    @property
    def leads(self) -> bool:
        """Whether its own controller moves it."""
        return self.group[0] is self

    @property
    def controller(self) -> ArmController:
        """The controller that moves it."""
        return self.group[0].own_controller

    def label(self, text: str) -> str:
        """Return text for the log, prefixed with the name of the tool."""
        return text if text.startswith(self.prefix) else f'{self.tool}: {text}'

    def snapshot(self) -> Snapshot | None:
        """Return the present state of the arm; None before the first one."""
        return self.controller.snapshot(self.tool)

    def renew(self, arm: Arm, replaced: bool) -> None:
        """Complete the switch to a new robot: goals for the previous one are void."""
        if replaced:
            self.goals.replaced = steady()
        self.goals.joints = None
        self.markers.clear()
        for warning in arm.warnings:
            self._node.get_logger().warning(warning)

    # Goals and services

    def _store(self, topic: str, kind: type[GoalRequest], message: Any, refusal: str = '') -> None:
        pushed = self._inbox.put(kind(topic, message, self.goals, refusal))
        self._statistics.count('superseded', pushed)

    def home(self) -> ServiceResult:
        """Move to the home position; return whether the arm is ready, and a sentence."""
        if not self.controller.ready:
            return False, self.controller.condition()[1]
        self._inbox.put(HomeRequest(self.tool, f'~/{self.prefix}home'))
        return True, 'moving to the home position'

    def cancel(self) -> ServiceResult:
        """Brake, and forget the goals."""
        for tool in self.group:
            self._inbox.clear(tool.tool)
        if not self.controller.cancel():
            return False, self.controller.condition()[1]
        return True, 'cancelled: the arm brakes and holds'

    def stop(self) -> ServiceResult:
        """Stop until resume."""
        self._stopped = True
        for tool in self.group:
            self._inbox.clear(tool.tool)
        self.controller.stop()
        return True, f'stopping; run ik_resume or call ~/{self.prefix}resume, then give a goal'

    def resume(self) -> ServiceResult:
        """Accept goals again."""
        result = self._tried(self.controller.resume)
        if result[0]:
            for tool in self.group:
                tool._stopped = False
            level, message = self.controller.condition()
            return True, 'the arm accepts goals again' if level is Level.OK else message
        return result

    def _hand_guide(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Begin or end hand guiding."""
        guided = self._tried(lambda: self.controller.guide(request.data, self._time.now()))
        response.success, response.message = guided
        return response

    def _tried(self, act: Callable[[], None]) -> ServiceResult:
        try:
            act()
        except InputError as error:
            return False, str(error)
        return True, self.controller.condition()[1]

    # Reports

    def _on_report(self, report: Report) -> None:
        """Forward a report of the own controller: on a goal to its tool, else to all tools that it moves."""
        name = None if report.request is None else report.request.tool
        for tool in self.group if self.leads else [self]:
            if name in (None, tool.tool):
                tool.report(report, logged=report.logged and (name is not None or tool is self))

    def report(self, report: Report, logged: bool = True) -> None:
        """Publish the result of a goal or the state of the arm, and log problems."""
        self.gripper.on_report(report)
        if isinstance(report.request, GripperRequest):  # it has a status of its own
            if logged and not self._node.closing:
                self._log(report)
            return
        if report.request is not None:
            self.last_report = report
            self._count(report)
        if report.status == 'rejected' or report.phase == 'stopped':
            self.goals.joints = None  # a repeated joint goal is a new one
        self._pace.add(report)
        if report.request is not None and report.phase == 'moving' and not self._on_its_way:
            self._send_now()
        if logged and not self._node.closing:  # rejections during shutdown are expected
            self._log(report)

    def _count(self, report: Report) -> None:
        """Count the result of a goal, and show the goal if it is pursued."""
        if report.phase in ('moving', 'held'):
            self._statistics.count('taken')
            self._statistics.solved_in(report.solve_time)
            if report.goal is None or report.solution is None:
                self.markers.clear()
            else:
                self.markers.set(report.goal, report.solution.status)
        elif report.status == 'rejected':
            self._statistics.count('rejected')

    def _log(self, report: Report) -> None:
        log = self._node.get_logger()
        message = self.label(report.message)
        if report.status != 'rejected' or report.state.value not in NEED_RESUME:
            self._told.clear()
        elif message in self._told:  # a track goes on sending goals
            return
        else:
            self._told.add(message)
        if report.level is Level.ERROR:
            log.error(message, throttle_duration_sec=2.0)
        elif report.level is Level.WARN:
            log.warning(message, throttle_duration_sec=2.0)
        elif report.request is None:
            log.info(message)

    def _publish(self, report: Report) -> None:
        self._status.publish(status_message(self.name, report))
        self._publish_goal_state()

    def _publish_goal_state(self) -> None:
        self._state_due = steady() + STATE_PERIOD
        snapshot = self.snapshot() if self._goal_state.get_subscription_count() else None
        if snapshot is not None:
            self._goal_state.publish(goal_state(self.last_report, snapshot))

    def publish_due(self) -> None:
        """Publish a delayed report, if it is due."""
        self._pace.publish_due()

    def moved(self) -> None:
        """Publish the progress of a moving arm when it is due; call it after each setpoint."""
        self.publish_due()
        self._on_its_way = self.controller.state in ON_ITS_WAY
        if self._on_its_way and steady() >= self._state_due:
            self._publish_goal_state()

    def diagnostics(self, condition: str) -> dict[str, str]:
        """Return the values of the arm for /diagnostics; condition: of the arm, as a sentence."""
        snapshot = self.snapshot()
        if snapshot is None:
            return {'state': self.controller.state.value}
        return arm_values(snapshot, self.last_report, condition)


def offer_resume(
    shared: NodeContext,
    act: Callable[[], ServiceResult],
    prefix: str = '',
    joints: Callable[[], Sequence[str]] = tuple,
) -> None:
    """Provide ~/resume: act, after the drivers of joints (none: of all) take commands again."""

    async def callback(_: Any, response: Any) -> Any:
        await shared.clear_driver(joints())
        response.success, response.message = act()
        return response

    # a group of its own: a stop does not wait for the driver
    group = MutuallyExclusiveCallbackGroup()
    interfaces.RESUME.provide(shared.node, callback, prefix, group, shared.urgent)


def answered(act: Callable[[], ServiceResult]) -> Callable[[Any, Any], Any]:
    """Return a service callback that responds with the result of act."""

    def callback(_: Any, response: Any) -> Any:
        response.success, response.message = act()
        return response

    return callback
