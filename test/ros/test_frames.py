# SPDX-License-Identifier: Apache-2.0
"""Queries of poses, and frames that only tf2 knows, with stand-ins for tf2."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from control_harness import arm_model
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, Transform, TransformStamped
from node_harness import Client, running
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.time import Time as RosTime
from sensor_msgs.msg import JointState
from small_arm import ARM_JOINTS, PARAMETERS, arm_urdf
from std_msgs.msg import Header

from ik_node import Arm, Goal, IkSolver
from ik_node.control.models import ArmModel
from ik_node.control.settings import ArmSettings
from ik_node.errors import InputError
from ik_node.ros.conversions import matrix_pose, pose_matrix
from ik_node.ros.frames import Frames
from ik_node.ros.goals import Projection
from ik_node.ros.interfaces import STREAM
from ik_node.tracks import tip_pose

NO_NODE: Node = None  # the stand-in needs none
THREADS = 4  # goals, queries, teleoperation, MoveIt
LONG = 10.0  # [s] in which a thread ends that nothing holds up
MEETING = 0.5  # [s] in which threads meet that nothing keeps apart


@pytest.fixture(scope='module')
def little() -> ArmModel:
    return arm_model(arm_urdf(), ArmSettings(**PARAMETERS, self_collision='false'))


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
    monkeypatch.setitem(sys.modules, 'ik_node.ros.tf_listener', module)
    return found


@pytest.mark.slow
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


def test_without_tf2_a_frame_off_the_robot_is_rejected(little: ArmModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'ik_node.ros.tf_listener', None)
    frames = Frames(NO_NODE)
    with pytest.raises(InputError, match='tf2 is not installed'):
        frames.in_base(Header(frame_id='camera'), little, little.joints.rest)
    frames.close()


T_BASE_CAMERA = np.array([[0.0, -1.0, 0.0, 0.1], [1.0, 0.0, 0.0, -0.2], [0.0, 0.0, 1.0, 0.3], [0.0, 0.0, 0.0, 1.0]])
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

    def lookup_transform(self, target: str, source: str, time: RosTime, timeout: Duration) -> TransformStamped:
        assert (time.nanoseconds, timeout.nanoseconds > 0) == (0, True)
        if (target, source) not in self.known:
            raise TransformError(f'"{source}" passed to lookupTransform argument source_frame does not exist')
        return self.known[target, source]


@pytest.fixture
def seeing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    tf2 = ModuleType('tf2_ros')
    content = {'Buffer': Buffer, 'TransformListener': lambda *_: None, 'TransformException': TransformError}
    vars(tf2).update(content)
    monkeypatch.setitem(sys.modules, 'tf2_ros', tf2)
    monkeypatch.delitem(sys.modules, 'ik_node.ros.tf_listener', raising=False)
    monkeypatch.setattr(Buffer, 'known', {})
    with running(arm_urdf()) as seeing:
        yield seeing
    sys.modules.pop('ik_node.ros.tf_listener', None)


def tip(*q: float) -> np.ndarray:
    arm = arm_model(arm_urdf(), ArmSettings(**PARAMETERS)).first.arm
    return arm.link_in_base(arm.tip_link, dict(zip(ARM_JOINTS, q, strict=True)))


def goal(seeing: Client) -> Any:
    """A goal that can be met, in the newest frame of the camera."""
    message = seeing.pose(np.linalg.inv(T_BASE_CAMERA) @ tip(*AT), 'camera')
    message.header.stamp = Time()
    return message


@pytest.mark.slow
def test_a_goal_in_a_frame_of_tf2_is_met(seeing: Client) -> None:
    said = seeing.answer('goal_pose', goal(seeing))
    assert 'frame "camera" is not a link of robot' in said.message
    assert 'lookupTransform' in said.message
    Buffer.known['base_link', 'camera'] = camera()
    assert seeing.answer('goal_pose', goal(seeing)).message.startswith('solved')
    seeing.wait_said('arrived')
    there = tip(*(seeing.position(name)[0] for name in ARM_JOINTS))
    assert there[:3, 3] == pytest.approx(tip(*AT)[:3, 3], abs=1e-4)


def test_a_transform_that_is_none_rejects_the_goal(seeing: Client) -> None:
    before = seeing.position()
    for field in ('x', 'w'):
        Buffer.known['base_link', 'camera'] = message = camera()
        if field == 'x':
            message.transform.translation.x = np.nan
        else:
            message.transform.rotation.w = message.transform.rotation.z = 0.0
        assert not seeing.answer('goal_pose', goal(seeing)).message.startswith('solved')
    np.testing.assert_array_equal(seeing.wait_still(), before)


Z, ORIGIN = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)


class Asker:
    """Asks and waits for both answers."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.poses: list[PoseStamped] = []
        self.said: list[DiagnosticStatus] = []
        node = client.node
        self.queries = node.create_publisher(PoseStamped, 'ik_node/project_pose', 1)
        node.create_subscription(PoseStamped, 'ik_node/projected_pose', self.poses.append, STREAM)
        node.create_subscription(DiagnosticStatus, 'ik_node/projection', self.said.append, STREAM)
        client.wait(lambda: self.queries.get_subscription_count(), 'the subscription')

    def ask(self, position: object, direction: object) -> tuple[PoseStamped, DiagnosticStatus, dict[str, str]]:
        count = len(self.said)
        message = PoseStamped(pose=matrix_pose(tip_pose(position, direction, Z, ORIGIN)))
        message.header.frame_id = 'base_link'
        message.header.stamp = self.client.now().to_msg()
        self.queries.publish(message)
        self.client.wait(lambda: len(self.said) > count and len(self.poses) > count, 'both answers')
        values = {pair.key: pair.value for pair in self.said[-1].values}
        assert self.poses[-1].header.stamp == message.header.stamp
        assert values['goal_stamp'] == f'{message.header.stamp.sec}.{message.header.stamp.nanosec:09d}'
        return self.poses[-1], self.said[-1], values


