# SPDX-License-Identifier: Apache-2.0
"""Topics and services: name, type, quality of service and meaning. Those of ik_node are below.

The reference of the documentation is generated from these.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

from rclpy.callback_groups import CallbackGroup, MutuallyExclusiveCallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from std_msgs.msg import Header

from ik_node.errors import escaped
from ik_node.model.urdf.elements import MAX_CHARACTERS

MessageInfo = Mapping[str, Any]  # source_timestamp, received_timestamp [ns], publication_sequence_number
RCLError: type[Exception] = rclpy_implementation.RCLError  # rclpy exports it nowhere


def wrap_change_state(node: LifecycleNode, wrapped: Callable[[Any], Any]) -> None:
    """Replace the callback of the service change_state by what wrapped makes of it.

    It gets a group of its own: other callbacks run while it awaits something, and it is not called again.
    """
    service = node._service_change_state
    service.callback = wrapped(service.callback)
    service.callback_group = MutuallyExclusiveCallbackGroup()
    service.callback_group.add_entity(service)


def with_message_info(callback: Callable[[Any, MessageInfo], None]) -> Callable[..., None]:
    """Return a callback of a subscription that gets the MessageInfo: an empty one from rclpy of Humble."""
    if hasattr(Subscription, 'CallbackType'):
        return callback
    return lambda message: callback(message, {})


def given_parameters(node: Node) -> Mapping[str, Any]:
    """Return the parameters that a node was started with, declared or not."""
    given: Mapping[str, Any] = getattr(node, '_parameter_overrides', {})
    return given


def installed(module: str, name: str) -> Any:
    """Return a message, service or class of a ROS package, or None if the package is not installed."""
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        return None


# One message that late subscribers also receive: robot_description, markers, the last report.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# Goals. The newest is used, but an invalid one must not displace the valid one before it.
GOAL_QOS = QoSProfile(depth=16)

# Only the newest is used: published goals.
NEWEST = QoSProfile(depth=1)

# Each, after a pause of the subscriber too: the reference of a controller at up to 1 kHz.
BURST = QoSProfile(depth=100)

# A stream; slow subscribers may miss messages: joint_states, diagnostics.
STREAM = QoSProfile(depth=10)

# Compatible with reliable and best-effort publishers; several drivers may each publish some joints.
MEASURED = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)

NUMBER = re.compile(r'(?<![\w"])\d[\d.]*(e[+-]?\d+)?')
FORGET_AFTER = 10.0  # [s] without it, after which something has ended: then it is said again
INTERVAL = 2.0  # [s] from one line to the next


class Remarks:
    """Which sentences are new; those that differ only in numbers say the same."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_seen: dict[str, float] = {}  # when each sentence that was said came last [s]
        self._logged_at = float('-inf')

    def new(self, sentence: str) -> bool:
        """Return whether to say a sentence."""
        now, kind = self._clock(), NUMBER.sub('', sentence)
        seen = {one: at for one, at in self._last_seen.items() if now - at < FORGET_AFTER}
        new = kind not in seen and now - self._logged_at >= INTERVAL
        if new:
            self._logged_at = now
        if new or kind in seen:
            seen[kind] = now
        self._last_seen = seen
        return new


HEADER = 512  # [bytes] that a header may have to be named in a refusal
MANY_JOINTS = 1 << 18  # [bytes]: a message with some thousand joints


@dataclass(frozen=True, eq=False)
class Interface:
    """A topic or service of a node. types: such as 'std_msgs/String'; of several, the first installed one."""

    name: str
    types: str
    text: str
    module: ClassVar[str]  # of a ROS package, in which the types are

    @cached_property
    def type(self) -> Any:
        """The first type that is installed, or None."""
        names = (name.split('/') for name in self.types.split(' or '))
        found = (installed(f'{package}.{self.module}', name) for package, name in names)
        return next(filter(None, found), None)

    def named(self, prefix: str) -> str:
        """Return the name for a tool with this prefix."""
        private = self.name.startswith('~/')
        return f'~/{prefix}{self.name[2:]}' if private else prefix + self.name


@dataclass(frozen=True, eq=False)
class Topic(Interface):
    """A topic."""

    qos: QoSProfile
    module: ClassVar[str] = 'msg'


