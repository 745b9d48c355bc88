# SPDX-License-Identifier: Apache-2.0
"""solve_table: an Arrow table of goals -> an Arrow table of solutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ik_node.checks import Array
from ik_node.solver.goal import BatchSolution, Cause, Goal, Solution, Status
from ik_node.solver.solver import IkSolver
from ik_node.solver.spare_roll import spare_roll

from .checkpoints import Checkpoints, packed, unpacked
from .goal_columns import GoalColumns, GoalRows, read_rows
from .goal_files import GoalFile, table_writer
from .workers import Workers, task_key

INVALID = 'invalid'  # the status of a row that holds no goal
STATUSES = (*(status.value for status in Status), INVALID)
REASONS = (*(cause.name.lower() for cause in Cause), INVALID)  # codes, see docs/reference/reasons.md


def schema(solver: IkSolver, count: bool = False) -> pa.Schema:
    """Return the columns of the result: the joints [rad or m], then what was found."""
    text = pa.dictionary(pa.int8(), pa.string())
    fields = [
        *((name, pa.float64()) for name in solver.arm.joint_names),
        ('status', text),
        ('position_error', pa.float64()),  # [m]
        ('direction_error', pa.float64()),  # [rad], null where no direction was asked for
        ('reason', text),
        ('reason_text', pa.string()),
        *([('solutions', pa.int32()), ('complete', pa.bool_())] if count else []),
    ]
    return pa.schema(fields)


def solve_table(
    solver: IkSolver,
    goals: pa.Table | pa.RecordBatch,
    count: bool = False,
    workers: int | None = None,
    **columns: Any,
) -> pa.Table:
    """Solve a table of goals as IkSolver.solve_batch does; return a row for each, in their order.

    columns: fields of GoalColumns; not needed for the default names. The result has a column for each joint
    [rad or m], status (solved, unreachable, not found, invalid), position_error [m], direction_error [rad]
    (null without directions), reason (a code) and reason_text; with count also the number of solutions, and
    whether it is complete. A row that holds no goal is invalid, its joints null. workers: threads, None: one
    per core. Raises InputError for columns that are missing or hold no numbers.
    """
    found = GoalColumns.found(goals.schema.names, columns)
    rows = goals.select(found.names).combine_chunks()
    parts = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
    solved = [solve_rows(solver, part, found, count, workers) for part in parts]
    return pa.Table.from_batches(solved, schema(solver, count))


def solve_rows(
    solver: IkSolver, batch: pa.RecordBatch, columns: GoalColumns, count: bool, workers: int | None = 1
) -> pa.RecordBatch:
    """Return the solutions of a batch. Raises InputError."""
    rows = read_rows(batch, columns, solver.arm)
    found = solver.solve_batch(rows.positions, rows.directions, rows.seeds, workers)
    status = np.zeros(len(found.status), np.int8)  # solved
    for row in (~found.solved).nonzero()[0]:  # few, and each has taken far longer than this
        status[row] = STATUSES.index(found.status[row].value)
    texts = {row: (list(Cause).index(reason.cause), str(reason)) for row, reason in found.reasons.items()}
    texts |= {row: (len(REASONS) - 1, sentence) for row, sentence in rows.wrong.items()}
    codes = np.full(len(status), -1, np.int8)
    codes[list(texts)] = [code for code, _ in texts.values()]
    q, errors = found.q, (found.position_error, found.direction_error)
    valid = np.ones(len(status), np.bool_)
    valid[list(rows.wrong)] = False
    status[~valid] = STATUSES.index(INVALID)
    if rows.laterals is not None and spare_roll(solver.arm) >= 0:
        q, errors = _with_rolls(solver, rows, found, valid)
    mask = None if valid.all() else ~valid
    arrays = [pa.array(column, mask=mask) for column in (*q.T, *errors)]
    if rows.directions is None:  # an error of zero would be read as a direction that is met
        arrays[-1] = pa.nulls(len(status), pa.float64())
    return pa.RecordBatch.from_arrays(
        [
            *arrays[:-2],
            _coded(status, STATUSES),
            *arrays[-2:],
            _coded(codes, REASONS),
            pa.array([texts[row][1] if row in texts else None for row in range(len(status))], pa.string())
            if texts
            else pa.nulls(len(status), pa.string()),
            *(_counted(solver, rows, valid) if count else ()),
        ],
        schema=schema(solver, count),
    )


def _with_rolls(
    solver: IkSolver, rows: GoalRows, found: BatchSolution, valid: Any
) -> tuple[Array, tuple[Array, Array]]:
    """Return q, position and direction errors with spare rolls turned towards the lateral axes."""
    assert rows.directions is not None
    assert rows.laterals is not None
    q, errors = found.q.copy(), np.column_stack([found.position_error, found.direction_error])
    for row in valid.nonzero()[0]:
        seed = solver.arm.middle if rows.seeds is None else rows.seeds[row]
        goal = Goal(rows.positions[row], rows.directions[row], rows.laterals[row])
        one = Solution(found.status[row], found.q[row], *errors[row])
        one = solver.align_lateral(goal, seed, one)
        q[row], errors[row] = one.q, (one.position_error, one.direction_error)
    return q, (errors[:, 0], errors[:, 1])


def _counted(solver: IkSolver, rows: GoalRows, valid: Any) -> tuple[pa.Array, pa.Array]:
    """Return the numbers of solutions, and whether they are complete."""
    counts, complete = np.zeros(len(valid), np.int32), np.zeros(len(valid), np.bool_)
    for row in valid.nonzero()[0]:
        direction = None if rows.directions is None else rows.directions[row]
        goal, seed = Goal(rows.positions[row], direction), None if rows.seeds is None else rows.seeds[row]
        # A budget of time would make the result depend on how busy the computer is.
        every = solver.solve_all(goal, seed, time_budget=math.inf)
        counts[row], complete[row] = len(every), every.complete
    return pa.array(counts, mask=~valid), pa.array(complete, mask=~valid)


def _coded(codes: Any, words: tuple[str, ...]) -> pa.DictionaryArray:
    """Return words by code, null for -1."""
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(words))


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
    worst: dict[str, list[tuple[int, float, str]]] = field(default_factory=lambda: {name: [] for name in STATUSES})

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
        self.parts = Checkpoints(output, task_key(task))

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
