# SPDX-License-Identifier: Apache-2.0
"""Files of goals as streams of Arrow record batches: Parquet, CSV, Arrow and NPZ, larger than memory too."""

from __future__ import annotations

import codecs
import csv
import io
import math
import os
import re
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq

from ik_node.errors import InputError, path_text, quoted

Read = Callable[[Sequence[str], int], Iterator[pa.RecordBatch]]


class TableReader(NamedTuple):
    """names: of the columns. rows: how many; counted: whether that is exact. files: all that is read.

    read: columns, and rows at once, to batches in the order of the file, of any sizes.
    """

    names: Sequence[str]
    rows: int
    files: Sequence[str]
    read: Read
    counted: bool = True


class InputFingerprint:
    """Files as they are when it is made."""

    def __init__(self, given: Path, files: Sequence[str | Path]) -> None:
        """given: what a user has named. files: what is read of it. Raises OSError."""
        self._given, self._files = given, list(files)
        self._stamp = self._now()

    def check(self) -> None:
        """Raise InputError if a file has changed."""
        try:
            same = self._now() == self._stamp
        except OSError:
            same = False
        if not same:
            raise InputError(
                f'"{path_text(self._given)}" has changed during the run: is it still being written?'
            )

    def _now(self) -> list[tuple[int, int, int]]:
        """Return what changes with the files: a line that is not yet whole may look like a row."""
        found = [Path(file).stat() for file in self._files]
        return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]


BLOCK = 1 << 22  # [bytes] that are parsed at once
LONGEST = 16 * BLOCK  # [bytes] of a row
SEPARATORS = ',;\t|'
SEPARATOR_LINE = re.compile(rb'"?sep=(.)"?\s*')  # which Excel reads and hides
DECIMAL_COMMA = r'^\s*([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)\s*$'
DECIMAL_POINT = r'^\s*[+-]?[\d,]*\.\d+(?:[eE][+-]?\d+)?\s*$'


class Layout(NamedTuple):
    """names: of the columns, with one for each blank cell of the first line. separator: of the cells."""

    names: Sequence[str]
    separator: str

    @property
    def quoted(self) -> re.Pattern[bytes]:
        """A quoted cell; a quote in the middle of a cell is a character like others."""
        return re.compile(rb'(?<![^\r\n%s])"(?:[^"]+|"")*(?:"|\Z)' % re.escape(self.separator.encode()))


def open_csv(path: Path) -> TableReader:
    """Raises ValueError, OSError, csv.Error."""
    with path.open('rb') as file:
        if file.peek(2).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise ValueError('it is UTF-16: save it as UTF-8')
        layout = _layout(file)
        begin = file.tell()
        block = file.read(BLOCK)
    names = [name for name in layout.names if name]
    if not names:
        raise ValueError('it is empty: a CSV file of goals begins with a line that names its columns')
    row = block.partition(b'\n')[0].decode('utf-8', 'replace')
    first = next(csv.reader([row], delimiter=layout.separator), [])
    if layout.separator == ',' and len(first) == 2 * len(layout.names) and all(map(str.strip, first)):
        raise ValueError('rows have twice as many cells as the first line: decimal commas? Separate by ;')

    def read(columns: Sequence[str], _: int) -> Iterator[pa.RecordBatch]:
        with path.open('rb') as file:
            file.seek(begin)
            rest = b''
            while block := file.read(BLOCK):
                lines, rest = _whole_lines(rest + block, layout)
                if lines:
                    yield _batch(lines, layout, columns)
                if len(rest) > LONGEST:
                    raise ValueError(f'a row, or what is in quotes, is longer than {LONGEST} bytes')
            if rest := rest[: _content(rest, layout)]:
                yield _batch(rest, layout, columns)

    lines = block.count(b'\n')
    size = path.stat().st_size - begin
    return TableReader(
        names, round(lines * size / len(block)) if block else 0, [str(path)], read, counted=False
    )


def _layout(file: IO[bytes]) -> Layout:
    """Read the first line of a file, before which may be blank lines and one that names the separator."""
    given, line = '', b''
    for line in iter(lambda: file.readline(LONGEST), b''):
        # A quoted line end belongs to a name.
        while line.count(b'"') % 2 and len(line) < LONGEST and (more := file.readline(LONGEST)):
            line += more
        if b'\r' in line.replace(b'\r\n', b'').rstrip(b'\r'):
            raise ValueError('its lines end with CR only: save it with LF or CRLF line endings')
        line = line.removeprefix(codecs.BOM_UTF8)
        if match := SEPARATOR_LINE.fullmatch(line):
            given = match[1].decode('ascii', 'replace')
        elif line.strip(b'\r\n,;\t| '):
            break
    try:
        head = line.decode()
    except UnicodeDecodeError:
        raise ValueError('its first line is not UTF-8: save it as CSV UTF-8') from None

    def cells(separator: str) -> list[str]:
        return next(csv.reader(io.StringIO(head, newline=''), delimiter=separator, skipinitialspace=True), [])

    separator = given if given and given in SEPARATORS else max(SEPARATORS, key=lambda one: len(cells(one)))
    return Layout([' '.join(name.split()) for name in cells(separator)], separator)


def _content(data: bytes, layout: Layout) -> int:
    """Return the length of data without the lines at its end whose cells are all blank."""
    content = len(data.rstrip(b'\r\n ' + layout.separator.encode()))
    return (data.find(b'\n', content) + 1 or len(data)) if content else 0


def _whole_lines(data: bytes, layout: Layout) -> tuple[bytes, bytes]:
    """Return the whole lines of data, and the rest: what belongs to a row that is not yet whole.

    Blank lines at the end belong to the rest: at the end of a file they are not rows.
    """
    cells = [cell.span() for cell in layout.quoted.finditer(data)] if b'"' in data else []
    end = data.rfind(b'\n') + 1
    while cells and end:
        start, stop = cells.pop()
        if start < end <= stop:
            end = data.rfind(b'\n', 0, start) + 1
    end = _content(data[:end], layout)
    return data[:end], data[end:]