class PublishedTopic(Topic):
    """A topic that a node publishes."""

    def publisher(self, node: Node, prefix: str = '') -> Publisher:
        """Return a publisher of a node."""
        return node.create_publisher(self.type, self.named(prefix), self.qos)


@dataclass(frozen=True, eq=False)
class SubscribedTopic(Topic):
    """A topic that a node subscribes to.

    largest: message [bytes, serialized] that is read. rclpy holds the interpreter while it converts a
    message, some 0.15 s per MB of poses, so larger ones are refused before that.
    """

    largest: int = 1 << 16

    def subscription(
        self,
        node: Node,
        callback: Callable[[Any], None] | Callable[[Any, MessageInfo], None],
        prefix: str = '',
        refuse: Callable[[Any, str], None] | None = None,
        informed: bool = False,
    ) -> Subscription:
        """Return a subscription of a node.

        refuse: called with an empty message that has the header, and the reason, for a message that is too
        large; by default the reason is logged. informed: callback takes the MessageInfo too.
        """
        name, log_rejection = self.named(prefix), _rejection_log(node, self.named(prefix))

        def take(data: bytes, info: MessageInfo) -> None:
            message, reason = _message(self.type, data, self.largest)
            if message is not None:
                callback(message, *(info,) * informed)
            elif refuse is not None and len(data) > self.largest:
                refuse(self._with_header(data), reason)
            else:
                log_rejection(reason)

        return node.create_subscription(self.type, name, with_message_info(take), self.qos, raw=True)

    def _with_header(self, data: bytes) -> Any:
        """Return an empty message with the header of a serialized one, if that begins with a short one."""
        message = self.type()
        with contextlib.suppress(Exception):  # an incomplete frame
            message.header = deserialize_message(data[:HEADER], Header)
        return message


def subscribe(
    node: Node,
    kind: Any,
    name: str,
    callback: Callable[[Any], None],
    qos: QoSProfile,
    largest: int = MANY_JOINTS,
    group: CallbackGroup | None = None,
) -> Subscription:
    """Return a subscription to a topic of another program; larger messages [bytes] are logged and ignored."""
    log_rejection = _rejection_log(node, name)

    def take(data: bytes) -> None:
        message, reason = _message(kind, data, largest)
        if message is None:
            log_rejection(reason)
        else:
            callback(message)

    return node.create_subscription(kind, name, take, qos, raw=True, callback_group=group)


def _message(kind: Any, data: bytes, largest: int) -> tuple[Any, str]:
    """Return a message, or None and why it is not read: before it is converted, if it is too large."""
    if len(data) > largest:
        return None, f'the message has {len(data)} bytes, but at most {largest} are read'
    try:
        return deserialize_message(data, kind), ''
    except Exception as error:  # of rclpy, for times and strings that it cannot represent
        return None, f'rclpy cannot read it: {type(error).__name__}: {escaped(str(error))}'


def _rejection_log(node: Node, name: str) -> Callable[[str], None]:
    """Return what logs why messages of a topic are ignored."""
    remarks, log = Remarks(), node.get_logger()

    def log_rejection(reason: str) -> None:
        if remarks.new(reason):
            log.error(f'message on {name} ignored: {reason}')

    return log_rejection


class Service(Interface):
    """A service that a node provides."""

    module: ClassVar[str] = 'srv'

    def provide(
        self,
        node: Node,
        callback: Callable[[Any, Any], Any],
        prefix: str = '',
        group: CallbackGroup | None = None,
        by: Node | None = None,
    ) -> None:
        """Have a node provide it; by: a node whose executor calls callback instead."""
        name = self.named(prefix) if by is None else node.resolve_service_name(self.named(prefix))
        (by or node).create_service(self.type, name, callback, callback_group=group)


