# SPDX-License-Identifier: Apache-2.0
"""Shared by the programs that solve tables of goals: which columns hold them, and where they are solved."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ik_node.arguments import ProgressBar
from ik_node.console import say
from ik_node.errors import InputError, join_names, path_text
from ik_node.extras import require
from ik_node.files import real_path
from ik_node.model.plausibility import doubtful_positions
from ik_node.solver.batch import usable_cores

if TYPE_CHECKING:
    import pyarrow as pa

    from ik_node.model.arm import Arm

    from .goal_columns import GoalColumns
    from .workers import Task, Workers

T = TypeVar('T')
TABLES = ('.parquet', '.csv', '.arrow', '.feather')  # that can be written
COLUMNS = (
    *('position', 'direction', 'quaternion', 'order', 'rotvec', 'rpy', 'degrees'),
    *('lateral', 'seed', 'frame'),
)


def add_columns(parser: argparse.ArgumentParser, placed: bool = False) -> None:
    """Add the arguments that name columns; placed: of goals in a frame of their own, see ik_place."""
    group = parser.add_argument_group(
        'columns',
        'names of columns: either several with one number each, or one with lists; not needed '
        'for the default names. If a name ends with a unit, such as "x [mm]" or roll_deg, the '
        'numbers have that unit',
    )
    group.add_argument(
        '--position',
        nargs='+',
        metavar='COLUMN',
        help=f'[m], {"in the frame of the goals" if placed else "base frame"} (default: x y z, or position)',
    )
    group.add_argument(
        '--direction', nargs='+', metavar='COLUMN',
        help='columns of the direction in which the tool points, of any length (default: dx dy dz, or direction, else '
        'any direction)',
    )  # fmt: skip
    group.add_argument(
        '--quaternion', nargs='+', metavar='COLUMN',
        help='orientation of the tip link as a quaternion; positions are then those of its origin',
    )  # fmt: skip
    group.add_argument(
        '--order', choices=('xyzw', 'wxyz'),
        help='order of the quaternion components (default: as the columns are named)',
    )  # fmt: skip
    group.add_argument(
        '--rotvec', nargs='+', metavar='COLUMN', help='orientation of the tip link as a rotation vector [rad]'
    )
    group.add_argument(
        '--rpy', nargs='+', metavar='COLUMN',
        help='orientation of the tip link as roll, pitch and yaw [rad]: rotations about the fixed axes x, '
             'then y, then z, as in URDF',
    )  # fmt: skip
    group.add_argument('--degrees', action='store_true', help='the angles of --rpy or --rotvec are in degrees')
    group.add_argument(
        '--frame', metavar='COLUMN',
        help='frame of each goal; '
        + ('it must be the same for all' if placed else 'rows in another one than the base link are invalid'),
    )  # fmt: skip
    if placed:
        return
    group.add_argument(
        '--lateral', nargs='+', metavar='COLUMN',
        help="columns of a sideways axis of the tool, if the arm can turn it about its direction (default: lx ly lz)",
    )  # fmt: skip
    group.add_argument('--seed', nargs='+', metavar='COLUMN', help='joints to stay close to (default: mid-range)')


def given_columns(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the columns that were named, for GoalColumns.found."""
    return {name: getattr(arguments, name, None) for name in COLUMNS}


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say where goals are solved."""
    group = parser.add_argument_group('where it is computed')
    group.add_argument('--workers', type=int, metavar='N', help='processes (default: one per core)')
    group.add_argument(
        '--scheduler',
        metavar='ADDRESS',
        help='address of the scheduler of a Dask cluster whose workers have ik_node, such as tcp://host:8786',
    )


def table_path(given: str, source: str) -> Path:
    """Return the path of a table to write, as output_path. Raises InputError for a suffix that is not one."""
    output = output_path(given, source)
    if output.suffix.lower() not in TABLES:
        raise InputError(
            f'"{path_text(output)}": the name of the output must end with {", ".join(TABLES[:-1])} or '
            f'{TABLES[-1]}, and such a file is written'
        )
    return output


def output_path(given: str, source: str) -> Path:
    """Return the path to write to. Raises InputError for one that cannot be, or is a part of the source."""
    output = Path(given)
    if not output.parent.is_dir() or not os.access(output.parent, os.W_OK):
        raise InputError(f'cannot write "{path_text(output)}": its folder must exist and be writable')
    # The folder of the output is resolved, not the output: a link there is replaced, not followed.
    place, read = real_path(output.parent) / output.name, real_path(source)
    same = output.exists() and read.exists() and output.samefile(read)
    if same or place == read or read in place.parents:
        raise InputError(f'"{path_text(output)}" would overwrite the input, or be written into it: name another output')
    return output


def require_packages(arguments: argparse.Namespace, program: str) -> None:
    """Raise MissingError without a package that the program needs."""
    for package in ('pyarrow', 'tqdm', *(['distributed'] if arguments.scheduler else [])):
        require(package, program)


def run_job(
    arguments: argparse.Namespace,
    task: Task,
    progress: ProgressBar,
    folder: Path,
    job: Callable[[Workers], T],
) -> T | None:
    """Return what a job returns with the workers that the arguments name; None after Ctrl-C.

    task: what the workers do. folder: of the completed chunks. Raises IkError.
    """
    try:
        with _workers(arguments, task) as workers, progress:
            return job(workers)
    except KeyboardInterrupt:
        say(f'stopped; completed chunks are kept in {folder}: run the same command to continue', sys.stderr)
        return None


def _workers(arguments: argparse.Namespace, task: Task) -> Workers:
    from .workers import Processes, work_of

    if arguments.workers is not None and arguments.workers < 1:
        raise InputError(f'--workers must be at least 1, got {arguments.workers}')
    if arguments.scheduler:
        from .dask_workers import DaskWorkers

        return DaskWorkers(work_of(task), arguments.scheduler)
    return Processes(work_of(task), arguments.workers or usable_cores())


def described(columns: GoalColumns) -> str:
    """Return where the goals come from."""
    parts = []
    for what in ('position', 'direction', 'quaternion', 'rotvec', 'rpy', 'lateral', 'seed', 'frame'):
        names = getattr(columns, what)
        if names:
            unit = ' in degrees' if what in ('rotvec', 'rpy') and columns.degrees else ''
            parts.append(f'{what} from {names if isinstance(names, str) else join_names(names)}{unit}')
    return '; '.join(parts if columns.directed else [*parts, 'direction free'])


def note_unused(
    columns: GoalColumns, names: Sequence[str], arm: Arm, first: Callable[[], pa.RecordBatch | None]
) -> None:
    """Print notes on orientations that are not used, angles in a doubtful unit, and changes of poses.

    first: returns some of the rows. Raises InputError for angles that can only be in another unit.
    """
    from .goal_columns import doubt_of_angles, read_rows

    joints = [joint.name for joint in arm.robot.movable]
    joints += [f'{name}.pos' for name in joints]
    for sentence in columns.unused_orientations(names, joints):
        say(f'note: {sentence}', sys.stderr)
    rows = first()
    if rows is None:
        return
    if (columns.rpy or columns.rotvec) and (doubt := doubt_of_angles(rows, columns)):
        say(f'note: {doubt}', sys.stderr)
    found = read_rows(rows, columns, arm)
    positions = np.delete(found.positions, list(found.wrong), axis=0)
    if doubt := doubtful_positions(positions, arm.reach):
        say(f'note: {doubt}', sys.stderr)
