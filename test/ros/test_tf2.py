# SPDX-License-Identifier: Apache-2.0
"""Goals in frames that only tf2 knows, and transforms that are not worth the name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from node_harness import Client, running
from small_arm import ARM_JOINTS, PARAMETERS, arm_urdf

pytest.importorskip('tf2_ros', reason='tf2_ros is not installed, and PyPI does not have it')

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from tf2_msgs.msg import TFMessage

from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings

T_BASE_CAMERA = np.array(
    [[0.0, -1.0, 0.0, 0.1], [1.0, 0.0, 0.0, -0.2], [0.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.0, 1.0]]
)
HALF = 0.5**0.5
AT = 0.2, 0.3, 0.9, 0.1, 0.4


def camera() -> TransformStamped:
    message = TransformStamped(child_frame_id='camera')
    message.header.frame_id = 'base_link'
    place, turn = message.transform.translation, message.transform.rotation
    place.x, place.y, place.z = T_BASE_CAMERA[:3, 3].tolist()
    turn.w, turn.z = HALF, HALF
    return message


@pytest.fixture
def client() -> Iterator[Client]:
    with running(arm_urdf()) as client:
        yield client


def tip(*q: float) -> np.ndarray:
    arm = ArmModel.build(arm_urdf(), ArmSettings(**PARAMETERS)).arm
    return arm.link_in_base(arm.tip_link, dict(zip(ARM_JOINTS, q, strict=True)))


def goal(client: Client) -> Any:
    """A goal that can be met, in the newest frame of the camera."""
    message = client.pose(np.linalg.inv(T_BASE_CAMERA) @ tip(*AT), 'camera')
    message.header.stamp = Time()
    return message


def test_a_goal_in_a_frame_of_tf2_is_met(client: Client) -> None:
    said = client.answer('goal_pose', goal(client))
    assert 'frame "camera" is not a link of robot' in said.message  # nobody has published it

    def met() -> bool:
        camera_now = camera()
        camera_now.header.stamp = client.now().to_msg()
        client.send('/tf', TFMessage(transforms=[camera_now]))
        return client.answer('goal_pose', goal(client)).message.startswith('solved')

    client.wait(met, 'a goal that is met')
    client.wait_said('arrived')
    there = tip(*(client.position(name)[0] for name in ARM_JOINTS))
    assert there[:3, 3] == pytest.approx(tip(*AT)[:3, 3], abs=1e-4)


def test_invalid_transforms_end_nothing_and_stop_is_served_meanwhile(client: Client) -> None:
    client.answer('goal_pose', goal(client))  # from now on transforms are received
    bad = []
    for change in ('no parent', 'no child', 'itself', 'nan', 'zero', 'old'):
        one = camera()
        one.header.stamp.sec = -5 if change == 'old' else 100
        one.header.frame_id = '' if change == 'no parent' else 'camera' if change == 'itself' else 'base_link'
        one.child_frame_id = '' if change == 'no child' else 'camera'
        if change == 'nan':
            one.transform.translation.x = np.nan
        if change == 'zero':
            one.transform.rotation.w = one.transform.rotation.z = 0.0
        bad.append(one)
    flood = TFMessage(transforms=bad * 200)
    for _ in range(50):
        client.send('/tf', flood)
    assert client.call('ik_node/stop').success
    assert client.call('ik_node/resume').success
    assert client.answer('goal_joints', client.joints(yaw=0.1)).message.startswith('solved')
