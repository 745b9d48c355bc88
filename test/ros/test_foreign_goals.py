# SPDX-License-Identifier: Apache-2.0
"""Goals of other programs, as the viewer and the marker take them."""

from __future__ import annotations

import pytest
from geometry_msgs.msg import PointStamped, PoseStamped
from small_arm import arm_urdf

from ik_node.model.arm import Arm
from ik_node.ros.foreign_goals import goal_in_base

ARM = Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')


@pytest.mark.parametrize('kind', [PoseStamped, PointStamped])
@pytest.mark.parametrize('far', [2e9, 1.7e308, float('nan')])
def test_a_goal_where_none_may_be_is_none(kind: type, far: float) -> None:
    message = kind()
    place = message.pose.position if kind is PoseStamped else message.point
    place.x, place.y, place.z = far, -far, far
    message.header.frame_id = 'l2'
    assert goal_in_base(ARM, message, {'yaw': 0.3, 'shoulder': 0.7}) is None
    place.x = place.y = place.z = 0.1
    assert goal_in_base(ARM, message, {'yaw': 0.3, 'shoulder': 0.7}) is not None
