# SPDX-License-Identifier: Apache-2.0
"""Recorder: records topics in a file; RecordingFile and JointTrack: read one for a replay."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from mcap.reader import NonSeekingReader
from mcap.writer import CompressionType, Writer
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription

from ik_node.checks import Array
from ik_node.errors import IkError, only_files
from ik_node.ros.graph import graph
from ik_node.steady import steady

LINE = 80 * '='  # between the text of a type and those of the types that it uses


class RecordingError(IkError):
    """A recording cannot be written or read; the message says which and why."""


def message_class(name: str) -> Any:
    """Return the class of a message type such as sensor_msgs/msg/JointState. Raises RecordingError."""
    package, _, short = name.partition('/msg/')
    try:
        return getattr(import_module(f'{package}.msg'), short)
    except (ImportError, AttributeError, ValueError):
        raise RecordingError(f'the message type {name!r} is not installed') from None


def definition(name: str) -> str:
    """Return the text of a message type, and behind lines of = those of all types within it.

    Raises RecordingError.
    """
    found: dict[str, str] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop(0)
        if current in found:
            continue
        message = message_class(current)
        found[current] = _text(current)
        types = message.get_fields_and_field_types().values()
        waiting += [f'{package}/msg/{short}' for kind in types for package, short in _within(kind)]
    others = (f'\n{LINE}\nMSG: {key.replace("/msg/", "/")}\n{text}' for key, text in found.items() if key != name)
    return found[name] + ''.join(others)


def _within(kind: str) -> list[tuple[str, str]]:
    """Return package and name of the message type in the type of a field, such as sequence<a/B>."""
    return re.findall(r'(\w+)/(\w+)', kind)


def _text(name: str) -> str:
    """Return the .msg file of a type: in the share folder beside which its Python package is installed."""
    package, _, short = name.partition('/msg/')
    module = import_module(package).__file__ or ''
    for folder in Path(module).parents:
        path = folder / 'share' / package / 'msg' / f'{short}.msg'
        if path.is_file():
            return path.read_text(encoding='utf-8')
    raise RecordingError(f'the definition {short}.msg of {package} is not installed')


CHUNK = 64 * 1024  # [bytes] of messages that are written together; save writes them earlier


class RecordingFile:
    """An MCAP file, profile ros2, that is being written.

    A file without an end is readable up to its last chunk: save therefore ends one. After an error nothing
    more is written, and the file ends with its last whole chunk.
    """

    def __init__(self, path: Path) -> None:
        """path: of a file that does not exist yet. Raises RecordingError."""
        self.path = path
        self.count = 0  # of messages
        self._channels: dict[tuple[str, str], int] = {}
        self._schemas: dict[str, int] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = path.open('xb', buffering=0)
        except OSError as error:
            raise RecordingError(f'cannot record to {path}: {error.strerror or error}') from None
        self._writer = Writer(_Whole(self._stream.fileno()), CHUNK, CompressionType.ZSTD)  # type: ignore[arg-type]
        self._whole = 0  # [bytes] up to the last whole chunk
        with self._explained():
            self._writer.start('ros2', 'ik_node')
            self._saved()

    @property
    def closed(self) -> bool:
        """Whether nothing more can be written."""
        return self._stream.closed

    def add(self, topic: str, kind: str, data: bytes, received: int, sent: int) -> None:
        """Add a serialized message (CDR) of a type such as sensor_msgs/msg/JointState.

        received, sent: [ns] since 1970. Raises RecordingError.
        """
        with self._explained():
            if kind not in self._schemas:
                text = definition(kind).encode()
                self._schemas[kind] = self._writer.register_schema(kind, 'ros2msg', text)
            key = topic, kind
            if key not in self._channels:
                self._channels[key] = self._writer.register_channel(topic, 'cdr', self._schemas[kind])
            self._writer.add_message(self._channels[key], received, data, sent, self.count % 2**32)
            self.count += 1

    def save(self) -> None:
        """Write what has been added, so that it survives the process. Raises RecordingError."""
        with self._explained():
            self._writer.flush()
            self._saved()

    def close(self) -> None:
        """Write the rest and the index of the file, and close it. Raises RecordingError."""
        if self.closed:
            return
        with self._explained():
            self._writer.flush()
            self._saved()
            self._writer.finish()
            os.fsync(self._stream.fileno())
            self._stream.close()

    def _saved(self) -> None:
        self._whole = self._stream.tell()

    @contextlib.contextmanager
    def _explained(self):  # type: ignore[no-untyped-def]
        """Turn an error of the disk into a RecordingError, and close the file behind its last whole chunk."""
        try:
            yield
        except OSError as error:
            with contextlib.suppress(OSError):
                self._stream.truncate(self._whole)
            with contextlib.suppress(OSError):
                self._stream.close()
            raise RecordingError(
                f'the recording ended: {(error.strerror or str(error)).lower()}. '
                f'{self.path} has what was written before'
            ) from None


class _Whole:
    """Writes all of what it is given, or raises OSError: a write to a disk that fills may write a part."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._place = 0

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        self._place += len(data)
        return len(data)

    def tell(self) -> int:
        return self._place

    def flush(self) -> None:
        """Nothing waits here."""


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
        latched = bool(profiles) and all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in profiles)
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