@pytest.fixture
def client():
    with running(arm_urdf()) as client:
        yield client


@pytest.mark.slow
def test_the_nearest_pose_is_told_and_the_arm_stays_where_it_is(client):
    arm = Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')
    asker = Asker(client)
    before = client.position()
    point, axis = arm.fk([0.4, 0.5, 0.9, 0.4, 0.6])
    pose, said, values = asker.ask(point, axis)
    assert said.level == DiagnosticStatus.OK
    assert values['status'] == 'solved'
    assert float(values['roll_error']) >= 0.0
    assert pose.header.frame_id == 'base_link'
    np.testing.assert_allclose(pose_matrix(pose.pose)[:3, 3], point, atol=1e-5)
    q = [float(values[f'joint {name}']) for name in ARM_JOINTS]
    np.testing.assert_allclose(arm.fk(q)[0], point, atol=1e-5)

    assert client.call('ik_node/stop').success  # a stopped arm answers, too
    far = np.add(point, [3.0, 0.0, 0.0])
    pose, said, values = asker.ask(far, axis)
    best = IkSolver(arm).solve(Goal(far, axis))
    assert values['status'] == 'unreachable'
    assert float(values['position_error']) == pytest.approx(best.position_error, abs=1e-4)
    reached = pose_matrix(pose.pose)
    assert np.linalg.norm(reached[:3, 3] - far) == pytest.approx(best.position_error, abs=1e-4)
    np.testing.assert_array_equal(client.position(), before)
    bad = PoseStamped()
    bad.header.frame_id = 'base_link'
    bad.pose.orientation.w = 3.0
    asker.queries.publish(bad)
    client.wait_said('~/project_pose rejected')


def test_a_query_that_takes_long_delays_no_goal(client, monkeypatch):
    """Each has an inbox and a thread of its own, and the one that searches holds no lock."""
    answered = []

    def search(*_: object) -> None:
        client.send('goal_joints', client.joints(yaw=0.5))
        client.world.pump()
        solving = threading.Thread(target=goals._solve, args=[0.0])
        solving.start()
        solving.join(LONG)
        client.world.pump()
        answered.append([status.message for status in client.about('goal_joints')])

    monkeypatch.setattr(Projection, 'answer', search)
    goals = client.served._goals
    message = PoseStamped(pose=matrix_pose(np.eye(4)))
    message.header.frame_id = 'base_link'
    Asker(client).queries.publish(message)
    client.world.pump()
    goals._solve(0.0)
    assert not answered, 'it does not wait among the goals'
    goals._answer(0.0)
    assert [said[0].startswith('solved') for said in answered] == [True]


def test_joints_get_the_pose_of_the_tip_there(client):
    poses: list[PoseStamped] = []
    queries = client.node.create_publisher(JointState, 'ik_node/fk_joint_states', 1)
    client.node.create_subscription(PoseStamped, 'ik_node/fk_pose', poses.append, STREAM)
    client.wait(queries.get_subscription_count, 'the subscription')
    arm = Arm.from_urdf(arm_urdf(), tip_link='tool0', base_link='base_link')
    before = client.position()
    message = client.joints(elbow=0.9, yaw=0.4)
    message.header.stamp = client.now().to_msg()
    queries.publish(message)
    client.wait(lambda: poses, 'the answer')
    assert poses[0].header.stamp == message.header.stamp
    assert poses[0].header.frame_id == 'base_link'
    q = dict(zip(ARM_JOINTS, before, strict=True)) | {'elbow': 0.9, 'yaw': 0.4}
    point, axis = arm.fk([q[name] for name in ARM_JOINTS])
    T = pose_matrix(poses[0].pose)
    np.testing.assert_allclose(T[:3, 3], point, atol=1e-9)
    np.testing.assert_allclose(T[:3, 2], axis, atol=1e-9)
    queries.publish(client.joints(nonsense=1.0))
    client.wait_said('~/fk_joint_states rejected')
    np.testing.assert_array_equal(client.position(), before)
