# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: stores results of chunks, named by what they depend on, until the output is written."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from ik_node.console import say
from ik_node.errors import InputError, path_text, quoted
from ik_node.files import put_in_place, whole_file

from .goal_files import WRITING
from .workers import Workers

CHECK = 4  # [bytes] of checksum at the end of a result
LOCK = 'lock'
OWN = re.compile(rf'{LOCK}|([0-9a-f]{{8}}-)?[0-9a-f]{{32}}\.arrow|\.[0-9a-f]{{8}}\.part')  # in the folder


class Checkpoints:
    """The results of chunks, each a file in a folder beside the output, until the output is complete.

    Whatever ends a program, the same one finds there what was done. A file is named by a digest of the arm,
    the options and the code, and one of its chunk, so that no result is taken for that of another run. One
    that a crash has left incomplete does not count.
    """

    def __init__(self, output: Path, key: bytes) -> None:
        """key: names all that the results depend on besides the chunks."""
        self.folder, self._temporary = beside(output)
        self._output, self._key = output, key
        self._prefix = f'{hashlib.blake2b(key, digest_size=4).hexdigest()}-'
        self._earlier: set[str] = set()  # names of what an earlier run has done

    @contextlib.contextmanager
    def writing(self) -> Iterator[Path]:
        """Give a path to write to; it becomes the output, and the results of chunks are deleted.

        Raises InputError for what cannot be written or would delete files of others, and while another
        process writes the same output.
        """
        temporary = self._temporary
        with self._errors(), self._locked():
            try:
                _remove(temporary)  # of a process that was killed
                self._find_earlier()
                yield temporary
                put_in_place(temporary, self._output)
            finally:
                with contextlib.suppress(OSError):
                    _remove(temporary)
            self._delete()

    def _find_earlier(self) -> None:
        """Find the results of an earlier run, and note if there are some of another arm, options or code."""
        names = {path.stem for path in self.folder.glob('*.arrow')}
        self._earlier = {name for name in names if name.startswith(self._prefix)}
        if names > self._earlier:
            say(
                f'note: results in "{path_text(self.folder)}" are of another arm, other options or another '
                'version of ik_node, and are not used',
                sys.stderr,
            )

    def _check_others(self) -> None:
        """Raise InputError for files that are none of these programs: they would be deleted."""
        if self.folder.is_dir():
            others = sorted(path.name for path in self.folder.iterdir() if not OWN.fullmatch(path.name))
            if others:
                raise InputError(
                    f'"{path_text(self.folder)}" is the working folder of this output, but contains an '
                    f'unknown file, {quoted(others[0])}: name another output'
                )
        elif self._temporary.exists():
            raise InputError(
                f'"{path_text(self._temporary)}" exists, and the output would be written there: name another '
                'output, or delete it'
            )

    def _delete(self) -> None:
        for path in self.folder.iterdir():
            if OWN.fullmatch(path.name):
                path.unlink()
        with contextlib.suppress(OSError):  # another process has just begun, or somebody put files there
            self.folder.rmdir()

    def fill(self, workers: Workers, chunks: Iterable[tuple[bytes, int]], done: Callable[[int], None]) -> Iterator[str]:
        """Have the workers process the chunks; yield the names of the results in order, as they come.

        chunks: with their sizes, which done is called with. Only while writing. Raises IkError.
        """
        names: deque[str] = deque()  # not yet yielded
        sizes: dict[str, int] = {}  # of chunks that are being processed

        def missing() -> Iterator[tuple[str, bytes]]:
            for data, size in chunks:
                name = self._prefix + hashlib.blake2b(data, key=self._key, digest_size=16).hexdigest()
                names.append(name)
                self._earlier.discard(name)
                if name in sizes or self._is_whole(name):
                    done(size)
                else:
                    sizes[name] = size
                    yield name, data

        for name, result in workers.results(missing()):
            self._write(name, result)
            done(sizes.pop(name))
            while names and names[0] not in sizes:
                yield names.popleft()
        yield from names
        if self._earlier:
            count = f'{len(self._earlier)} chunk{"s" * (len(self._earlier) > 1)}'
            say(f'note: the input has changed since an earlier run: {count} of it not used', sys.stderr)

    def read(self, name: str) -> bytes:
        """Return a result."""
        return self._path(name).read_bytes()[:-CHECK]

    def _write(self, name: str, data: bytes) -> None:
        with whole_file(self._path(name), durable=False) as file:  # _is_whole finds what a power failure cuts
            file.write(data)
            file.write(_check(data))

    def _is_whole(self, name: str) -> bool:
        """Whether a result is there as it was written: after a power failure its end may be missing."""
        try:
            data = memoryview(self._path(name).read_bytes())
        except FileNotFoundError:
            return False
        return data[-CHECK:] == _check(data[:-CHECK])

    def _path(self, name: str) -> Path:
        return self.folder / f'{name}.arrow'

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Make the folder and keep other processes out of it. Raises InputError if one is there."""
        self._check_others()
        while True:
            self.folder.mkdir(exist_ok=True)
            with (self.folder / LOCK).open('w') as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise InputError(f'another process is writing "{path_text(self._output)}"') from None
                if not os.fstat(file.fileno()).st_nlink:
                    continue  # another process has ended in between, and deleted the folder
                yield
                return

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f'cannot write "{path_text(self._output)}": {error.strerror or error}; completed chunks '
                'are kept, run the same command to continue'
            ) from None


def beside(output: Path) -> tuple[Path, Path]:
    """Return the folder of results for an output, and where the output is written until it is complete."""
    return output.with_name(f'{output.name}.parts'), output.with_name(f'{output.name}{WRITING}')


def _remove(path: Path) -> None:
    """Remove a file or a folder, if there is one."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _check(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(CHECK, 'little')


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
