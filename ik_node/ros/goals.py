# SPDX-License-Identifier: Apache-2.0
"""Goals as messages: from goals in any frame to requests, and the poses to which goals are projected."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from ik_node.checks import Array
from ik_node.control.controller import Inbox
from ik_node.control.motion import MOVING
from ik_node.control.paths import MAX_POINTS, ToolPath
from ik_node.control.requests import Aim, Level, Snapshot
from ik_node.control.solving import STREAM_GAP
from ik_node.errors import InputError
from ik_node.ros.conversions import (
    check_stamp,
    joint_values,
    matrix_pose,
    point_array,
    pose_matrix,
    stamp_text,
)
from ik_node.solver.goal import Goal, Solution
from ik_node.steady import steady

from .frames import Frames
from .interfaces import (
    FK_JOINT_STATES,
    FK_POSE,
    GOAL_CONE,
    GOAL_JOINTS,
    GOAL_PATH,
    GOAL_POINT,
    GOAL_POSE,
    PROJECT_POSE,
    PROJECTED_POSE,
    PROJECTION,
    SubscribedTopic,
)
from .reports import NO_CLOCK, NodeTime, diagnostic

REPEAT = 1.5  # [s] within which a repeated joint goal belongs to a stream and is not a new goal


@dataclass
class GoalContext:
    """Context of goals besides their message.

    tool: the name of the tool, empty if there is only one. time: the node's clock. timeout: how old a
    goal may be [s]. replaced: when another robot replaced the previous one (steady). joints: the
    last joint goal, and when it was received. streamed: when one last differed from the one just before (steady).
    """

    frames: Frames
    time: NodeTime
    timeout: Callable[[], float]
    tool: str = ''
    replaced: float = 0.0
    joints: tuple[dict[str, float], float] | None = None
    streamed: float = -math.inf


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

    def resolve(self, snapshot: Snapshot) -> Aim | None:
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
        return self._resolve(snapshot)

    def _resolve(self, snapshot: Snapshot) -> Aim | None:
        raise NotImplementedError

    def _in_base(self, snapshot: Snapshot) -> Array:
        """Return the pose of the goal's frame in the base frame, T (4, 4)."""
        return self.context.frames.in_base(self.message.header, snapshot.model, snapshot.values)


class PoseRequest(GoalRequest):
    """The pose of the tip frame, roll about the tool axis free."""

    def _resolve(self, snapshot: Snapshot) -> Aim | None:
        return self.goal(snapshot)

    def goal(self, snapshot: Snapshot) -> Goal:
        """Return the goal of the message. Raises InputError if the message is invalid."""
        pose = pose_matrix(self.message.pose)
        return snapshot.tool.pose_goal(self._in_base(snapshot) @ pose)


TOLERANCE, CONE = 0, 21  # entries of the covariance: of x with itself, and of the rotation about x


class ConeRequest(PoseRequest):
    """The pose of the tip frame, but the tool axis anywhere in a cone, and the position within a tolerance."""

    def goal(self, snapshot: Snapshot) -> Goal:
        """Return the goal of the message. Raises InputError if the message is invalid."""
        given = self.message.pose
        pose = pose_matrix(given.pose)
        tolerance = _root(given.covariance, TOLERANCE, 'tolerance of the position', 1.0, '[m^2]')
        cone = _root(given.covariance, CONE, 'half-angle of the cone', math.pi, '[rad^2]')
        return snapshot.tool.pose_goal(self._in_base(snapshot) @ pose, cone, tolerance or None)


def _root(covariance: Sequence[float], entry: int, what: str, largest: float, unit: str) -> float:
    """Return the square root of an entry of a covariance (36,). Raises InputError beyond 0 to the square of largest."""
    square = float(covariance[entry])
    if not 0.0 <= square <= largest * largest * (1.0 + 1e-6):  # of a message made with fewer digits
        allowed = f'from 0 to {largest * largest:.6g} {unit}'
        raise InputError(f'covariance[{entry}], the square of the {what}, must be {allowed}, got {square:g}')
    return min(math.sqrt(square), largest)


class PointRequest(GoalRequest):
    """The position of the tool point, direction free."""

    def _resolve(self, snapshot: Snapshot) -> Aim | None:
        point = point_array(self.message.point)
        T = self._in_base(snapshot)
        return Goal(T[:3, :3] @ point + T[:3, 3])


