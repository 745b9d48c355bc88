# SPDX-License-Identifier: Apache-2.0
"""Frames that only tf2 knows, asked for in several threads at once; a stand-in takes the place of tf2."""

from __future__ import annotations

import contextlib
import sys
import threading
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Transform
from rclpy.node import Node
from small_arm import PARAMETERS, arm_urdf
from std_msgs.msg import Header

from ik_node.control.robot.arm_model import ArmModel
from ik_node.control.settings.arm import ArmSettings
from ik_node.errors import InputError
from ik_node.ros.goals.frames import Frames

NO_NODE: Node = None  # the stand-in needs none
THREADS = 4  # goals, queries, teleoperation, MoveIt
LONG = 10.0  # [s] in which a thread ends that nothing holds up
MEETING = 0.5  # [s] in which threads meet that nothing keeps apart


@pytest.fixture(scope='module')
def little() -> ArmModel:
    return ArmModel.build(arm_urdf(), ArmSettings(**PARAMETERS, self_collision='false'))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What has been made of the stand-in: making one takes so long that another thread can make a second."""
    found: list[Any] = []
    meeting = threading.Barrier(2)

    class TfListener:
        def __init__(self, *_: Any) -> None:
            found.append(self)
            self.closed = 0
            with contextlib.suppress(threading.BrokenBarrierError):
                meeting.wait(MEETING)

        def look_up(self, *_: Any) -> Transform:
            transform = Transform()
            transform.translation.x = 0.25
            return transform

        def close(self) -> None:
            self.closed += 1

    module = ModuleType('transforms')
    module.TfListener = TfListener  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, 'ik_node.ros.goals.tf_listener', module)
    return found


def test_threads_that_name_frames_at_once_subscribe_to_tf2_once(little: ArmModel, made: list[Any]) -> None:
    frames = Frames(NO_NODE)
    found: list[np.ndarray] = []

    def ask() -> None:
        found.append(frames.in_base(Header(frame_id='camera'), little, little.joints.rest))

    threads = [threading.Thread(target=ask) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert [T[0, 3] for T in found] == [0.25] * THREADS
    assert len(made) == 1
    frames.close()
    assert made[0].closed == 1


def test_without_tf2_a_frame_off_the_robot_is_rejected(
    little: ArmModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'ik_node.ros.goals.tf_listener', None)
    frames = Frames(NO_NODE)
    with pytest.raises(InputError, match='tf2 is not installed'):
        frames.in_base(Header(frame_id='camera'), little, little.joints.rest)
    frames.close()
