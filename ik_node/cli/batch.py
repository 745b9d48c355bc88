# SPDX-License-Identifier: Apache-2.0
"""ik_batch: a file of goals to a file of joints, on all cores or on a Dask cluster."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ik_node.cli.arguments import arm_parser, read_arm, warn
from ik_node.cli.progress_bar import ProgressBar
from ik_node.console import run, say
from ik_node.errors import InputError, join_names
from ik_node.extras import require
from ik_node.solver.cores import usable_cores
from ik_node.solver.solver import IkSolver

if TYPE_CHECKING:
    from ik_node.batch.job import Summary
    from ik_node.batch.workers import Work, Workers


def main(given: Sequence[str] | None = None) -> int:
    """Return 0 once every row is answered, 2 for an invalid file or argument, 130 after Ctrl-C."""
    parser = arm_parser(
        'Solve position-plus-direction IK for every row of a file of goals. The same command continues a run '
        'that was stopped.'
    )
    parser.add_argument(
        'goals', help='.parquet, .csv, .arrow, .feather or .npz file, or a folder of Parquet files'
    )
    parser.add_argument('output', help='Parquet file to write: joints, status, errors and reason of each row')
    group = parser.add_argument_group(
        'columns',
        'names of columns with one number each, or of one with lists; usual names are found without',
    )
    group.add_argument(
        '--position', nargs='+', metavar='COLUMN', help='[m], base frame (default: x y z, or position)'
    )
    group.add_argument(
        '--direction', nargs='+', metavar='COLUMN',
        help='of the tool axis, any length (default: dx dy dz, or direction, else any direction)',
    )  # fmt: skip
    group.add_argument(
        '--quaternion', nargs='+', metavar='COLUMN',
        help="orientation of the tip link's frame, whose origin the position then is",
    )  # fmt: skip
    group.add_argument('--rotvec', nargs='+', metavar='COLUMN', help='the same as a rotation vector [rad]')
    group.add_argument('--order', choices=('xyzw', 'wxyz'), help='of the components of the quaternion')
    group.add_argument(
        '--lateral',
        nargs='+',
        metavar='COLUMN',
        help="of the tool's lateral axis, for a spare roll (default: lx ly lz)",
    )
    group.add_argument(
        '--seed', nargs='+', metavar='COLUMN', help='joints to stay close to (default: mid-range)'
    )
    group.add_argument(
        '--frame',
        metavar='COLUMN',
        help='frame of each goal; rows in another one than the base link are invalid',
    )
    parser.add_argument('--count', action='store_true', help='count the solutions of each goal too')
    parser.add_argument('--workers', type=int, metavar='N', help='processes (default: one per core)')
    parser.add_argument(
        '--scheduler',
        metavar='ADDRESS',
        help='of a Dask cluster whose workers have ik_node, like tcp://host:8786',
    )
    return run(_batch, parser.parse_args(given))


def _batch(arguments: argparse.Namespace) -> int:
    for package in ('pyarrow', 'tqdm', *(['distributed'] if arguments.scheduler else [])):
        require(package, 'ik_batch')
    from ik_node.batch.goal_columns import GoalColumns
    from ik_node.batch.goal_files import open_goals
    from ik_node.batch.job import Job, Task

    if arguments.workers is not None and arguments.workers < 1:
        raise InputError(f'--workers must be at least 1, got {arguments.workers}')
    output = Path(arguments.output)
    if not output.parent.is_dir() or not os.access(output.parent, os.W_OK) or output.is_dir():
        raise InputError(f'cannot write "{output}": its folder must exist and be writable')
    arm = read_arm(arguments)
    warn(arm)
    goals = open_goals(arguments.goals)
    names = ('position', 'direction', 'quaternion', 'order', 'rotvec', 'lateral', 'seed', 'frame')
    columns = GoalColumns.found(goals.names, {name: getattr(arguments, name) for name in names})
    if columns.seed and len(columns.seed) not in (1, arm.n):
        raise InputError(f'--seed takes {arm.n} columns, or one with lists of {arm.n} numbers')
    say(f'{arm.describe()}\ngoals: {_described(columns)}')
    task = Task(IkSolver(arm, compile='wait'), columns, arguments.count)
    start = time.monotonic()
    job = Job(task, goals, output)
    try:
        with _workers(arguments, task.work()) as workers, ProgressBar(goals.rows, 'goals') as progress:
            summary = job.run(workers, progress.add)
    except KeyboardInterrupt:
        say(f'stopped; what is done is kept in {job.parts.folder}: the same command continues', sys.stderr)
        return 130
    say(_told(summary, time.monotonic() - start))
    say(f'wrote {output}')
    return 0


def _workers(arguments: argparse.Namespace, work: Work) -> Workers:
    if arguments.scheduler:
        from ik_node.batch.dask_workers import DaskWorkers

        return DaskWorkers(work, arguments.scheduler)
    from ik_node.batch.workers import Processes

    return Processes(work, arguments.workers or usable_cores())


def _described(columns: object) -> str:
    parts = []
    for what in ('position', 'direction', 'quaternion', 'rotvec', 'lateral', 'seed', 'frame'):
        names = getattr(columns, what)
        if names:
            parts.append(f'{what} from {names if isinstance(names, str) else join_names(names)}')
    if len([part for part in parts if part.startswith(('direction', 'quaternion', 'rotvec'))]) == 0:
        parts.append('direction free')
    return '; '.join(parts)


def _told(summary: Summary, seconds: float) -> str:
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
