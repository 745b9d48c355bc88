# SPDX-License-Identifier: Apache-2.0
"""Goals and reports as messages: goals in the base frame, status, goal_state, projected poses."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from builtin_interfaces.msg import Time as Stamp
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point, PointStamped, Pose, PoseStamped
from rclpy.node import Node
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, MultiArrayDimension, MultiArrayLayout

from ik_node.checks import Array
from ik_node.control.controller import Inbox
from ik_node.control.locks import OrderedLock, Rank
from ik_node.control.models import ArmModel
from ik_node.control.motion import MOVING
from ik_node.control.paths import MOST_POINTS, ToolPath
from ik_node.control.requests import Level, Report, Snapshot, Wanted
from ik_node.control.states import State
from ik_node.errors import LARGEST, IkError, InputError, join_names
from ik_node.model.arm import Arm
from ik_node.ros.conversions import (
    NS_PER_S,
    check_stamp,
    joint_values,
    matrix_pose,
    point_array,
    pose_matrix,
    stamp_text,
)
from ik_node.solver.goal import Goal, Solution, Status
from ik_node.steady import steady

from .interfaces import (
    FK_JOINT_STATES,
    FK_POSE,
    GOAL_JOINTS,
    GOAL_PATH,
    GOAL_POINT,
    GOAL_POSE,
    PROJECT_POSE,
    PROJECTED_POSE,
    PROJECTION,
    SubscribedTopic,
)

KEPT = 50  # own messages that may still be received


class ExternalGoalFilter:
    """Tells the goals of other nodes from those that this node sent and receives like any other.

    Not by their stamps alone: with a simulated clock that has not started, all stamps are zero.
    """

    def __init__(self) -> None:
        self._sent: deque[Any] = deque(maxlen=KEPT)
        self._joints: list[float] = []  # of another node's last joint goal

    def sent(self, message: Any) -> None:
        """Remember a goal that this node sends; call it before it is published."""
        self._sent.append(message)

    def is_new(self, message: Any) -> bool:
        """Whether another node sent a received message, and not the joint goal that it sent last.

        A message of this node counts as its own once, since others may send the same.
        """
        if message in self._sent:
            while self._sent.popleft() != message:
                pass  # older ones were overtaken
            return False
        if not isinstance(message, JointState):
            return True
        before, self._joints = self._joints, list(message.position)
        return self._joints != before  # others repeat theirs continuously


def goal_in_base(arm: Arm, message: PoseStamped | PointStamped, values: Mapping[str, float]) -> Array | None:
    """Return T_base_goal (4, 4) of a goal, with the joints at values by name; a goal point has no direction.

    None where only tf knows the frame, and for numbers that ik_node rejects too.
    """
    frame = message.header.frame_id or arm.base_link
    if frame not in arm.robot.links:
        return None
    pose = np.eye(4)
    try:
        if isinstance(message, PoseStamped):
            pose = pose_matrix(message.pose)
        else:
            pose[:3, 3] = point_array(message.point) - arm.tool_point
    except IkError:
        return None
    T_base_goal = arm.link_in_base(frame, values) @ pose
    return T_base_goal if (np.abs(T_base_goal) <= LARGEST).all() else None


STAMP_WAIT = 0.1  # seconds to wait for the transform of a recent stamp; a zero stamp takes the newest
FIRST_WAIT = 1.0  # seconds to wait at the first lookup: tf2 has to receive the frames first


class Frames:
    """Looks up frames, in any thread.

    tf2 is imported and subscribed to when a goal first names a frame off the robot.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._lock = OrderedLock(Rank.FRAMES)
        self._transforms: Any = None  # those of tf2

    def in_base(self, header: Header, model: ArmModel, values: Array) -> Array:
        """Return T_base_frame (4, 4) for header, with the joints at values (n,); only tf2 uses the stamp.

        An empty frame is the base link. Raises InputError, with the reason, for an unknown frame.
        """
        frame = header.frame_id
        if frame in ('', model.arm.base_link):
            return np.eye(4)
        if frame in model.robot.links:
            return model.link_in_base(frame, values)
        return self._by_tf2(header, model)

    def _by_tf2(self, header: Header, model: ArmModel) -> Array:
        frame = header.frame_id
        robot = model.robot
        unknown = f'frame "{frame}" is not a link of robot "{robot.name}": {join_names(robot.links, frame)}'
        wait = STAMP_WAIT if self._transforms is not None else FIRST_WAIT
        try:
            transforms = self._subscribed()
        except ImportError:
            raise InputError(f'{unknown}; tf2 is not installed') from None
        try:
            found = transforms.look_up(model.arm.base_link, frame, Time.from_msg(header.stamp), wait)
        except InputError as error:
            raise InputError(f'{unknown}; tf2: {error}') from None
        place = found.translation
        return pose_matrix(Pose(position=Point(x=place.x, y=place.y, z=place.z), orientation=found.rotation))

    def _subscribed(self) -> Any:
        """Return the transforms of tf2, which the first thread to come subscribes to. Raises ImportError."""
        with self._lock:
            if self._transforms is None:
                from ik_node.ros.tf_listener import TfListener

                self._transforms = TfListener(self._node)
            return self._transforms

    def close(self) -> None:
        """End the subscription to tf2."""
        with self._lock:
            transforms = self._transforms
        if transforms is not None:
            transforms.close()


