# SPDX-License-Identifier: Apache-2.0
"""Tables as Markdown that also reads well on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
from oracles.chain import Array


def heading(title: str, text: str = '') -> None:
    """Print a heading and what the table below it shows."""
    print(f'\n## {title}\n', flush=True)
    if text:
        print(textwrap.fill(' '.join(text.split()), 100), end='\n\n', flush=True)


class Table:
    """Prints each row at once. Columns whose title ends in two blanks are texts, to the left."""

    def __init__(self, *columns: str) -> None:
        self.texts = [column.endswith('  ') for column in columns]
        self.widths = [max(len(column), 8) for column in columns]
        self.line(columns)
        rules = zip(self.texts, self.widths, strict=True)
        self.line(['-' * width if text else '-' * (width - 1) + ':' for text, width in rules])

    def row(self, *cells: object) -> None:
        """Print a row; missing cells at its end are empty."""
        self.line([*map(str, cells), *[''] * (len(self.widths) - len(cells))])

    def line(self, cells: Sequence[str]) -> None:
        """Print one line."""
        padded = [
            cell.ljust(width) if text else cell.rjust(width)
            for cell, text, width in zip(cells, self.texts, self.widths, strict=True)
        ]
        print(f'| {" | ".join(padded)} |', flush=True)


def microseconds(times: Array) -> list[str]:
    """Return median, mean and p99 of times [s] in microseconds."""
    return [f'{1e6 * value:.1f}' for value in (np.median(times), times.mean(), np.percentile(times, 99))]


def percent(flags: Array) -> str:
    """Return the share of True; 100 % only if it is all of them."""
    share = 100.0 * np.count_nonzero(flags) / len(flags)
    return f'{share:.1f} %' if share in (0.0, 100.0) else f'{min(max(share, 0.01), 99.99):.2f} %'


def times_as_fast(theirs: float, ours: float) -> str:
    """Return how many times as long the other takes."""
    return f'{theirs / ours:.1f} x'
