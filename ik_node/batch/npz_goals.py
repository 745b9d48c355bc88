# SPDX-License-Identifier: Apache-2.0
"""NPZ files as streams of record batches: arrays (N,) are columns, arrays (N, k) columns of lists."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ik_node.batch.opened import Opened

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


def open_npz(path: Path) -> Opened:
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

    return Opened([name for name, header in headers.items() if header.shape], rows, [str(path)], read)


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