NO_CLOCK = 'use_sim_time is true, but no /clock message has been received: the arm does not move'


class NodeTime:
    """Seconds since 1970 need so many digits that a float rounds them to a quarter of a microsecond."""

    def __init__(self, node: Node) -> None:
        self._clock = node.get_clock()
        self._start = self.now_ns()

    def now_ns(self) -> int:
        """Return the node's clock [ns]."""
        return int(self._clock.now().nanoseconds)

    @property
    def stands(self) -> bool:
        """Whether the time is simulated and no /clock message has been received."""
        return self.now_ns() == 0

    def now(self) -> float:
        """Return the time since the start [s]."""
        return self.seconds(self.now_ns())

    def seconds(self, nanoseconds: int) -> float:
        """Return the time since the start [s] of a time of the node's clock [ns]."""
        return (nanoseconds - self._start) / NS_PER_S

    def nanoseconds(self, seconds: float) -> int:
        """Return the time of the node's clock [ns] of a time since the start [s]."""
        return self._start + round(seconds * NS_PER_S)

    def of(self, stamp: Stamp) -> float | None:
        """Return the time since the start [s] of the stamp of a message, None if that is zero."""
        nanoseconds = stamp.sec * NS_PER_S + stamp.nanosec
        return self.seconds(nanoseconds) if nanoseconds else None

    def stamp(self, seconds: float) -> Stamp:
        """Return the stamp of a time since the start [s]."""
        sec, nanosec = divmod(self.nanoseconds(seconds), NS_PER_S)
        return Stamp(sec=sec, nanosec=nanosec)


SHARED = 'another tool shares some of these joints: only goal_pose, goal_point and goal_joints are supported'
REPEAT = 1.5  # [s] within which a repeated joint goal belongs to a stream and is not a new goal


@dataclass
class GoalContext:
    """Context of goals besides their message.

    tool: the name of the tool, empty if there is only one. time: the node's clock. timeout: how old a
    goal may be [s]. replaced: when another robot replaced the previous one (steady). joints: the
    last joint goal, and when it was received.
    """

    frames: Frames
    time: NodeTime
    timeout: Callable[[], float]
    tool: str = ''
    replaced: float = 0.0
    joints: tuple[dict[str, float], float] | None = None


@dataclass(eq=False)
class GoalRequest:
    """A goal message from a topic, and when it was received. refusal: why it was not read, else empty."""

    source: str
    message: Any
    context: GoalContext
    refusal: str = ''
    arrival: float = field(default_factory=steady)
    received: float = field(init=False)
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.received = self.context.time.now()

    @property
    def tool(self) -> str:
        """The name of the tool, empty if there is only one."""
        return self.context.tool

    @property
    def goal_time(self) -> float | None:
        """The time of the stamp on the clock of the arm [s], None without one."""
        return self.context.time.of(self.message.header.stamp)

    @property
    def stamp(self) -> str:
        """The stamp of the message [s], exactly."""
        return stamp_text(self.message.header.stamp)

    @property
    def frame(self) -> str:
        """The frame of the message."""
        return str(self.message.header.frame_id)

    def wanted(self, arm: Snapshot) -> Wanted:
        """Return the goal of the message for arm. Raises InputError if the message is rejected."""
        if self.refusal:
            raise InputError(self.refusal)
        timeout = self.context.timeout()
        if self.context.time.stands:
            raise InputError(NO_CLOCK)
        if self.arrival < self.context.replaced:
            raise InputError('received before this robot_description')
        waited = steady() - self.arrival
        if waited > timeout:
            raise InputError(f'received {waited:.3g} s ago, but goal_timeout allows {timeout:g} s')
        check_stamp(self.message.header.stamp, self.context.time.now_ns(), timeout)
        return self._wanted(arm)

    def _wanted(self, arm: Snapshot) -> Wanted:
        raise NotImplementedError

    def _in_base(self, arm: Snapshot) -> Array:
        """Return the pose of the goal's frame in the base frame, T (4, 4)."""
        return self.context.frames.in_base(self.message.header, arm.model, arm.values)


