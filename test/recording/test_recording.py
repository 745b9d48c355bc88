# SPDX-License-Identifier: Apache-2.0
"""Recordings, read back by mcap's own reader and decoder and compared with what was published."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from domains import new_domain
from geometry_msgs.msg import PointStamped, Pose, PoseArray, PoseStamped
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from programs import full_disk
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from waiting import wait_for

from ik_node.ros.interfaces import LATCHED
from ik_node.tools.episodes import write_recording
from ik_node.viewer.recording import (
    KINDS,
    JointTrack,
    Recorder,
    RecordingError,
    RecordingFile,
    definition,
    recorded,
)

KIND = 'sensor_msgs/msg/JointState'
TIMEOUT = 60.0  # seconds for things that take a fraction of one on an idle machine


def joints(index: int) -> JointState:
    message = JointState(name=['one', 'two'], position=[0.01 * index, -0.02 * index], velocity=[1.0, float(index)])
    message.header.stamp.sec = index
    return message


def fill(file: RecordingFile, count: int, first: int = 0) -> None:
    """Add messages 10 ms apart."""
    for index in range(first, first + count):
        time = 10**18 + 10**7 * index
        file.add('/joint_states', KIND, serialize_message(joints(index)), time, time - 1000)


def decoded(path: Path) -> list[tuple[str, Any]]:
    """What the reader and decoder of mcap find: topic and message, in order."""
    with path.open('rb') as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        assert reader.get_header().profile == 'ros2'
        return [(channel.topic, message) for _, channel, _, message in reader.iter_decoded_messages()]


def same(found: Any, message: Any) -> bool:
    """Whether a message that mcap decoded has the values of one of rclpy."""
    if hasattr(message, 'get_fields_and_field_types'):
        return all(same(getattr(found, name), getattr(message, name)) for name in message.get_fields_and_field_types())
    if isinstance(message, bytes):  # a byte
        return bool(found == message[0])
    if isinstance(message, str | int | float):
        return bool(found == message)
    return len(found) == len(message) and all(same(a, b) for a, b in zip(found, message, strict=True))


@pytest.fixture
def sides() -> Iterator[tuple[Node, Node, SingleThreadedExecutor]]:
    """Two nodes, one that publishes and one that records."""
    context = rclpy.Context()
    context.init(domain_id=new_domain())
    nodes = Node('speaker', context=context), Node('recorder', context=context)
    executor = SingleThreadedExecutor(context=context)
    for node in nodes:
        executor.add_node(node)
    yield *nodes, executor
    executor.shutdown()
    context.try_shutdown()


@pytest.mark.slow
def test_what_was_published_is_what_mcap_reads(sides: Any, tmp_path: Path) -> None:
    speaker, listener, executor = sides
    best_effort = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)
    publish = speaker.create_publisher
    publishers = {
        '/joint_states': publish(JointState, 'joint_states', 50),
        '/measured_joint_states': publish(JointState, 'measured_joint_states', best_effort),
        '/left/goal_pose': publish(PoseStamped, 'left/goal_pose', 10),
        '/goal_point': publish(PointStamped, 'goal_point', 10),
        '/goal_path': publish(PoseArray, 'goal_path', 10),
        '/ik_node/enable': publish(Bool, 'ik_node/enable', 10),
        '/trajectory': publish(JointTrajectory, 'trajectory', 10),
        '/ik_node/status': publish(DiagnosticStatus, 'ik_node/status', LATCHED),
        '/diagnostics': publish(DiagnosticArray, '/diagnostics', 10),
        '/robot_description': publish(String, 'robot_description', LATCHED),
        '/other': publish(String, 'other', LATCHED),
    }
    publishers['/robot_description'].publish(String(data='<robot/>'))  # before the recording begins
    publishers['/other'].publish(String(data='not recorded'))
    known = [topic for topic in publishers if topic != '/other']
    wait_for(lambda: set(publishers) <= {t for t, _ in listener.get_topic_names_and_types()}, 'topics', TIMEOUT)
    recorder = Recorder(listener, tmp_path / 'new' / 'all.mcap')

    def heard() -> bool:
        executor.spin_once(timeout_sec=0.01)
        recorder.refresh()
        return all(publishers[topic].get_subscription_count() for topic in known)

    wait_for(heard, 'the recorder', TIMEOUT)
    status = DiagnosticStatus(level=b'\x01', name='ik_node', message='Solved: ü', values=[KeyValue(key='a', value='1')])
    pose, point = PoseStamped(), PointStamped()
    pose.header.frame_id, pose.pose.position.x, pose.pose.orientation.z = 'base', 0.25, 0.5
    point.point.y = -3.5
    path = JointTrajectory(joint_names=['one'], points=[JointTrajectoryPoint(positions=[1.5])])
    said: dict[str, list[Any]] = {
        '/joint_states': [joints(index) for index in range(40)],
        '/measured_joint_states': [joints(index) for index in range(40)],
        '/left/goal_pose': [pose],
        '/goal_point': [point],
        '/goal_path': [PoseArray(poses=[pose.pose, Pose()])],
        '/ik_node/enable': [Bool(data=True)],
        '/trajectory': [path],
        '/ik_node/status': [status],
        '/diagnostics': [DiagnosticArray(status=[status, status])],
    }
    for topic, messages in said.items():
        for message in messages:
            publishers[topic].publish(message)
    said['/robot_description'] = [String(data='<robot/>')]
    total = sum(map(len, said.values()))

    def arrived() -> bool:
        executor.spin_once(timeout_sec=0.01)
        return recorder.count >= total

    wait_for(arrived, 'all messages', TIMEOUT)
    recorder.close()
    found: dict[str, list[Any]] = {}
    for topic, message in decoded(recorder.path):
        found.setdefault(topic, []).append(message)
    assert found.keys() == said.keys()
    for topic, messages in said.items():
        assert same(found[topic], messages), topic
    own = [one for one in recorded(recorder.path) if one.topic == '/joint_states']
    assert [one.message for one in own] == said['/joint_states']


def published(sides: Any, path: Path, topics: tuple[str, ...], messages: list[JointState]) -> Recorder:
    """A recorder in a node that is busy with something else, and has all messages waiting."""
    speaker, listener, executor = sides
    executor.remove_node(listener)
    publishers = [speaker.create_publisher(JointState, topic, len(messages)) for topic in topics]
    arrived: list[JointState] = []
    for topic in topics:
        speaker.create_subscription(JointState, topic, arrived.append, len(messages))
    recorder = Recorder(listener, path)

    def heard() -> bool:
        recorder.refresh()
        return all(publisher.get_subscription_count() == 2 for publisher in publishers)

    wait_for(heard, 'the recorder', TIMEOUT)
    for publisher in publishers:
        for message in messages:
            publisher.publish(message)

    def there() -> bool:
        executor.spin_once(timeout_sec=0.01)
        return len(arrived) == len(topics) * len(messages)

    wait_for(there, 'all messages', TIMEOUT)
    return recorder


@pytest.mark.slow
def test_the_end_of_a_recording_takes_what_waits_for_the_executor(sides: Any, tmp_path: Path) -> None:
    said = [joints(index) for index in range(40)]
    recorder = published(sides, tmp_path / 'busy.mcap', ('joint_states',), said)
    recorder.close()
    found = [message for _, message in decoded(recorder.path)]
    assert len(found) == len(said)
    assert all(map(same, found, said))


@pytest.mark.slow
def test_a_disk_that_is_full_at_the_end_is_told(sides: Any, tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=1000).tolist()  # which do not compress
    said = [JointState(position=numbers) for _ in range(50)]
    recorder = published(sides, tmp_path / 'full.mcap', ('joint_states', 'measured_joint_states'), said)
    with full_disk(recorder.path.stat().st_size + 100):
        recorder.close()
    assert 'the recording ended' in recorder.failure


@pytest.mark.slow
def test_a_process_that_is_killed_loses_only_what_it_had_not_saved(tmp_path: Path) -> None:
    path = tmp_path / 'killed.mcap'
    program = (
        'import os, sys, signal; from pathlib import Path; sys.path[:0] = sys.argv[2:];'
        'from test_recording import RecordingFile, fill;'
        'file = RecordingFile(Path(sys.argv[1])); fill(file, 200); file.save();'
        'fill(file, 100, 200); file.save(); fill(file, 5);'
        'os.kill(os.getpid(), signal.SIGKILL)'
    )
    here = Path(__file__).parent
    ended = subprocess.run([sys.executable, '-c', program, path, here, here.parent, here.parents[1]], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert [one.message for one in recorded(path)] == [joints(index) for index in range(300)]
    half = tmp_path / 'half.mcap'
    data = path.read_bytes()
    half.write_bytes(data[: len(data) * 3 // 4])  # in the middle of a chunk
    assert [one.message for one in recorded(half)] == [joints(index) for index in range(200)]


def test_a_full_disk_is_told_and_what_was_written_stays(tmp_path: Path) -> None:
    file = RecordingFile(tmp_path / 'full.mcap')
    fill(file, 100)
    file.save()
    with full_disk(file.path.stat().st_size + 100):
        fill(file, 100)
        with pytest.raises(RecordingError, match=r'full\.mcap has what was written before'):
            file.save()
    assert file.closed
    assert [one.message for one in recorded(file.path)] == [joints(index) for index in range(100)]
    file.close()


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / 'mine.mcap'
    path.write_text('precious')
    with pytest.raises(RecordingError, match='File exists'):
        RecordingFile(path)
    assert path.read_text() == 'precious'
    with pytest.raises(RecordingError, match='is not an MCAP file'):
        list(recorded(path))
    with pytest.raises(RecordingError, match='cannot open'):
        list(recorded(tmp_path / 'absent.mcap'))


def test_joints_at_a_time_are_those_last_received(tmp_path: Path) -> None:
    file = RecordingFile(tmp_path / 'joints.mcap')
    fill(file, 50)
    late = 10**18 + 10**9
    message = JointState(name=['three', 'one'], position=[7.0, float('nan')])
    file.add('/joint_states', KIND, serialize_message(message), late, late)
    file.add('/goal_joints', KIND, serialize_message(JointState(name=['one'], position=[99.0])), late, late)
    file.close()
    track = JointTrack.read(file.path, '/joint_states')
    assert track.seconds == pytest.approx(1.0)
    assert track.at(-1.0) == {'one': 0.0, 'two': 0.0}
    assert track.at(0.1051) == pytest.approx({'one': 0.1, 'two': -0.2})
    assert track.at(5.0) == pytest.approx({'one': 0.49, 'two': -0.98, 'three': 7.0})
    with pytest.raises(RecordingError, match='no joints on the topic /elsewhere'):
        JointTrack.read(file.path, '/elsewhere')


def test_definitions_name_all_types_within() -> None:
    for kind in KINDS:
        text = definition(kind)
        assert 'MSG: std_msgs/' in text or kind.endswith(('/DiagnosticStatus', '/Bool'))
        assert text.count(80 * '=') == text.count('\nMSG: ')
    with pytest.raises(RecordingError, match='is not installed'):
        definition('sensor_msgs/msg/Nothing')


def test_recordings_of_episodes_are_written_without_ros_and_replayed_by_the_viewer(tmp_path):
    path = tmp_path / 'episode.mcap'
    times, q = np.array([5.0, 5.5, np.nan, 5.2, 7.0]), np.arange(10.0).reshape(5, 2)
    for _ in range(2):  # the second replaces the first
        write_recording(path, ['one', 'two'], times, q)
    track = JointTrack.read(path, '/joint_states')
    assert track.names == ('one', 'two')
    np.testing.assert_allclose(track.times, [0.0, 0.5, 0.5, 0.5, 2.0])
    np.testing.assert_array_equal(track.positions, q)
    assert [one.name for one in tmp_path.iterdir()] == ['episode.mcap']
