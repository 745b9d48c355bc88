# SPDX-License-Identifier: Apache-2.0
"""Frames: the pose of a goal's frame, from the links of the robot or else from tf2; goals of other nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, PointStamped, Pose, PoseStamped, PoseWithCovarianceStamped
from rclpy.node import Node
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from ik_node.checks import Array
from ik_node.control.locks import Rank, ordered_lock
from ik_node.control.models import ArmModel
from ik_node.errors import LARGEST, IkError, InputError, join_names
from ik_node.model.arm import Arm
from ik_node.ros.conversions import (
    point_array,
    pose_matrix,
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


def goal_in_base(
    arm: Arm, message: PoseStamped | PointStamped | PoseWithCovarianceStamped, values: Mapping[str, float]
) -> Array | None:
    """Return T_base_goal (4, 4) of a goal, with the joints at values by name; a goal point has no direction.

    None where only tf knows the frame, and for numbers that ik_node rejects too.
    """
    frame = message.header.frame_id or arm.base_link
    if frame not in arm.robot.links:
        return None
    pose = np.eye(4)
    try:
        if isinstance(message, PointStamped):
            pose[:3, 3] = point_array(message.point) - arm.tool_point
        else:
            pose = pose_matrix(message.pose if isinstance(message, PoseStamped) else message.pose.pose)
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
        self._lock = ordered_lock(Rank.FRAMES)
        self._transforms: Any = None  # those of tf2

    def in_base(self, header: Header, model: ArmModel, values: Array) -> Array:
        """Return T_base_frame (4, 4) for header, with the joints at values (n,); only tf2 uses the stamp.

        An empty frame is the base link. Raises InputError, with the reason, for an unknown frame.
        """
        frame = header.frame_id
        if frame in ('', model.tree.base_link):
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
            found = transforms.look_up(model.tree.base_link, frame, Time.from_msg(header.stamp), wait)
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
