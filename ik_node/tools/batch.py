# SPDX-License-Identifier: Apache-2.0
"""ik_batch: a file of goals to a file of joints, on all cores or on a Dask cluster."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ik_node.arguments import ProgressBar, add_overwrite, arm_parser, check_outputs, read_arm, warn
from ik_node.console import run, say
from ik_node.solver.solver import IkSolver

from .goal_options import (
    add_columns,
    add_workers,
    described,
    given_columns,
    note_unused,
    require_packages,
    run_job,
    table_path,
)

if TYPE_CHECKING:
    from .solve_table import Summary

FIRST = 1000  # rows whose angles are looked at before all are solved


def main(given: Sequence[str] | None = None) -> int:
    """Return 0 once every row is answered, 2 for an invalid file or argument, 130 after Ctrl-C."""
    parser = arm_parser('ik_batch')
    parser.add_argument('goals', help='.parquet, .csv, .arrow, .feather or .npz file, or a folder of Parquet files')
    parser.add_argument(
        'output',
        help='.parquet, .csv, .arrow or .feather file to write: joints, status, errors, reason of each row',
    )
    add_overwrite(parser)
    add_columns(parser)
    parser.add_argument('--count', action='store_true', help='count the solutions of each goal too')
    add_workers(parser)
    return run(_batch, parser.parse_args(given))


def _batch(arguments: argparse.Namespace) -> int:
    require_packages(arguments, 'ik_batch')
    from ik_node.tools.solve_table import Job, Task

    from .goal_columns import GoalColumns
    from .goal_files import open_goals

    output = table_path(arguments.output, arguments.goals)
    check_outputs([output], [arguments.goals, arguments.description_file], arguments.overwrite)
    arm = read_arm(arguments)
    warn(arm)
    goals = open_goals(arguments.goals)
    columns = GoalColumns.found(goals.names, given_columns(arguments))
    columns.check_for(arm)
    say(f'{arm.describe()}\ngoals: {described(columns)}')
    note_unused(columns, goals.names, arm, lambda: next(goals.batches(columns.names, FIRST), None))
    task = Task(IkSolver(arm, time_budget=math.inf, compile='wait'), columns, arguments.count)
    start = time.monotonic()
    job = Job(task, goals, output)
    progress = ProgressBar(goals.rows, 'goals', about=not goals.exact)
    summary = run_job(arguments, task, progress, job.parts.folder, lambda workers: job.run(workers, progress.add))
    if summary is None:
        return 130
    say(_report(summary, time.monotonic() - start) + ('' if columns.directed else '\ndirection    free'))
    say(f'wrote {output}')
    return 0


def _report(summary: Summary, seconds: float) -> str:
    """Return a line for each status, with the worst rows."""
    rows = sum(summary.counts.values())
    lines = [f'{rows} goals in {seconds:.1f} s']
    for status, count in summary.counts.items():
        if count:
            lines.append(f'{status:12} {count:>12}  {100 * count / rows:.2f} %')
            for row, error, reason in summary.worst[status]:
                off = f'{1e3 * error:.1f} mm off, ' if error else ''
                lines.append(f'    row {row}: {off}{reason}')
    return '\n'.join(lines)
