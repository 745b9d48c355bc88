# SPDX-License-Identifier: Apache-2.0
"""Reads recordings, also those whose end is missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mcap.reader import NonSeekingReader
from rclpy.serialization import deserialize_message

from ik_node.checks import Array
from ik_node.errors import only_files
from ik_node.recording.definitions import RecordingError, message_class
from ik_node.recording.recorder import KINDS

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
