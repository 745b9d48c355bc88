# SPDX-License-Identifier: Apache-2.0
"""EpisodeTable: a file of goals with a column that tells episodes apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from ik_node.batch.episodes import FOUND
from ik_node.batch.goal_files import GoalFile
from ik_node.batch.table_files import check_csv, table_writer
from ik_node.errors import InputError, join_names, quoted
from ik_node.model.arm import Arm

ROWS = 50_000  # read and written at once


class EpisodeTable:
    """A file of goals whose rows of one episode follow each other, in the order of their frames.

    names: of its columns. count: of the episodes, which is not known before all is read.
    """

    count = None

    def __init__(self, file: GoalFile, episode: str) -> None:
        """episode: a column of names or numbers. Raises InputError if there is none."""
        if episode not in file.names:
            raise InputError(f'no column {quoted(episode)}; the columns are {join_names(file.names)}')
        if twice := [name for name in file.names if list(file.names).count(name) > 1]:
            raise InputError(f'two columns have the name {quoted(twice[0])}')
        self._file, self._episode = file, episode
        self.names: list[str] = list(file.names)
        self.others: dict[str, list[str]] = {}  # a table has no other features

    def episodes(self, columns: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Return each episode with some columns of its frames.

        Raises InputError for a damaged file, a row without an episode, and an episode that begins again.
        """
        current, held = '', list[pa.RecordBatch]()
        row, seen = 0, set[str]()
        for batch in self._file.batches(list(dict.fromkeys([*columns, self._episode])), ROWS):
            start = 0
            for name, group in groupby(batch.column(self._episode).to_pylist(), _name):
                if not name:
                    raise InputError(f'row {row + start} of "{self._file.path}" has no {self._episode}')
                if name != current:
                    if held:
                        yield current, pa.concat_batches(held)
                    if name in seen:
                        raise InputError(
                            f'{self._episode} {name} begins again in row {row + start} of '
                            f'"{self._file.path}": the rows of an episode must follow each other'
                        )
                    seen.add(name)
                    current, held = name, []
                count = sum(1 for _ in group)
                held.append(batch.slice(start, count).select(columns))
                start += count
            row += batch.num_rows
        if held:
            yield current, pa.concat_batches(held)

    def written(self, arm: Arm, replaced: Sequence[str]) -> list[str]:
        """Return the columns that write gives the table: those not replaced, then what was found.

        Raises InputError if there would be two of one name.
        """
        kept, found = self._kept(replaced), [*arm.joint_names, *FOUND]
        if twice := [name for name in kept if name in found]:
            raise InputError(f'the output has a column {quoted(twice[0])} too: rename that of the input')
        return kept + found

    def _kept(self, replaced: Sequence[str]) -> list[str]:
        return [name for name in self.names if name not in replaced]

    def check_csv(self, replaced: Sequence[str]) -> None:
        """Raise InputError for columns that stay and that a CSV file cannot hold."""
        for batch in self._file.batches(self._kept(replaced), 1):
            check_csv(batch.schema)
            return

    def write(
        self, output: Path, arm: Arm, replaced: Sequence[str], found: Callable[[str], pa.RecordBatch]
    ) -> None:
        """Write by table_writer the columns that are not replaced, and what was found of each episode.

        Raises InputError for a file without rows, and for one that has changed since it was solved.
        """
        rows = self._joined(self._kept(replaced), [*arm.joint_names, *FOUND], found)
        first = next(rows, None)
        if first is None:
            raise InputError(f'"{self._file.path}" has no rows')
        with table_writer(output, first.schema, compression='zstd') as write:
            held = [first]
            for batch in rows:
                if sum(one.num_rows for one in held) >= ROWS:
                    write(pa.concat_batches(held))
                    held = []
                held.append(batch)
            write(pa.concat_batches(held))

    def _joined(
        self, kept: Sequence[str], wanted: Sequence[str], found: Callable[[str], pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for name, before in self.episodes(kept):
            try:
                frames = found(name)
                arrays = [*before.columns, *(frames.column(one) for one in wanted)]
                yield pa.RecordBatch.from_arrays(arrays, [*kept, *wanted])
            except (KeyError, pa.ArrowInvalid):
                raise InputError(f'"{self._file.path}" has changed while it was read') from None


def _name(episode: Any) -> str:
    """Return the name of an episode, empty without one; arrays of NumPy have whole numbers as floats."""
    if episode is None or episode != episode:
        return ''
    return f'{episode:.15g}' if isinstance(episode, float) else str(episode)
