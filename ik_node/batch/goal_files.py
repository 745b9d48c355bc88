# SPDX-License-Identifier: Apache-2.0
"""Files of goals as streams of Arrow record batches: Parquet, CSV, Arrow and NPZ, larger than memory too."""

from __future__ import annotations

import csv
import io
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq

from ik_node.errors import InputError

BLOCK = 1 << 22  # [bytes] of a CSV file that are parsed at once
SUFFIXES = {
    '.parquet': 'parquet',
    '.arrow': 'ipc',
    '.feather': 'ipc',
    '.ipc': 'ipc',
}  # those of pyarrow.dataset
KINDS = ', '.join([*SUFFIXES, '.csv', '.npz'])


@dataclass(frozen=True)
class GoalFile:
    """A file of goals.

    names: of its columns. rows: how many, None if that would mean reading the file. read: columns, and rows
    at once, to batches in the order of the file.
    """

    path: Path
    names: Sequence[str]
    rows: int | None
    read: Callable[[Sequence[str], int], Iterator[pa.RecordBatch]]

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Return batches of size rows, the last may have fewer. Raises InputError for a damaged file."""
        held: list[pa.RecordBatch] = []
        count = 0
        for batch in self._read(columns, size):
            while batch.num_rows:
                part = batch.slice(0, size - count)
                batch = batch.slice(part.num_rows)
                held.append(part)
                count += part.num_rows
                if count == size:
                    yield _joined(held)
                    held, count = [], 0
        if held:
            yield _joined(held)

    def _read(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.read(columns, size)
        except (pa.ArrowException, OSError, zipfile.BadZipFile, ValueError) as error:
            raise _damaged(self.path, error) from None


def open_goals(path: str | os.PathLike[str]) -> GoalFile:
    """Open a file of goals, or a folder of Parquet files. Raises InputError for what cannot be read."""
    file = Path(path)
    kind = 'parquet' if file.is_dir() else SUFFIXES.get(file.suffix.lower())
    openers = {'.csv': _open_csv, '.npz': _open_npz}
    if kind is None and file.suffix.lower() not in openers:
        raise InputError(f'"{file}" must be one of {KINDS}, or a folder of Parquet files')
    try:
        return _open_dataset(file, kind) if kind else openers[file.suffix.lower()](file)
    except (pa.ArrowException, OSError, zipfile.BadZipFile, ValueError) as error:
        raise _damaged(file, error) from None


def _damaged(path: Path, error: Exception) -> InputError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition('\n')[0]
    return InputError(f'cannot read "{path}": {why}')


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _open_dataset(path: Path, kind: str) -> GoalFile:
    files = pyarrow.dataset.dataset(path, format=kind)

    def read(columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        if kind == 'parquet':  # with pre_buffer, as in a scanner, all that was read stays in memory
            for name in files.files:
                with pq.ParquetFile(name, pre_buffer=False) as file:
                    yield from file.iter_batches(size, columns=list(columns), use_threads=False)
        else:
            yield from files.scanner(columns=list(columns), batch_size=size, batch_readahead=2).to_batches()

    return GoalFile(path, files.schema.names, files.count_rows(), read)


def _open_csv(path: Path) -> GoalFile:
    with path.open('rb') as file:
        first = file.readline()
    names = next(csv.reader([first.decode('utf-8-sig')]), [])
    if not names:
        raise ValueError('it is empty: a CSV file of goals begins with a line that names its columns')

    def read(columns: Sequence[str], _: int) -> Iterator[pa.RecordBatch]:
        with path.open('rb') as file:
            file.seek(len(first))
            rest = b''
            while block := file.read(BLOCK):
                lines, newline, rest = (rest + block).rpartition(b'\n')
                if newline:
                    yield _csv_batch(lines + newline, names, columns)
            if rest.strip():
                yield _csv_batch(rest, names, columns)

    return GoalFile(path, names, None, read)


def _csv_batch(lines: bytes, names: Sequence[str], columns: Sequence[str]) -> pa.RecordBatch:
    """Return the columns of whole lines as text, null where a line ends too early."""
    options = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=list(columns),
        strings_can_be_null=True,
    )
    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(lines),
            pyarrow.csv.ReadOptions(column_names=list(names), use_threads=False, block_size=2 * BLOCK),
            pyarrow.csv.ParseOptions(ignore_empty_lines=False),
            options,
        )
        if len(table):
            return table.combine_chunks().to_batches()[0]
    except pa.ArrowInvalid:
        pass  # a line with too few or too many cells: those of this block one by one
    cells: dict[str, list[str | None]] = {name: [] for name in columns}
    for row in csv.reader(io.StringIO(lines.decode('utf-8', 'replace'))):
        found = dict(zip(names, row, strict=False)) if len(row) == len(names) else {}
        for name in columns:
            cells[name].append(found.get(name) or None)
    return pa.RecordBatch.from_pydict({name: pa.array(cells[name], pa.string()) for name in columns})


def _open_npz(path: Path) -> GoalFile:
    """Arrays (N,) are columns of numbers, arrays (N, k) columns of lists."""
    shapes = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                shapes[name.removesuffix('.npy')] = _array_header(member)
    counts = {shape[0] for shape, _, _ in shapes.values() if shape}
    if len(counts) != 1:
        given = ', '.join(f'{name} {shape}' for name, (shape, _, _) in shapes.items())
        raise ValueError(f'its arrays must have one length, got {given}')
    rows = counts.pop()

    def read(columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.open(f'{name}.npy') for name in columns}
            headers = {name: _array_header(member) for name, member in members.items()}
            for start in range(0, rows, size):
                count = min(size, rows - start)
                yield pa.RecordBatch.from_pydict(
                    {name: _array_part(members[name], *headers[name], count) for name in columns}
                )

    return GoalFile(path, [name for name, (shape, _, _) in shapes.items() if shape], rows, read)


def _array_header(member: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of an array, and leave member at its first number."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, kind = read(member)
    if len(shape) > 2 or (fortran and len(shape) == 2) or kind.hasobject:
        raise ValueError(
            f'an array must have shape (N,) or (N, k), in C order, and numbers, got {shape} {kind}'
        )
    return shape, fortran, kind


def _array_part(member: Any, shape: tuple[int, ...], _: bool, kind: np.dtype[Any], count: int) -> pa.Array:
    width = math.prod(shape[1:])
    data = member.read(count * width * kind.itemsize)
    if len(data) < count * width * kind.itemsize:
        raise ValueError('it ends in the middle of an array')
    values = pa.array(np.frombuffer(data, kind).astype(np.float64))
    return values if len(shape) == 1 else pa.FixedSizeListArray.from_arrays(values, width)