class PathRequest(GoalRequest):
    """Poses of the tip frame, connected by straight lines, roll about the tool axis free."""

    def _resolve(self, snapshot: Snapshot) -> Aim | None:
        poses = self.message.poses
        if not 0 < len(poses) <= MAX_POINTS:
            raise InputError(f'a path must have 1 to {MAX_POINTS} poses, got {len(poses)}')
        if snapshot.moving and not snapshot.rests:
            raise InputError(MOVING)
        T = self._in_base(snapshot)
        goals = []
        for number, pose in enumerate(poses, 1):
            try:
                goals.append(snapshot.tool.pose_goal(T @ pose_matrix(pose)))
            except InputError as error:
                raise InputError(f'pose {number}: {error}') from None
        rows = np.array([goal.packed for goal in goals])
        return ToolPath(rows[:, :3], rows[:, 3:6])


class JointsRequest(GoalRequest):
    """Joint positions; an unchanged repeat is ignored, unless it tells that a moving goal has come to rest."""

    def _resolve(self, snapshot: Snapshot) -> Aim | None:
        named = joint_values(self.message, snapshot.model.joints.names)
        context, arrival = self.context, self.arrival
        (before, then), context.joints = context.joints or ({}, -math.inf), (named, arrival)
        if named != before:
            context.streamed = arrival if arrival - then < STREAM_GAP else -math.inf
        elif arrival - then < REPEAT and arrival - context.streamed > STREAM_GAP:
            return None
        return named


# By topic, the class that reads its messages.
GOALS: dict[SubscribedTopic, type[GoalRequest]] = {
    GOAL_POSE: PoseRequest,
    GOAL_CONE: ConeRequest,
    GOAL_POINT: PointRequest,
    GOAL_PATH: PathRequest,
    GOAL_JOINTS: JointsRequest,
}


class Projection:
    """Responds to poses on ~/project_pose with ~/projected_pose and, with the same stamp, ~/projection.

    Responds to joints on ~/fk_joint_states with the pose of the tip on ~/fk_pose, with their stamp.
    """

    def __init__(self, node: Node, prefix: str, context: GoalContext, inbox: Inbox) -> None:
        """prefix: of the topics."""
        self._name, self._prefix = node.get_name(), prefix
        self._pose = PROJECTED_POSE.publisher(node, prefix)
        self._status = PROJECTION.publisher(node, prefix)
        PROJECT_POSE.subscription(node, self._on_pose, prefix)
        self._tip = FK_POSE.publisher(node, prefix)
        FK_JOINT_STATES.subscription(node, self._query_joints, prefix)
        self._context, self._inbox = context, inbox

    def _on_pose(self, message: PoseStamped) -> None:
        query = _Query(PROJECT_POSE.named(self._prefix), message, self._context)
        query.projection = self
        self._inbox.put(query)

    def _query_joints(self, message: JointState) -> None:
        query = _JointsQuery(FK_JOINT_STATES.named(self._prefix), message, self._context)
        query.projection = self
        self._inbox.put(query)

    def answer(self, query: _Query, snapshot: Snapshot, solution: Solution) -> None:
        """Publish the pose of the tip at a solution, and its result."""
        values = snapshot.values.copy()
        values[snapshot.tool.index] = solution.q
        names = (f'joint {name}' for name in snapshot.tool.arm.joint_names)
        fields = {
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
        self._pose.publish(_tip_pose(query, snapshot, values))
        self._status.publish(diagnostic(level, self._name, message, fields))

    def answer_joints(self, query: _JointsQuery, snapshot: Snapshot, values: Array) -> None:
        """Publish the pose of the tip at the variables (n,)."""
        self._tip.publish(_tip_pose(query, snapshot, values))


class _Query(PoseRequest):
    """A query for a pose of the tip frame, roll about the tool axis free."""

    moves = False
    projection: Projection

    def _resolve(self, snapshot: Snapshot) -> Aim | None:
        goal = self.goal(snapshot)
        self.projection.answer(self, snapshot, snapshot.tool.solver.solve(goal, snapshot.position))
        return None


class _JointsQuery(GoalRequest):
    """A query for positions of some joints; all others keep their position."""

    moves = False
    projection: Projection

    def _resolve(self, snapshot: Snapshot) -> Aim | None:
        joints = snapshot.model.joints
        named = joint_values(self.message, joints.names)
        values = joints.filled({**joints.named(snapshot.values), **named})
        self.projection.answer_joints(self, snapshot, values)
        return None


def _tip_pose(query: GoalRequest, snapshot: Snapshot, values: Array) -> PoseStamped:
    """Return the pose of the tip in the base link at the variables (n,), with the stamp of a query."""
    tip = snapshot.tool.arm
    pose = PoseStamped(pose=matrix_pose(snapshot.model.link_in_base(tip.tip_link, values)))
    pose.header.frame_id = tip.base_link
    pose.header.stamp = query.message.header.stamp
    return pose