def _batch(lines: bytes, layout: Layout, columns: Sequence[str]) -> pa.RecordBatch:
    """Return the columns of whole lines as text, null where a line ends too early or has too many cells."""
    batch = _parsed(lines, layout, columns)
    if layout.separator == ',':
        return batch
    arrays = [_with_points(column, name) for name, column in zip(columns, batch.columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(columns))


def _with_points(column: pa.Array, name: str) -> pa.Array:
    """Return text in which numbers with a decimal comma have a point. Raises ValueError for a mixture."""
    if not pc.any(pc.match_substring_regex(column, DECIMAL_COMMA)).as_py():
        return column
    if pc.any(pc.match_substring_regex(column, DECIMAL_POINT)).as_py():
        raise ValueError(f'column {name} has numbers with commas and with points: write them like 1234.5')
    return pc.replace_substring_regex(column, DECIMAL_COMMA, r'\1.\2')


def _parsed(lines: bytes, layout: Layout, columns: Sequence[str]) -> pa.RecordBatch:
    names = [name or f' {place}' for place, name in enumerate(layout.names)]  # else blank ones would be one
    options = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        include_columns=list(columns),
        strings_can_be_null=True,
        null_values=[''],  # "NA" may be the name of an episode
    )
    try:
        table = pyarrow.csv.read_csv(
            io.BytesIO(lines),
            pyarrow.csv.ReadOptions(column_names=list(names), use_threads=False, block_size=len(lines) + 1),
            pyarrow.csv.ParseOptions(
                delimiter=layout.separator, ignore_empty_lines=False, newlines_in_values=True
            ),
            options,
        )
        if len(table):
            return table.combine_chunks().to_batches()[0]
    except pa.ArrowInvalid:
        pass  # a line with too few or too many cells: those of this block one by one
    cells: dict[str, list[str | None]] = {name: [] for name in columns}
    text = io.StringIO(lines.decode('utf-8', 'replace'), newline='')
    for row in csv.reader(text, delimiter=layout.separator):
        whole = len(row) >= len(names) and not any(row[len(names) :])  # spreadsheets add empty cells
        found = dict(zip(names, row, strict=False)) if whole else {}
        for name in columns:
            cells[name].append(found.get(name) or None)
    return pa.RecordBatch.from_pydict({name: pa.array(cells[name], pa.string()) for name in columns})


NUMBERS, WORDS = 'biuf', 'US'  # kinds of types in NumPy


class Header(NamedTuple):
    """Shape, order and type of an array."""

    shape: tuple[int, ...]
    fortran: bool
    kind: np.dtype[Any]

    @property
    def is_column(self) -> bool:
        """Whether it is read in parts, and holds what goals consist of."""
        width = len(self.shape)
        if width == 1:
            return self.kind.kind in NUMBERS + WORDS
        return width == 2 and not self.fortran and self.kind.kind in NUMBERS


def open_npz(path: Path) -> TableReader:
    """Raises ValueError, OSError, BadZipFile."""
    headers = {}
    with zipfile.ZipFile(path) as archive:
        files = {name.removesuffix('.npy'): name for name in archive.namelist()}
        for name, file in files.items():
            with archive.open(file) as member:
                headers[name] = _header(member)
    columns = {name: header for name, header in headers.items() if header.is_column}
    counts = {header.shape[0] for header in columns.values()}
    if len(counts) != 1:
        given = ', '.join(f'{name} {header.shape}' for name, header in headers.items())
        raise ValueError(f'its arrays must have one length, got {given}')
    rows = counts.pop()

    def read(wanted: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        for name in wanted:
            if name not in columns:
                shape, _, kind = headers[name]
                raise ValueError(
                    f'array {name} must have shape (N,) or (N, k), in C order, and real numbers or, with '
                    f'shape (N,), text, got {shape} {kind}'
                )
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.open(files[name]) for name in wanted}
            for member in members.values():
                _header(member)
            for start in range(0, rows, size):
                count = min(size, rows - start)
                yield pa.RecordBatch.from_pydict(
                    {name: _part(members[name], columns[name], count) for name in wanted}
                )

    return TableReader([name for name, header in headers.items() if header.shape], rows, [str(path)], read)


def _header(member: Any) -> Header:
    """Return the header of an array, and leave member at its first number."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return Header(*read(member))


def _part(member: Any, header: Header, count: int) -> pa.Array:
    """Return the next rows of an array."""
    size = count * math.prod(header.shape[1:]) * header.kind.itemsize
    data = member.read(size)
    if len(data) < size:
        raise ValueError('it ends in the middle of an array')
    given = np.frombuffer(data, header.kind)
    if header.kind.kind in WORDS:
        words = np.char.decode(given, 'utf-8', 'replace') if header.kind.kind == 'S' else given
        return pa.array(words.tolist(), pa.string())
    native = given.dtype.newbyteorder('=')
    values = pa.array(given.astype(np.float64 if header.kind.kind == 'f' else native))
    return values if len(header.shape) == 1 else pa.FixedSizeListArray.from_arrays(values, header.shape[1])


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

    def __init__(self, path: Path, opened: TableReader) -> None:
        """Raises OSError."""
        self.path, self._opened = path, opened
        self.names: Sequence[str] = opened.names
        self.rows, self.counted = opened.rows, opened.counted
        self.check = InputFingerprint(path, opened.files).check

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


def _open_dataset(path: Path, kind: str) -> TableReader:
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

    return TableReader(types.names, files.count_rows(), files.files, read)


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
