# SPDX-License-Identifier: Apache-2.0
"""Recorder: subscribes to joints, goals and status, and writes what arrives as it arrives."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from ik_node.recording.definitions import RecordingError, message_class
from ik_node.recording.file import RecordingFile
from ik_node.ros.graph import graph
from ik_node.steady import steady

# What is recorded: joints commanded and measured, goals, status. Of String only the description.
KINDS = (
    'sensor_msgs/msg/JointState',
    'trajectory_msgs/msg/JointTrajectory',
    'std_msgs/msg/Float64MultiArray',
    'geometry_msgs/msg/PoseStamped',
    'geometry_msgs/msg/PoseArray',
    'geometry_msgs/msg/PointStamped',
    'geometry_msgs/msg/TwistStamped',
    'std_msgs/msg/Bool',
    'diagnostic_msgs/msg/DiagnosticStatus',
    'diagnostic_msgs/msg/DiagnosticArray',
)
DESCRIPTION = 'robot_description'
DEPTH = 1000  # messages that wait while the node is busy with something else


class Recorder:
    """Records all topics of KINDS, new ones within the time between two calls of refresh.

    After an error, which failure states, it has ended.
    """

    def __init__(self, node: Node, path: Path) -> None:
        """path: of a file that does not exist yet. Raises RecordingError."""
        self._node = node
        self._file = RecordingFile(path)
        self._subscriptions: dict[str, tuple[Any, Subscription]] = {}  # by topic, with its choice
        self._start = steady()
        self.failure = ''
        self.refresh()

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @property
    def count(self) -> int:
        """The number of messages so far."""
        return self._file.count

    @property
    def seconds(self) -> float:
        """The time [s] since the start."""
        return steady() - self._start

    def refresh(self) -> None:
        """Subscribe to new topics, and write what has arrived; call it about once per second."""
        if self._file.closed:
            return
        for topic, kinds in graph.topics(self._node):
            for kind in kinds:
                described = kind == 'std_msgs/msg/String' and topic.endswith(f'/{DESCRIPTION}')
                if kind in KINDS or described:
                    self._subscribe(topic, kind)
                if self._file.closed:  # what waited in a subscription that was replaced filled the disk
                    return
        try:
            self._file.save()
        except RecordingError as error:
            self._fail(error)

    def close(self) -> None:
        """Add what has arrived and waits for the executor, and end the recording."""
        for topic, ((kind, *_), subscription) in list(self._subscriptions.items()):
            self._add_waiting(topic, kind, subscription)
        self._unsubscribe()
        try:
            self._file.close()
        except RecordingError as error:
            self._fail(error)

    def _subscribe(self, topic: str, kind: str) -> None:
        publishers = graph.publishers(self._node, topic)
        profiles = [publisher.qos_profile for publisher in publishers]
        reliable = all(profile.reliability == ReliabilityPolicy.RELIABLE for profile in profiles)
        latched = bool(profiles) and all(
            profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in profiles
        )
        choice = kind, reliable, latched
        before = self._subscriptions.get(topic)
        if before is not None:
            if before[0] == choice or not profiles:
                return
            self._add_waiting(topic, kind, before[1])
            if self._file.closed:
                return
            self._node.destroy_subscription(before[1])
        subscription = self._node.create_subscription(
            message_class(kind),
            topic,
            partial(self._add, topic, kind),
            QoSProfile(
                depth=DEPTH,
                reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
                durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
            ),
            raw=True,  # the bytes of the message: nothing is lost in between
        )
        self._subscriptions[topic] = choice, subscription

    def _add(self, topic: str, kind: str, data: bytes, info: dict[str, int]) -> None:
        if self._file.closed:
            return
        received = info['received_timestamp'] or time.time_ns()
        try:
            self._file.add(topic, kind, bytes(data), received, info['source_timestamp'] or received)
        except RecordingError as error:
            self._fail(error)

    def _add_waiting(self, topic: str, kind: str, subscription: Subscription) -> None:
        """Add what waits for the executor, unless the file has ended: its subscriptions are destroyed."""
        if self._file.closed:
            return
        with subscription.handle:
            for _ in range(DEPTH):
                taken = subscription.handle.take_message(subscription.msg_type, True)
                if taken is None:
                    return
                self._add(topic, kind, *taken)

    def _fail(self, error: RecordingError) -> None:
        self._unsubscribe()
        self.failure = str(error)
        self._node.get_logger().error(self.failure)

    def _unsubscribe(self) -> None:
        for _, subscription in self._subscriptions.values():
            self._node.destroy_subscription(subscription)
        self._subscriptions = {}