class PoseRequest(GoalRequest):
    """The pose of the tip frame, roll about the tool axis free."""

    def _wanted(self, arm: Snapshot) -> Wanted:
        return self.goal(arm)

    def goal(self, arm: Snapshot) -> Goal:
        """Return the goal of the message. Raises InputError if the message is invalid."""
        pose = pose_matrix(self.message.pose)
        return arm.model.pose_goal(self._in_base(arm) @ pose)


class PointRequest(GoalRequest):
    """The position of the tool point, direction free."""

    def _wanted(self, arm: Snapshot) -> Wanted:
        point = point_array(self.message.point)
        T = self._in_base(arm)
        return Goal(T[:3, :3] @ point + T[:3, 3])


class PathRequest(GoalRequest):
    """Poses of the tip frame, connected by straight lines, roll about the tool axis free."""

    def _wanted(self, arm: Snapshot) -> Wanted:
        poses = self.message.poses
        if not 0 < len(poses) <= MOST_POINTS:
            raise InputError(f'a path must have from 1 to {MOST_POINTS} poses, got {len(poses)}')
        if arm.model.shared:
            raise InputError(SHARED)
        if arm.moving:
            raise InputError(MOVING)
        T = self._in_base(arm)
        goals = []
        for number, pose in enumerate(poses, 1):
            try:
                goals.append(arm.model.pose_goal(T @ pose_matrix(pose)))
            except InputError as error:
                raise InputError(f'pose {number}: {error}') from None
        rows = np.array([goal.packed for goal in goals])
        return ToolPath(rows[:, :3], rows[:, 3:6])


class JointsRequest(GoalRequest):
    """Joint positions; an unchanged repeat is ignored."""

    def _wanted(self, arm: Snapshot) -> Wanted:
        named = joint_values(self.message, arm.model.joints.names)
        before, self.context.joints = self.context.joints, (named, self.arrival)
        if before is not None and before[0] == named and self.arrival - before[1] < REPEAT:
            return None
        return named


# By topic, the class that reads its messages.
GOALS: dict[SubscribedTopic, type[GoalRequest]] = {
    GOAL_POSE: PoseRequest,
    GOAL_POINT: PointRequest,
    GOAL_PATH: PathRequest,
    GOAL_JOINTS: JointsRequest,
}

LEVELS = {
    Level.OK: DiagnosticStatus.OK,
    Level.WARN: DiagnosticStatus.WARN,
    Level.ERROR: DiagnosticStatus.ERROR,
}
STATUSES = ('', *(status.value for status in Status), 'rejected')  # ~/goal_state publishes their index

# The keys of ~/status and the numbers of ~/goal_state, each with its meaning.
KEYS = {
    'status': 'of a goal: '
    + ', '.join(f'`{status}`' for status in STATUSES[1:])
    + '; else the same as `state`',
    'state': 'of a goal: `moving` once it is accepted, `arrived`, `held`, `stopped` before it arrived, '
    '`rejected`; of the arm: `waiting`, `ready`, `stopped`, `faulted`, `hand-guided`, `late` while the '
    'motion waits for measurements, then `continuing`, or its present state',
    'goal_number': 'the same in all reports on a goal, 0 in a report on the arm',
    'position_error': 'm, NaN while unknown',
    'direction_error': 'rad, NaN while unknown',
    'reason': 'why the arm cannot meet the goal, or why the goal was rejected',
    'restarts': 'of the solver',
    'solve_time': 's',
    'goal_stamp': 'stamp of the goal',
    'frame': '`frame_id` of the goal',
    'goal': 'topic or service that the goal came from',
}
NUMBERS = {
    'goal': 'number of the goal, 0 before the first',
    'state': 'state of the arm: ' + ', '.join(f'{state.code} {state.value}' for state in State),
    'status': 'status of the goal: '
    + ', '.join(f'{code} {status or "none"}' for code, status in enumerate(STATUSES)),
    'position_error': 'm',
    'direction_error': 'rad',
    'distance_left': 'largest joint move left [rad or m]',
    'time_left': 's, NaN during a stream of goals',
    'share_done': 'completed share of the motion, from 0 to 1; NaN without one and during a stream of goals',
    'behind': 'distance of the tool from a moving goal [m], else NaN',
}


def diagnostic(level: Level, name: str, message: str, values: Mapping[str, Any]) -> DiagnosticStatus:
    """Return a status message; numbers are formatted so that they can be parsed back exactly."""
    pairs = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
    return DiagnosticStatus(level=LEVELS[level], name=name, message=message, values=pairs)


def status_message(name: str, report: Report) -> DiagnosticStatus:
    """Return a report as text; unknown values are NaN, zero or empty."""
    solution, request = report.solution, report.request
    values = {
        'status': report.status,
        'state': report.phase,
        'goal_number': report.number,
        'position_error': math.nan if solution is None else solution.position_error,
        'direction_error': math.nan if solution is None else solution.direction_error,
        'reason': _reason(report),
        'restarts': 0 if solution is None else solution.restarts,
        'solve_time': report.solve_time,
        'goal_stamp': '' if request is None else request.stamp,
        'frame': '' if request is None else request.frame,
        'goal': '' if request is None else request.source,
    }
    return diagnostic(report.level, name, report.message, {key: values[key] for key in KEYS})