JOINTS = 'sensor_msgs/msg/JointState'
SECOND = 1_000_000_000  # [ns]
MAGIC = b'\x89MCAP0\r\n'
LARGEST = 256 * 1024 * 1024  # [bytes] of one record; a longer one is damage


@dataclass(frozen=True)
class Recorded:
    """One message of a recording. received: [ns] since 1970."""

    topic: str
    kind: str
    received: int
    message: Any


def recorded(path: Path, kinds: tuple[str, ...] = KINDS) -> Iterator[Recorded]:
    """Yield the messages of some types, in the order of the file, up to where the file ends or is damaged.

    Raises RecordingError if it cannot be opened, is not an MCAP file, or has a message that cannot be read.
    """
    try:
        stream = open(path, 'rb', opener=only_files)  # noqa: SIM115 - it is closed below
    except OSError as error:
        raise RecordingError(f'cannot open {path}: {error.strerror or error}') from None
    with stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise RecordingError(f'{path} is not an MCAP file')
        stream.seek(0)
        reader = NonSeekingReader(stream, validate_crcs=True, record_size_limit=LARGEST)
        for schema, channel, message in _whole(reader.iter_messages(log_time_order=False)):
            if schema is None or schema.name not in kinds or channel.message_encoding != 'cdr':
                continue
            kind = message_class(schema.name)
            try:
                content = deserialize_message(message.data, kind)
            except Exception as error:  # rclpy has no class of its own for it
                raise RecordingError(f'a message in {path} cannot be read: {error}') from None
            yield Recorded(channel.topic, schema.name, message.log_time, content)


def _whole(messages: Iterator[Any]) -> Iterator[Any]:
    """Yield messages until the file ends or is damaged; the reader raises errors of many classes."""
    with contextlib.suppress(Exception):
        while (message := next(messages, None)) is not None:
            yield message


class JointTrack:
    """Joint positions over time.

    names (n,); times (m,) [s] since the first message; positions (m, n) [rad or m], NaN where not known yet.
    """

    def __init__(self, names: tuple[str, ...], times: Array, positions: Array) -> None:
        self.names, self.times, self.positions = names, times, positions

    @classmethod
    def read(cls, path: Path, topic: str) -> JointTrack:
        """Read the joints that one topic had. Raises RecordingError if there are none."""
        values: dict[str, float] = {}
        rows: list[tuple[int, tuple[float, ...]]] = []  # values in the order of their names, which stays
        for one in recorded(path, (JOINTS,)):
            if one.topic == topic:
                pairs = zip(one.message.name, one.message.position, strict=False)
                values.update({name: value for name, value in pairs if np.isfinite(value)})
                rows.append((one.received, tuple(values.values())))
        if not values:
            raise RecordingError(f'{path} has no joints on the topic {topic}')
        names = tuple(values)
        times = np.maximum.accumulate([received for received, _ in rows])
        positions = np.full((len(rows), len(names)), np.nan)
        for index, (_, row) in enumerate(rows):
            positions[index, : len(row)] = row
        return cls(names, (times - times[0]) / SECOND, positions)

    @property
    def seconds(self) -> float:
        """The length [s]."""
        return float(self.times[-1])

    def at(self, seconds: float) -> dict[str, float]:
        """Return the joint positions by name at a time [s] since the first message: those last received."""
        index = max(int(np.searchsorted(self.times, seconds, side='right')) - 1, 0)
        row = zip(self.names, self.positions[index], strict=True)
        return {name: float(value) for name, value in row if not np.isnan(value)}