DESCRIPTION = SubscribedTopic(
    'robot_description',
    'std_msgs/String',
    'the robot description, unless a parameter provides it; another one is rejected while joints are '
    'measured or commands go to a controller or driver, unless the node is inactive',
    LATCHED,
    4 * MAX_CHARACTERS,
)
GOAL_POSE = SubscribedTopic(
    'goal_pose',
    'geometry_msgs/PoseStamped',
    'goal for the tip frame, roll about the tool axis free; the newest goal replaces older ones',
    GOAL_QOS,
)
GOAL_CONE = SubscribedTopic(
    'goal_cone',
    'geometry_msgs/PoseWithCovarianceStamped',
    'as `goal_pose`, but the tool axis may lie anywhere within an angle of the one given, and the position is met '
    'within a tolerance of its own: `covariance[21]` is the square of that angle [rad^2], up to pi^2, and '
    '`covariance[0]` the square of that tolerance [m^2]; 0: as for `goal_pose`. All other entries are ignored',
    GOAL_QOS,
)
GOAL_POINT = SubscribedTopic(
    'goal_point', 'geometry_msgs/PointStamped', 'goal for the tool point, direction free', GOAL_QOS
)
GOAL_PATH = SubscribedTopic(
    'goal_path',
    'geometry_msgs/PoseArray',
    'poses that the tip frame visits along straight lines, starting from rest',
    GOAL_QOS,
)
GOAL_JOINTS = SubscribedTopic(
    'goal_joints',
    'sensor_msgs/JointState',
    'goal for joint positions; an identical message within 1.5 s is ignored, so sliders that republish their '
    'values do not override other goals',
    GOAL_QOS,
    MANY_JOINTS,
)
MEASURED_STATES = SubscribedTopic(
    'measured_joint_states',
    'sensor_msgs/JointState',
    'measured joint positions, from one or several publishers; with any `output` that does not include '
    '`joint_states`, ik_node subscribes to `joint_states` instead; reliable publishers match too',
    MEASURED,
    MANY_JOINTS,
)
CONTROLLER_STATE = SubscribedTopic(
    'controller_state',
    'control_msgs/JointTrajectoryControllerState',
    'with an `output` of trajectories: where the controller commands the joints, compared with '
    'the trajectories sent; with the parameter `controller`, the topic of that controller',
    BURST,
)
PROJECT_POSE = SubscribedTopic(
    '~/project_pose',
    'geometry_msgs/PoseStamped',
    'query: nearest reachable pose, and joints, for this pose of the tip frame; the arm does not move',
    STREAM,
)
FK_JOINT_STATES = SubscribedTopic(
    '~/fk_joint_states',
    'sensor_msgs/JointState',
    'query: pose of the tip at these joints; joints that are not named keep their current position',
    STREAM,
    MANY_JOINTS,
)
DELTA_TWIST = SubscribedTopic('~/delta_twist_cmds', 'geometry_msgs/TwistStamped', 'velocity of the tool', NEWEST)
DELTA_JOINTS = SubscribedTopic(
    '~/delta_joint_cmds', 'control_msgs/JointJog or sensor_msgs/JointState', 'velocities of joints', NEWEST
)
POSE_TARGET = SubscribedTopic(
    '~/pose_target_cmds',
    'geometry_msgs/PoseStamped',
    'pose of the operator; ignored while the clutch is open',
    NEWEST,
)
ENABLE = SubscribedTopic(
    '~/enable',
    'std_msgs/Bool',
    'clutch of teleoperation: true, published repeatedly, keeps it closed',
    GOAL_QOS,  # deep enough that a true does not displace an earlier false
)
GRIPPER = SubscribedTopic(
    '~/gripper',
    'std_msgs/Float64',
    'opening of the gripper from 0, closed, to 1, open; the arm continues what it does',
    GOAL_QOS,
)

