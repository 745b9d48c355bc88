# SPDX-License-Identifier: Apache-2.0
"""Job: a file of goals to a file of joints, in chunks; what is done is kept and found again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from ik_node.batch.goal_columns import GoalColumns
from ik_node.batch.goal_files import GoalFile
from ik_node.batch.parts import Parts, packed, unpacked
from ik_node.batch.solve_table import STATUSES, schema, solve_rows
from ik_node.batch.table_files import table_writer
from ik_node.batch.task_key import task_key
from ik_node.batch.workers import Workers
from ik_node.solver.solver import IkSolver

CHUNK = 50_000  # rows
WORST = 5  # rows of each status in the summary


@dataclass(frozen=True)
class Task:
    """What is done with each chunk of goals: all that its result depends on."""

    solver: IkSolver
    columns: GoalColumns
    count: bool

    def answer(self, chunk: bytes) -> bytes:
        """Return a batch of solutions for a batch of goals, both in Arrow's IPC format."""
        return packed(solve_rows(self.solver, unpacked(chunk), self.columns, self.count))


@dataclass
class Summary:
    """How many rows have each status, and which are the worst: (row, position error [m], reason)."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATUSES, 0))
    worst: dict[str, list[tuple[int, float, str]]] = field(
        default_factory=lambda: {name: [] for name in STATUSES}
    )

    def add(self, first: int, batch: pa.RecordBatch) -> None:
        """Add a batch whose first row is that number."""
        for one in batch.column('status').value_counts().to_pylist():
            self.counts[one['values']] += one['counts']
        if self.counts['solved'] == first + batch.num_rows:
            return
        words = batch.column('status').to_pylist()
        errors = batch.column('position_error').to_pylist()
        texts = batch.column('reason_text')
        for row, status in enumerate(words):
            if status != 'solved':
                worst = self.worst[status]
                error = errors[row] or 0.0
                if len(worst) < WORST or error > worst[-1][1]:
                    worst.append((first + row, error, texts[row].as_py()))
                    worst.sort(key=lambda one: (-one[1], one[0]))
                    del worst[WORST:]


class Job:
    """Solves the goals of a file.

    parts: what is done, beside the output until that is whole.
    """

    def __init__(self, task: Task, goals: GoalFile, output: Path) -> None:
        self._task, self._goals = task, goals
        self.parts = Parts(output, task_key(task.solver, task.columns, task.count))

    def run(self, workers: Workers, done: Callable[[int], None]) -> Summary:
        """Write the output; done: called with the numbers of rows that are done. Raises IkError.

        Whatever ends it, a job of the same task, goals and output continues where this one was.
        """
        batches = self._goals.batches(self._task.columns.names, CHUNK)
        chunks = ((packed(batch), batch.num_rows) for batch in batches)
        summary = Summary()
        with self.parts.writing() as temporary:
            self._join(self.parts.fill(workers, chunks, done), temporary, summary)
            self._goals.check()
        return summary

    def _join(self, names: Iterator[str], path: Path, summary: Summary) -> None:
        """Write the output from the parts, in the order of the goals, while later ones are solved."""
        first = 0
        columns = schema(self._task.solver, self._task.count)
        # Joints do not become smaller by it.
        words = [one.name for one in columns if one.type != pa.float64()]
        compression = {one.name: 'zstd' if one.name in words else 'none' for one in columns}
        options = {'compression': compression, 'use_dictionary': words, 'write_statistics': words}
        with table_writer(path, columns, write_batch_size=CHUNK, **options) as write:
            for name in names:
                batch = unpacked(self.parts.read(name))
                summary.add(first, batch)
                first += batch.num_rows
                write(batch)
