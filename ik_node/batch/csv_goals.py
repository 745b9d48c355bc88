# SPDX-License-Identifier: Apache-2.0
"""CSV files as streams of record batches of text."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ik_node.batch.opened import Opened

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


def open_csv(path: Path) -> Opened:
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
    return Opened(names, round(lines * size / len(block)) if block else 0, [str(path)], read, counted=False)


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
