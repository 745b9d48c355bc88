# SPDX-License-Identifier: Apache-2.0
"""CSV files as streams of record batches of text."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from ik_node.batch.opened import Opened

BLOCK = 1 << 22  # [bytes] that are parsed at once
LONGEST = 16 * BLOCK  # [bytes] of a row
# A quote in the middle of a cell is a character like others.
QUOTED = re.compile(rb'(?<![^,\r\n])"(?:[^"]+|"")*(?:"|\Z)')


def open_csv(path: Path) -> Opened:
    """Raises ValueError, OSError, csv.Error."""
    with path.open('rb') as file:
        first = file.readline()
        block = file.read(BLOCK)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError('it is UTF-16: save it as UTF-8')
    if b'\r' in first.rstrip(b'\r\n'):
        raise ValueError('its lines end with CR only: save it with LF or CRLF line endings')
    names = next(csv.reader([first.decode('utf-8-sig')]), [])
    if not names:
        raise ValueError('it is empty: a CSV file of goals begins with a line that names its columns')

    def read(columns: Sequence[str], _: int) -> Iterator[pa.RecordBatch]:
        with path.open('rb') as file:
            file.seek(len(first))
            rest = b''
            while block := file.read(BLOCK):
                lines, rest = _whole_lines(rest + block)
                if lines:
                    yield _batch(lines, names, columns)
                if len(rest) > LONGEST:
                    raise ValueError(f'a row, or what is in quotes, is longer than {LONGEST} bytes')
            if rest.strip():
                yield _batch(rest.rstrip(b'\r\n'), names, columns)

    lines = block.count(b'\n')
    size = path.stat().st_size - len(first)
    return Opened(names, round(lines * size / len(block)) if block else 0, [str(path)], read, counted=False)


def _whole_lines(data: bytes) -> tuple[bytes, bytes]:
    """Return the whole lines of data, and the rest: what belongs to a row that is not yet whole.

    Blank lines at the end belong to the rest: at the end of a file they are not rows.
    """
    cells = [cell.span() for cell in QUOTED.finditer(data)] if b'"' in data else []
    end = data.rfind(b'\n') + 1
    while cells and end:
        start, stop = cells.pop()
        if start < end <= stop:
            end = data.rfind(b'\n', 0, start) + 1
    content = len(data[:end].rstrip(b'\r\n'))
    end = data.find(b'\n', content, end) + 1 if content else 0
    return data[:end], data[end:]


def _batch(lines: bytes, names: Sequence[str], columns: Sequence[str]) -> pa.RecordBatch:
    """Return the columns of whole lines as text, null where a line ends too early or has too many cells."""
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
            pyarrow.csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True),
            options,
        )
        if len(table):
            return table.combine_chunks().to_batches()[0]
    except pa.ArrowInvalid:
        pass  # a line with too few or too many cells: those of this block one by one
    cells: dict[str, list[str | None]] = {name: [] for name in columns}
    for row in csv.reader(io.StringIO(lines.decode('utf-8', 'replace'), newline='')):
        whole = len(row) >= len(names) and not any(row[len(names) :])  # spreadsheets add empty cells
        found = dict(zip(names, row, strict=False)) if whole else {}
        for name in columns:
            cells[name].append(found.get(name) or None)
    return pa.RecordBatch.from_pydict({name: pa.array(cells[name], pa.string()) for name in columns})
