# SPDX-License-Identifier: Apache-2.0
"""Tables as streams of Arrow record batches: reads files of goals, larger than memory too; writes results."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

from ik_node.console import FORMULA, NUMBER
from ik_node.errors import InputError, path_text, quoted

Read = Callable[[Sequence[str], int], Iterator[pa.RecordBatch]]  # columns, rows at once


class InputFingerprint:
    """Files as they are when it is made."""

    def __init__(self, path: Path, files: Sequence[str | Path]) -> None:
        """path: as the user gave it. files: what is read of it. Raises OSError."""
        self._path, self._files = path, list(files)
        self._stamp = self._now()

    def check(self) -> None:
        """Raise InputError if a file has changed."""
        try:
            same = self._now() == self._stamp
        except OSError:
            same = False
        if not same:
            raise InputError(f'"{path_text(self._path)}" has changed during the run: is it still being written?')

    def _now(self) -> list[tuple[int, int, int]]:
        stats = [Path(file).stat() for file in self._files]
        return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in stats]


class GoalFile:
    """A file of goals, or a folder of Parquet files: see open_goals.

    path, names: of its columns. rows: how many; exact: whether that is no estimate. check: raises InputError
    if the file has changed since it was opened.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        rows: int,
        read: Read,
        files: Sequence[str] = (),
        *,
        exact: bool = True,
    ) -> None:
        """read: yields batches of any size, in the order of the rows. files: that are read, () for path.

        Raises OSError.
        """
        self.path, self.names, self.rows, self.exact = path, names, rows, exact
        self._read = read
        self.check = InputFingerprint(path, files or [path]).check

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """Yield some columns, in batches of size rows, the last may have fewer.

        Raises InputError for a damaged file, and for one that has changed since it was opened.
        """
        with _reading(self.path):
            yield from _regrouped(self._read(columns, size), size)
        self.check()


def open_goals(path: str | os.PathLike[str]) -> GoalFile:
    """Open a file of goals, or a folder of Parquet files. Raises InputError for what cannot be read."""
    file = Path(path)
    opener = _open_dataset if file.is_dir() else OPENERS.get(file.suffix.lower())
    if opener is None:
        remedy = '; save the table as CSV (UTF-8)' if file.suffix.lower() in SPREADSHEETS else ''
        kinds = ', '.join(OPENERS)
        raise InputError(f'"{path_text(file)}" must be one of {kinds}, or a folder of Parquet files{remedy}')
    with _reading(file):
        return opener(file)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn the errors of libraries that read a damaged file into InputError."""
    try:
        yield
    except InputError:
        raise
    except DAMAGED as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition('\n')[0]
        raise InputError(f'cannot read "{path_text(path)}": {why}') from None


def _regrouped(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    pending = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        pending = table if pending is None else pa.concat_tables([pending, table])
        while len(pending) >= size:
            yield _joined(pending.slice(0, size))
            pending = pending.slice(size)
    if pending is not None and len(pending):
        yield _joined(pending)


def _joined(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


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


def _open_csv(path: Path) -> GoalFile:
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

    size = path.stat().st_size - begin
    rows = round(block.count(b'\n') * size / len(block)) if block else 0
    return GoalFile(path, names, rows, read, exact=False)


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
            pyarrow.csv.ParseOptions(delimiter=layout.separator, ignore_empty_lines=False, newlines_in_values=True),
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


def _open_npz(path: Path) -> GoalFile:
    shapes: dict[str, str] = {}
    columns: dict[str, pa.Array] = {}
    with np.load(path) as archive:
        for name in archive.files:
            try:
                array = archive[name]
            except ValueError as error:
                if 'allow_pickle' not in str(error):
                    raise
                shapes[name] = 'Python objects'
                continue
            if array.shape:
                shapes[name] = f'{array.shape} {array.dtype}'
            if array.ndim in (1, 2) and array.dtype.kind in ('biufUS' if array.ndim == 1 else 'biuf'):
                columns[name] = _arrow_column(array)
    if len({len(column) for column in columns.values()}) != 1:
        raise ValueError(f'its arrays must have one length, got {", ".join(map(" ".join, shapes.items()))}')
    table = pa.table(columns)

    def read(names: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        for name in names:
            if name not in columns:
                raise ValueError(
                    f'array {name} must have shape (N,) or (N, k) and hold real numbers, or with shape (N,) '
                    f'text, got {shapes[name]}'
                )
        yield from table.select(list(names)).to_batches(size)

    return GoalFile(path, list(shapes), len(table), read)


def _arrow_column(array: np.ndarray[Any, Any]) -> pa.Array:
    """Return an array (N,) of numbers or text, or (N, k) of numbers, as a column of Arrow."""
    if array.dtype.kind in 'US':
        text = np.char.decode(array, 'utf-8', 'replace') if array.dtype.kind == 'S' else array
        return pa.array(text.tolist(), pa.string())
    kind = np.dtype(np.float64) if array.dtype.kind == 'f' else array.dtype.newbyteorder('=')
    values = pa.array(array.astype(kind).ravel())
    return values if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(values, array.shape[1])


def _open_dataset(path: Path) -> GoalFile:
    kind = 'parquet' if path.is_dir() or path.suffix.lower() == '.parquet' else 'ipc'
    try:
        files = pyarrow.dataset.dataset(path, format=kind)
    except pa.ArrowInvalid:
        if kind == 'parquet':
            raise
        raise ValueError('it is not an Arrow file: write it with pyarrow.ipc.new_file, not new_stream') from None
    types = _types(files)

    def read(columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        if kind != 'parquet':
            yield from files.scanner(columns=list(columns), batch_size=size, batch_readahead=2).to_batches()
            return
        schema = pa.schema([types.field(name) for name in columns])
        for name in files.files:
            # A scanner, or pre_buffer, would read ahead of who asks, without a limit to the memory.
            with pyarrow.parquet.ParquetFile(name, pre_buffer=False) as file:
                if absent := [one for one in columns if one not in file.schema_arrow.names]:
                    raise InputError(f'"{path_text(name)}" has no column {quoted(absent[0])}')
                for batch in file.iter_batches(size, columns=list(columns), use_threads=False):
                    cells = [batch.column(one.name).cast(one.type) for one in schema]
                    yield pa.RecordBatch.from_arrays(cells, schema=schema)

    return GoalFile(path, types.names, files.count_rows(), read, files.files)


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


OPENERS = {
    **dict.fromkeys(('.parquet', '.arrow', '.feather', '.ipc'), _open_dataset),
    **dict.fromkeys(('.csv', '.tsv', '.txt'), _open_csv),
    '.npz': _open_npz,
}
SPREADSHEETS = ('.xlsx', '.xls', '.ods', '.numbers')
DAMAGED = (
    *(pa.ArrowException, OSError, ValueError, EOFError, csv.Error),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError),  # of NPZ files
)


WRITING = '.writing'  # suffix of an output that is not yet complete
Write = Callable[[pa.RecordBatch], None]


@contextmanager
def table_writer(path: Path, columns: pa.Schema, **parquet: Any) -> Iterator[Write]:
    """Give a function that appends batches to a new file of the kind of its suffix, before WRITING.

    parquet: options of ParquetWriter. In a CSV file text that a spreadsheet would execute begins with an
    apostrophe. Raises OSError.
    """
    suffix = Path(path.name.removesuffix(WRITING)).suffix.lower()
    if suffix not in ('.csv', '.arrow', '.feather'):
        with pyarrow.parquet.ParquetWriter(path, columns, **parquet) as writer:
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
                f'column {quoted(column.name)} holds {column.type}, which a .csv cannot: name the output .parquet'
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