def _reason(report: Report) -> str:
    if report.solution is not None:
        return str(report.solution.reason or '')
    rejected = report.request is not None and report.status == 'rejected'
    return report.message.split(' rejected: ', 1)[-1] if rejected else ''


def goal_state(report: Report | None, arm: Snapshot) -> Float64MultiArray:
    """Return the progress to the goal of report (None before the first) as the values of NUMBERS."""
    solution = None if report is None else report.solution
    status = report.status if report is not None and report.status in STATUSES else ''
    values = (
        0 if report is None else report.number,
        arm.state.code,
        STATUSES.index(status),
        math.nan if solution is None else solution.position_error,
        math.nan if solution is None else solution.direction_error,
        abs(arm.target - arm.position).max(initial=0.0),
        arm.remaining,
        arm.share,
        arm.behind,
    )
    size = len(values)
    dimension = MultiArrayDimension(label=','.join(NUMBERS), size=size, stride=size)
    return Float64MultiArray(layout=MultiArrayLayout(dim=[dimension]), data=[float(v) for v in values])


class Projection:
    """Responds to poses on ~/project_pose with ~/projected_pose and, with the same stamp, ~/projection.

    Responds to joints on ~/fk_joint_states with the pose of the tip on ~/fk_pose, with their stamp.
    """

    def __init__(self, node: Node, prefix: str, context: GoalContext, inbox: Inbox) -> None:
        """prefix: of the topics."""
        self._name, self._prefix = node.get_name(), prefix
        self._pose = PROJECTED_POSE.publisher(node, prefix)
        self._status = PROJECTION.publisher(node, prefix)
        PROJECT_POSE.subscription(node, self._ask, prefix)
        self._tip = FK_POSE.publisher(node, prefix)
        FK_JOINT_STATES.subscription(node, self._ask_joints, prefix)
        self._context, self._inbox = context, inbox

    def _ask(self, message: PoseStamped) -> None:
        query = _Query(PROJECT_POSE.named(self._prefix), message, self._context)
        query.projection = self
        self._inbox.put(query)

    def _ask_joints(self, message: JointState) -> None:
        query = _JointsQuery(FK_JOINT_STATES.named(self._prefix), message, self._context)
        query.projection = self
        self._inbox.put(query)

    def answer(self, query: _Query, arm: Snapshot, solution: Solution) -> None:
        """Publish the pose of the tip at a solution, and its result."""
        values = arm.values.copy()
        values[arm.model.index] = solution.q
        names = (f'joint {name}' for name in arm.model.arm.joint_names)
        said = {
            'status': solution.status.value,
            'position_error': solution.position_error,
            'direction_error': solution.direction_error,
            'roll_error': '' if solution.lateral_error is None else solution.lateral_error,
            'reason': solution.reason or '',
            'goal_stamp': query.stamp,
            'frame': query.frame,
            **dict(zip(names, solution.q.tolist(), strict=True)),
        }
        level = Level.OK if solution.solved else Level.WARN
        message = 'solved' if solution.solved else f'{solution.status.value}: {solution.reason}'
        self._pose.publish(_tip_pose(query, arm, values))
        self._status.publish(diagnostic(level, self._name, message, said))

    def answer_joints(self, query: _JointsQuery, arm: Snapshot, values: Array) -> None:
        """Publish the pose of the tip at the variables (n,)."""
        self._tip.publish(_tip_pose(query, arm, values))


class _Query(PoseRequest):
    """A query for a pose of the tip frame, roll about the tool axis free."""

    moves = False
    projection: Projection

    def _wanted(self, arm: Snapshot) -> Wanted:
        goal = self.goal(arm)
        self.projection.answer(self, arm, arm.model.solver.solve(goal, arm.position))
        return None


class _JointsQuery(GoalRequest):
    """A query for positions of some joints; all others keep their position."""

    moves = False
    projection: Projection

    def _wanted(self, arm: Snapshot) -> Wanted:
        joints = arm.model.joints
        named = joint_values(self.message, joints.names)
        values = joints.filled({**joints.named(arm.values), **named})
        self.projection.answer_joints(self, arm, values)
        return None


def _tip_pose(query: GoalRequest, arm: Snapshot, values: Array) -> PoseStamped:
    """Return the pose of the tip in the base link at the variables (n,), with the stamp of a query."""
    tip = arm.model.arm
    pose = PoseStamped(pose=matrix_pose(arm.model.link_in_base(tip.tip_link, values)))
    pose.header.frame_id = tip.base_link
    pose.header.stamp = query.message.header.stamp
    return pose
