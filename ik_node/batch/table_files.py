# SPDX-License-Identifier: Apache-2.0
"""Tables that programs write: Parquet, CSV and Arrow, by the suffix of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from ik_node.batch.parts import WRITING
from ik_node.console import FORMULA, NUMBER
from ik_node.errors import InputError, quoted

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