JOINT_STATES = PublishedTopic(
    'joint_states',
    'sensor_msgs/JointState',
    'position and velocity at `publish_rate`: every movable joint, or, with measurements, the joints of the '
    'arm and those that a goal has named',
    STREAM,
)
JOINT_TRAJECTORY = PublishedTopic(
    'joint_trajectory',
    'trajectory_msgs/JointTrajectory',
    'with that `output`: whole motions for a joint_trajectory_controller; with the parameter `controller`, '
    'the topic of that controller',
    STREAM,
)
POSITION_COMMANDS = PublishedTopic(
    'position_commands',
    'std_msgs/Float64MultiArray',
    'with that `output`: positions of `controller_joints` at `publish_rate`, for a '
    'forward_position_controller; with the parameter `controller`, the topic `commands` of that controller',
    STREAM,
)
OWN_DESCRIPTION = PublishedTopic(
    'robot_description',
    'std_msgs/String',
    'if parameters gave it and `publish_description` is true',
    LATCHED,
)
STATUS = PublishedTopic(
    '~/status',
    'diagnostic_msgs/DiagnosticStatus',
    'OK, WARN or ERROR and one sentence, for every goal when it has been solved or rejected and when the arm '
    'arrives, and when the arm waits, is ready, stops, faults or is guided by hand; at 10 Hz for a stream of '
    'solved goals',
    LATCHED,
)
GOAL_STATE = PublishedTopic(
    '~/goal_state', 'std_msgs/Float64MultiArray', 'the same as numbers; at 10 Hz while the arm moves', STREAM
)
MARKERS = PublishedTopic(
    '~/markers',
    'visualization_msgs/MarkerArray',
    'goal and present tool axis, the line between them, the status as text and the trail of the tool; '
    'coloured by status',
    LATCHED,
)
DIAGNOSTICS = PublishedTopic('/diagnostics', 'diagnostic_msgs/DiagnosticArray', 'once per second', STREAM)
GRIPPER_STATUS = PublishedTopic(
    '~/gripper_status',
    'diagnostic_msgs/DiagnosticStatus',
    'what the gripper does, as a sentence and as `state` (`idle`, `moving`, `reached`, `holding` an object, `empty`: '
    'closed on nothing, `blocked`, `lost` what it held, `unmeasured`, `rejected`), `opening`, `target`, `joint`',
    LATCHED,
)
SERVO_STATUS = PublishedTopic(
    '~/servo_status',
    'moveit_msgs/ServoStatus or std_msgs/Int8',
    '-1 command ignored, 0 no warning, 6 at a limit or at the edge of the workspace',
    LATCHED,
)
PROJECTED_POSE = PublishedTopic(
    '~/projected_pose',
    'geometry_msgs/PoseStamped',
    'response: pose of the tip frame in the base link at the closest configuration; stamp of the query',
    STREAM,
)
PROJECTION = PublishedTopic(
    '~/projection',
    'diagnostic_msgs/DiagnosticStatus',
    'the same response: `status`, `position_error`, `direction_error`, `roll_error`, `reason`, `goal_stamp`, '
    '`frame`, and `joint <name>` for every joint',
    STREAM,
)
FK_POSE = PublishedTopic(
    '~/fk_pose',
    'geometry_msgs/PoseStamped',
    'response: pose of the tip frame in the base link; stamp of the query',
    STREAM,
)

PAUSE_SERVO = Service('~/pause_servo', 'std_srvs/SetBool', 'ignores teleoperation commands, or accepts them again')
SWITCH_COMMAND_TYPE = Service(
    '~/switch_command_type',
    'moveit_msgs/ServoCommandType',
    'chooses which commands are accepted: twists, joint velocities or poses; only if moveit_msgs has this type',
)
HOME = Service('~/home', 'std_srvs/Trigger', 'moves to the joint positions of `home`')
CANCEL = Service('~/cancel', 'std_srvs/Trigger', 'brakes the arm and ends its goal; it accepts the next one at once')
STOP = Service('~/stop', 'std_srvs/Trigger', 'brakes and holds the arm; goals are rejected until `~/resume`')
RESUME = Service(
    '~/resume',
    'std_srvs/Trigger',
    'accepts goals again after a stop or a fault; earlier goals are rejected',
)
HAND_GUIDE = Service('~/hand_guide', 'std_srvs/SetBool', 'begins or ends hand guiding of a measured arm')
COMPUTE_IK = Service(
    '~/compute_ik',
    'moveit_msgs/GetPositionIK',
    'joint positions for a pose, without moving the arm; where moveit_msgs is installed',
)
SOLVE_IK = Service(
    'solve_ik',
    'moveit_msgs/GetPositionIK',
    'the same under the default service name of the SrvKinematicsPlugin of MoveIt; requests with '
    '`avoid_collisions` are served even where self-collision is not checked',
)
COMPUTE_FK = Service(
    '~/compute_fk',
    'moveit_msgs/GetPositionFK',
    'poses of links at given joints; where moveit_msgs is installed',
)
