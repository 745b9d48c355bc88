# SPDX-License-Identifier: Apache-2.0
"""ik_retarget: end-effector poses of a LeRobot dataset or a table to joint positions of an arm."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ik_node.arguments import (
    FILE_SUFFIX,
    ProgressBar,
    add_overwrite,
    arm_parser,
    check_outputs,
    read_arm,
    warn,
)
from ik_node.checks import positive
from ik_node.console import run, say
from ik_node.errors import InputError, join_names, path_text, quoted
from ik_node.extras import require
from ik_node.files import real_path
from ik_node.solver.solver import IkSolver

from .goal_options import (
    add_columns,
    add_workers,
    described,
    given_columns,
    note_unused,
    output_path,
    require_packages,
    run_job,
    table_path,
)

if TYPE_CHECKING:
    from ik_node.tools.episodes import EpisodeReport

    from .episodes import EpisodeTable
    from .goal_columns import GoalColumns
    from .lerobot_dataset import LerobotDataset


# The components of a pose in LeRobot's processors.
POSITION, ROTVEC = ('ee.x', 'ee.y', 'ee.z'), ('ee.wx', 'ee.wy', 'ee.wz')


def main(given: Sequence[str] | None = None) -> int:
    """Return 0 once the dataset is written, 2 for an invalid file or argument, 130 after Ctrl-C."""
    parser = arm_parser('ik_retarget')
    parser.add_argument(
        'input', help='folder of a LeRobot dataset, v2.1 or v3.0, or with --episode a file as for ik_batch'
    )
    parser.add_argument(
        'output',
        help='folder to write; of a table a .parquet, .csv, .arrow or .feather file',
    )
    add_overwrite(parser)
    parser.add_argument('--feature', help='feature of the dataset that holds the poses (default: action)')
    parser.add_argument(
        '--recordings', metavar='FOLDER', help='write the worst episodes there as MCAP files, for the viewer'
    )
    parser.add_argument('--report', metavar='FILE', help='write how well each episode was met, as JSON')
    group = parser.add_argument_group('tables')
    group.add_argument(
        '--episode',
        metavar='COLUMN',
        help='column that identifies the episode; its frames are consecutive rows',
    )
    clock = group.add_mutually_exclusive_group()
    clock.add_argument('--time', metavar='COLUMN', help='column with the time of each frame [s]')
    clock.add_argument('--fps', type=float, metavar='RATE', help='frame rate [1/s]')
    add_columns(parser)
    add_workers(parser)
    return run(_retarget, parser.parse_args(given))


def _retarget(arguments: argparse.Namespace) -> int:
    require_packages(arguments, 'ik_retarget')
    from ik_node.tools.episodes import EpisodeTask, Retargeting

    from .checkpoints import beside

    output = (table_path if arguments.episode else output_path)(arguments.output, arguments.input)
    report = output_path(arguments.report, arguments.input) if arguments.report else None
    inputs = arguments.input, arguments.description_file
    check_outputs([output, *[report] * bool(report)], inputs, arguments.overwrite)  # type: ignore[list-item]
    if report and report.suffix.lower() != '.json':
        raise InputError(f'--report writes JSON: name "{path_text(report)}" with the suffix .json')
    if report and real_path(report) in [real_path(path) for path in (output, *beside(output))]:
        raise InputError(f'cannot write "{path_text(report)}": the output is written there')
    recordings = _recordings(arguments.recordings)
    arm = read_arm(arguments)
    warn(arm)
    source: EpisodeTable | LerobotDataset
    source, fps = _table(arguments) if arguments.episode else _dataset(arguments)
    if not arguments.episode and FILE_SUFFIX.fullmatch(output.suffix):
        raise InputError(
            f'"{path_text(output)}" ends with {output.suffix}, but a dataset is written as a folder: name it '
            'without a suffix'
        )
    columns = _columns(arguments, source)
    columns.check_for(arm)
    task = EpisodeTask(IkSolver(arm, time_budget=math.inf, compile='wait'), columns, fps, arguments.time or '')
    job = Retargeting(task, source, output)
    if arguments.episode and output.suffix.lower() == '.csv':
        source.check_csv(columns.poses)  # type: ignore[union-attr]
    say(f'{arm.describe()}\nposes: {described(columns)}; they become {", ".join(job.written)}')
    note_unused(columns, source.names, arm, lambda: next(source.episodes(columns.names), ('', None))[1])
    start = time.monotonic()
    progress = ProgressBar(source.count, 'episodes')
    reports = run_job(
        arguments,
        task,
        progress,
        job.parts.folder,
        lambda workers: job.run(workers, progress.add, recordings, report),
    )
    if reports is None:
        return 130
    say(_summary(reports, time.monotonic() - start))
    more = [f'a report to {report}'] * bool(report)
    more += [f'recordings of the worst episodes to {recordings}'] * bool(recordings)
    say(', and '.join([f'wrote {output}', *more]))
    return 0


def _recordings(folder: str | None) -> Path | None:
    """Return the folder of recordings, which is made. Raises IkError."""
    if folder is None:
        return None
    require('mcap_ros2', 'ik_retarget --recordings')
    if FILE_SUFFIX.fullmatch(Path(folder).suffix):
        raise InputError(f'--recordings takes a folder for .mcap files, got "{path_text(folder)}"')
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f'cannot write to "{folder}": {error.strerror or error}') from None
    return Path(folder)


def _dataset(arguments: argparse.Namespace) -> tuple[LerobotDataset, float]:
    """Return the dataset and its rate [1/s]. Raises InputError."""
    from .lerobot_dataset import LerobotDataset

    if arguments.time or arguments.fps is not None:
        raise InputError('--time and --fps are for tables: name the column of episodes with --episode')
    dataset = LerobotDataset(Path(arguments.input), arguments.feature or 'action')
    return dataset, dataset.fps


def _table(arguments: argparse.Namespace) -> tuple[EpisodeTable, float]:
    """Return the table and its rate [1/s], 0 if it has times. Raises InputError."""
    from .episodes import EpisodeTable
    from .goal_files import open_goals

    if arguments.feature:
        raise InputError('--feature is for datasets of LeRobot, --episode for tables: give one of them')
    if not arguments.time:
        if arguments.fps is None:
            raise InputError('a table needs --time COLUMN [s] or --fps RATE [1/s]')
        positive('--fps', arguments.fps)
    table = EpisodeTable(open_goals(arguments.input), arguments.episode)
    if arguments.time and arguments.time not in table.names:
        raise InputError(f'no column {quoted(arguments.time)}; the columns are {join_names(table.names)}')
    return table, arguments.fps or 0.0


def _columns(arguments: argparse.Namespace, source: EpisodeTable | LerobotDataset) -> GoalColumns:
    """Return the columns that were named, or have the usual names. Raises InputError."""
    from .goal_columns import GoalColumns, usual_position

    names, given = source.names, given_columns(arguments)
    others = [name for name, own in source.others.items() if _has_pose(own)]
    if not given['position'] and set(POSITION) <= set(names):
        given['position'] = POSITION
        if set(ROTVEC) <= set(names) and not any(given[one] for one in ('direction', 'quaternion', 'rpy')):
            given['rotvec'] = given['rotvec'] or ROTVEC
    elif others and not given['position'] and not usual_position(names):
        raise InputError(
            f'feature {quoted(arguments.feature or "action")} has no positions, {join_names(others)} has: '
            f'--feature {others[0]}. Its components are {join_names(names)}'
        )
    for other in others:
        say(f'note: feature {quoted(other)} holds poses too and is copied unchanged', sys.stderr)
    return GoalColumns.found(names, given)


def _has_pose(names: Sequence[str]) -> bool:
    from .goal_columns import usual_position

    return set(POSITION) <= set(names) or bool(usual_position(names))


def _summary(reports: Sequence[EpisodeReport], seconds: float) -> str:
    """Return what happened in all episodes, and the worst of them."""
    from ik_node.tools.episodes import worst_of

    frames = sum(report.frames for report in reports)
    total = {name: sum(report.flagged[name] for report in reports) for name in reports[0].flagged} if reports else {}
    lines = [f'{len(reports)} episodes, {frames} frames in {seconds:.1f} s']
    if not frames:
        return lines[0]
    lines += [f'{name.replace("_", " "):10} {count:>10} frames' for name, count in total.items()]
    lines.append('worst episodes:')
    lines += [f'    {_line(report)}' for report in worst_of(reports)]
    return '\n'.join(lines)


def _line(report: EpisodeReport) -> str:
    """Return a line on an episode: errors in the median, at 95 % and at most."""
    position = ' / '.join(f'{1e3 * error:.1f}' for error in report.position_errors or ())
    direction = ' / '.join(f'{math.degrees(error):.1f}' for error in report.direction_errors or ())
    flags = ''.join(
        f', {report.flagged[name]} frames {name.replace("_", " ")} (first: {runs[0][0]})'
        for name, runs in report.runs.items()
        if runs
    )
    flags += f'; frame {report.runs["invalid"][0][0]}: {report.reason}' if report.reason else ''
    return (
        f'episode {report.episode}: {report.flagged["solved"]} of {report.frames} frames solved, '
        f'{position or "-"} mm {f"and {direction} degrees " if direction else ""}off, '
        f'largest step {report.largest_step:.3g}{flags}'
    )
