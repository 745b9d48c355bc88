# SPDX-License-Identifier: Apache-2.0
"""Goals in frames that only tf2 knows, with a stand-in for tf2_ros: PyPI does not have it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from node_harness import Client, running
from rclpy.duration import Duration
from rclpy.time import Time as RosTime
from small_arm import ARM_JOINTS, PARAMETERS, arm_urdf

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


class TransformError(Exception):
    """tf2_ros.TransformException."""


class Buffer:
    """What tf2 knows: transforms by their two frames."""

    known: ClassVar[dict[tuple[str, str], TransformStamped]] = {}

    def lookup_transform(
        self, target: str, source: str, time: RosTime, timeout: Duration
    ) -> TransformStamped:
        assert (time.nanoseconds, timeout.nanoseconds > 0) == (0, True)
        if (target, source) not in self.known:
            raise TransformError(f'"{source}" passed to lookupTransform argument source_frame does not exist')
        return self.known[target, source]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    tf2 = ModuleType('tf2_ros')
    content = {'Buffer': Buffer, 'TransformListener': lambda *_: None, 'TransformException': TransformError}
    vars(tf2).update(content)
    monkeypatch.setitem(sys.modules, 'tf2_ros', tf2)
    monkeypatch.delitem(sys.modules, 'ik_node.ros.goals.tf_listener', raising=False)
    monkeypatch.setattr(Buffer, 'known', {})
    with running(arm_urdf()) as client:
        yield client
    sys.modules.pop('ik_node.ros.goals.tf_listener', None)


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
    assert 'frame "camera" is not a link of robot' in said.message
    assert 'lookupTransform' in said.message
    Buffer.known['base_link', 'camera'] = camera()
    assert client.answer('goal_pose', goal(client)).message.startswith('solved')
    client.wait_said('arrived')
    there = tip(*(client.position(name)[0] for name in ARM_JOINTS))
    assert there[:3, 3] == pytest.approx(tip(*AT)[:3, 3], abs=1e-4)


@pytest.mark.parametrize('wrong', ['nan', 'zero'])
def test_a_transform_that_is_none_rejects_the_goal(client: Client, wrong: str) -> None:
    Buffer.known['base_link', 'camera'] = message = camera()
    if wrong == 'nan':
        message.transform.translation.x = np.nan
    else:
        message.transform.rotation.w = message.transform.rotation.z = 0.0
    before = client.position()
    assert not client.answer('goal_pose', goal(client)).message.startswith('solved')
    np.testing.assert_array_equal(client.wait_still(), before)
