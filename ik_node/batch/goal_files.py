# SPDX-License-Identifier: Apache-2.0
"""Files of goals as streams of Arrow record batches: Parquet, CSV, Arrow and NPZ, larger than memory too."""

from __future__ import annotations

import csv
import os
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from ik_node.batch.csv_goals import open_csv
from ik_node.batch.npz_goals import open_npz
from ik_node.batch.opened import Opened
from ik_node.batch.unchanged import Unchanged
from ik_node.errors import InputError, path_text, quoted

SUFFIXES = {
    '.parquet': 'parquet',
    '.arrow': 'ipc',
    '.feather': 'ipc',
    '.ipc': 'ipc',
}  # those of pyarrow.dataset
KINDS = ', '.join([*SUFFIXES, '.csv', '.tsv', '.txt', '.npz'])
SPREADSHEETS = ('.xlsx', '.xls', '.ods', '.numbers')
DAMAGED = (
    *(pa.ArrowException, OSError, ValueError, EOFError, csv.Error),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),  # of NPZ files
)


class GoalFile:
    """A file of goals, or a folder of Parquet files: see open_goals.

    path, names: of its columns. rows: how many. counted: whether that is exact. check: raises InputError if
    the file has changed since it was opened.
    """

    def __init__(self, path: Path, opened: Opened) -> None:
        """Raises OSError."""
        self.path, self._opened = path, opened
        self.names: Sequence[str] = opened.names
        self.rows, self.counted = opened.rows, opened.counted
        self.check = Unchanged(path, opened.files).check

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Return some columns, in batches of size rows, the last may have fewer.

        Raises InputError for a damaged file, and for one that has changed since it was opened.
        """
        try:
            yield from _regrouped(self._opened.read(columns, size), size)
        except InputError:
            raise
        except DAMAGED as error:
            raise _damaged(self.path, error) from None
        self.check()


def open_goals(path: str | os.PathLike[str]) -> GoalFile:
    """Open a file of goals, or a folder of Parquet files. Raises InputError for what cannot be read."""
    file = Path(path)
    suffix = file.suffix.lower()
    kind = 'parquet' if file.is_dir() else SUFFIXES.get(suffix)
    openers = {'.csv': open_csv, '.tsv': open_csv, '.txt': open_csv, '.npz': open_npz}
    if kind is None and suffix not in openers:
        remedy = '; save the table as CSV (UTF-8)' if suffix in SPREADSHEETS else ''
        raise InputError(f'"{path_text(file)}" must be one of {KINDS}, or a folder of Parquet files{remedy}')
    try:
        return GoalFile(file, _open_dataset(file, kind) if kind else openers[suffix](file))
    except InputError:
        raise
    except DAMAGED as error:
        raise _damaged(file, error) from None


def _damaged(path: Path, error: Exception) -> InputError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition('\n')[0]
    return InputError(f'cannot read "{path_text(path)}": {why}')


def _regrouped(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    count = 0
    for given in batches:
        batch = given
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


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _open_dataset(path: Path, kind: str) -> Opened:
    try:
        files = pyarrow.dataset.dataset(path, format=kind)
    except pa.ArrowInvalid:
        if kind == 'parquet':
            raise
        raise ValueError(
            'it is not an Arrow file: write it with pyarrow.ipc.new_file, not new_stream'
        ) from None
    types = _types(files)

    def read(columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        if kind != 'parquet':
            yield from files.scanner(columns=list(columns), batch_size=size, batch_readahead=2).to_batches()
            return
        wanted = pa.schema([types.field(name) for name in columns])
        for name in files.files:
            # With pre_buffer, as in a scanner, all that was read stays in memory.
            with pq.ParquetFile(name, pre_buffer=False) as file:
                if absent := [one for one in columns if one not in file.schema_arrow.names]:
                    raise InputError(f'"{path_text(name)}" has no column {quoted(absent[0])}')
                for batch in file.iter_batches(size, columns=list(columns), use_threads=False):
                    cells = [batch.column(one.name).cast(one.type) for one in wanted]
                    yield pa.RecordBatch.from_arrays(cells, schema=wanted)

    return Opened(types.names, files.count_rows(), files.files, read)


def _types(files: pyarrow.dataset.Dataset) -> pa.Schema:
    """Return the columns of all files, with types that hold the values of each. Raises InputError."""
    types = files.schema
    for fragment in files.get_fragments():
        try:
            types = pa.unify_schemas([types, fragment.physical_schema], promote_options='permissive')
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            why = str(error).partition('\n')[0]
            raise InputError(f'"{path_text(fragment.path)}" does not match the others: {why}') from None
    return types.remove_metadata()
