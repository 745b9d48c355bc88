# SPDX-License-Identifier: Apache-2.0
"""Opened: what is known of a file of goals once it is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

Read = Callable[[Sequence[str], int], Iterator[pa.RecordBatch]]


class Opened(NamedTuple):
    """names: of the columns. rows: how many; counted: whether that is exact. files: all that is read.

    read: columns, and rows at once, to batches in the order of the file, of any sizes.
    """

    names: Sequence[str]
    rows: int
    files: Sequence[str]
    read: Read
    counted: bool = True
