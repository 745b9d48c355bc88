# SPDX-License-Identifier: Apache-2.0
"""RecordingFile: writes messages to an MCAP file and loses as little as possible if the process dies."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mcap.writer import CompressionType, Writer

from ik_node.recording.definitions import RecordingError, definition

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
        with self._told():
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
        with self._told():
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
        with self._told():
            self._writer.flush()
            self._saved()

    def close(self) -> None:
        """Write the rest and the index of the file, and close it. Raises RecordingError."""
        if self.closed:
            return
        with self._told():
            self._writer.flush()
            self._saved()
            self._writer.finish()
            os.fsync(self._stream.fileno())
            self._stream.close()

    def _saved(self) -> None:
        self._whole = self._stream.tell()

    @contextlib.contextmanager
    def _told(self):  # type: ignore[no-untyped-def]
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
