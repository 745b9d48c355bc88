# SPDX-License-Identifier: Apache-2.0
"""Parts: results of chunks in a folder, named by what they depend on, until the whole output is written."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from ik_node.batch.workers import Workers
from ik_node.errors import InputError


class Parts:
    """The parts of an output.

    folder: beside the output. Whatever ends a program, the same one finds there what was done.
    """

    def __init__(self, output: Path, task: bytes) -> None:
        """task: all that the results depend on besides the chunks."""
        self.folder = output.with_name(f'{output.name}.parts')
        self._output = output
        self._key = hashlib.blake2b(task, digest_size=16).digest()

    def fill(
        self, workers: Workers, chunks: Iterable[tuple[bytes, int]], done: Callable[[int], None]
    ) -> list[str]:
        """Have the chunks worked on; return the names of their parts, in order.

        chunks: with their sizes, which done is called with. Raises IkError.
        """
        names: list[str] = []
        sizes: dict[str, int] = {}

        def missing() -> Iterator[tuple[str, bytes]]:
            for data, size in chunks:
                name = hashlib.blake2b(data, key=self._key, digest_size=16).hexdigest()
                names.append(name)
                if name in sizes or self._path(name).exists():  # it is being worked on, or was
                    done(size)
                else:
                    sizes[name] = size
                    yield name, data

        with self._errors():
            self.folder.mkdir(exist_ok=True)
            for name, result in workers.results(missing()):
                temporary = self._path(name).with_suffix('.writing')
                temporary.write_bytes(result)
                temporary.replace(self._path(name))
                done(sizes.pop(name))
        return names

    def read(self, name: str) -> bytes:
        """Return a part."""
        return self._path(name).read_bytes()

    @contextlib.contextmanager
    def finished(self, output: Path) -> Iterator[Path]:
        """Give a path to write to; it becomes the output, and the parts are deleted. Raises InputError."""
        temporary = output.with_name(f'{output.name}.writing')
        with self._errors():
            try:
                yield temporary
                temporary.replace(output)
            finally:
                with contextlib.suppress(OSError):
                    shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink(missing_ok=True)
            shutil.rmtree(self.folder)

    def _path(self, name: str) -> Path:
        return self.folder / f'{name}.arrow'

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f'cannot write "{self._output}": {error.strerror}; '
                'what was done is kept, the same command continues'
            ) from None


def packed(batch: pa.RecordBatch) -> bytes:
    """Return a batch in Arrow's IPC format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue().to_pybytes()


def unpacked(data: bytes) -> pa.RecordBatch:
    """Return what packed has packed."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()
