# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: stores results of chunks, named by what they depend on, until the output is written."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ik_node.console import FORMULA, NUMBER
from ik_node.errors import InputError, path_text, quoted
from ik_node.files import put_in_place, whole_file

from .workers import Workers

CHECK = 4  # [bytes] at the end of a part
LOCK = 'lock'
WRITING = '.writing'  # suffix of an output that is not yet whole
OWN = re.compile(rf'{LOCK}|[0-9a-f]{{32}}\.arrow|\.[0-9a-f]{{8}}\.part')  # what the folder of parts holds


class Checkpoints:
    """The parts of an output.

    folder: beside the output. Whatever ends a program, the same one finds there what was done. A part that a
    crash has left incomplete is worked on again.
    """

    def __init__(self, output: Path, key: bytes) -> None:
        """key: names all that the results depend on besides the chunks."""
        self.folder, self._temporary = beside(output)
        self._output, self._key = output, key
        self._last = '', b''  # most are read as soon as they are written

    @contextlib.contextmanager
    def writing(self) -> Iterator[Path]:
        """Give a path to write to; it becomes the output, and the parts are deleted.

        Raises InputError for what cannot be written or would delete files of others, and while another
        process writes the same output.
        """
        temporary = self._temporary
        with self._errors(), self._locked():
            try:
                _remove(temporary)  # of a process that was killed
                yield temporary
                put_in_place(temporary, self._output)
            finally:
                with contextlib.suppress(OSError):
                    _remove(temporary)
            self._delete()

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

    def fill(
        self, workers: Workers, chunks: Iterable[tuple[bytes, int]], done: Callable[[int], None]
    ) -> Iterator[str]:
        """Have the chunks worked on; return the names of their parts in order, each once it is there.

        chunks: with their sizes, which done is called with. Only while writing. Raises IkError.
        """
        names: deque[str] = deque()
        sizes: dict[str, int] = {}  # of those that are being worked on

        def missing() -> Iterator[tuple[str, bytes]]:
            for data, size in chunks:
                name = hashlib.blake2b(data, key=self._key, digest_size=16).hexdigest()
                names.append(name)
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

    def read(self, name: str) -> bytes:
        """Return a part."""
        last, data = self._last
        return data if name == last else self._path(name).read_bytes()[:-CHECK]

    def _write(self, name: str, data: bytes) -> None:
        with whole_file(self._path(name), durable=False) as file:  # _is_whole finds what a power failure cuts
            file.write(data)
            file.write(_check(data))
        self._last = name, data

    def _is_whole(self, name: str) -> bool:
        """Whether there is a part, as it was written: after a power failure its end may be missing."""
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
    """Return the folder of the parts of an output, and where it is written until it is whole."""
    return output.with_name(f'{output.name}.parts'), output.with_name(f'{output.name}{WRITING}')


def _remove(path: Path) -> None:
    """Remove a file or a folder, if there is one."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _check(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(CHECK, 'little')


def packed(batch: pa.RecordBatch) -> bytes:
    """Return a batch in Arrow's IPC format."""
    counted = pa.MockOutputStream()  # a buffer that grows is copied again and again
    _stream(batch, counted)
    buffer = pa.allocate_buffer(counted.size())
    _stream(batch, pa.FixedSizeBufferWriter(buffer))
    return buffer.to_pybytes()


def _stream(batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)


def unpacked(data: bytes) -> pa.RecordBatch:
    """Return what packed has packed."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()


Write = Callable[[pa.RecordBatch], None]


@contextmanager
def table_writer(path: Path, columns: pa.Schema, **parquet: Any) -> Iterator[Write]:
    """Give a function that appends batches to a new file of the kind of its suffix, before WRITING.

    parquet: options of ParquetWriter. In a CSV file text that a spreadsheet would execute begins with an
    apostrophe. Raises OSError.
    """
    suffix = Path(path.name.removesuffix(WRITING)).suffix.lower()
    if suffix not in ('.csv', '.arrow', '.feather'):
        with pq.ParquetWriter(path, columns, **parquet) as writer:
            yield writer.write_batch
        return
    names = [_neutral(name) if suffix == '.csv' else name for name in columns.names]
    plain = pa.schema(list(zip(names, map(_plain, columns.types), strict=True)))
    make = pyarrow.csv.CSVWriter if suffix == '.csv' else pa.ipc.new_file
    with make(path, plain) as writer:

        def write(batch: pa.RecordBatch) -> None:
            cells = [column.cast(kind) for column, kind in zip(batch.columns, plain.types, strict=True)]
            if suffix == '.csv':
                cells = [_neutral_column(column) for column in cells]
            writer.write_batch(pa.RecordBatch.from_arrays(cells, schema=plain))

        yield write


def check_csv(columns: pa.Schema) -> None:
    """Raise InputError for columns that a CSV file cannot hold."""
    for column in columns:
        if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
            raise InputError(
                f'column {quoted(column.name)} holds {column.type}, which a .csv cannot: name the output '
                '.parquet'
            )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _neutral(name: str) -> str:
    return f"'{name}" if FORMULA.match(name) else name


def _neutral_column(column: pa.Array) -> pa.Array:
    """Return a column with apostrophes before what a spreadsheet takes as a formula; numbers stay."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    formula = pc.match_substring_regex(column, FORMULA.pattern)
    live = pc.and_not(formula, pc.match_substring_regex(column, NUMBER.pattern))
    return pc.if_else(live, pc.binary_join_element_wise("'", column, ''), column)
