# SPDX-License-Identifier: Apache-2.0
"""Goals of other nodes, as a page or a marker shows them beside its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import PointStamped, PoseStamped
from sensor_msgs.msg import JointState

from ik_node.checks import Array
from ik_node.errors import LARGEST, IkError
from ik_node.model.arm import Arm
from ik_node.ros.conversions import point_array, pose_matrix

KEPT = 50  # own messages that may still be received


class ForeignGoals:
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
