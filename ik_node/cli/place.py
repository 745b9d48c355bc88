# SPDX-License-Identifier: Apache-2.0
"""ik_place: where to put an arm so that it reaches the goals of a file."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.cli.arguments import arm_parser, read_arm, warn
from ik_node.cli.goal_options import add_columns, described, given_columns
from ik_node.cli.place_lengths import compared, ranges_of
from ik_node.cli.place_region import add_region, region_of
from ik_node.cli.place_report import report, said_of_search, table
from ik_node.cli.progress_bar import ProgressBar
from ik_node.cli.self_collision import clearance_of
from ik_node.cli.whole_files import add_overwrite, check_outputs, output_name, write_whole
from ik_node.console import run, say
from ik_node.errors import InputError, quoted
from ik_node.extras import require
from ik_node.model.arm import Arm
from ik_node.placement.placement import Placement, PlacementJudge
from ik_node.placement.region import Region
from ik_node.placement.search import GRID, PlacementSearch, distinct, excluded_share
from ik_node.solver.solver import IkSolver

if TYPE_CHECKING:
    import pyarrow as pa

MOST_GOALS = 10_000
COUNT = 10  # placements that are shown


@dataclass(frozen=True)
class Goals:
    """Goals in one frame: positions (N, 3) [m], directions (N, 3) unit or None, and the rows of each path."""

    positions: Array
    directions: Array | None
    paths: tuple[NDArray[np.int64], ...]
    told: str


def main(given: Sequence[str] | None = None) -> int:
    """Return 0 if a placement meets every goal, 1 if none was found, 2 for an invalid file or argument."""
    parser = arm_parser('Find the placements of the base from which an arm meets the goals of a file.')
    parser.add_argument('goals', help='file of goals as for ik_batch, in any fixed frame')
    add_columns(parser, placed=True)
    parser.add_argument(
        '--path', metavar='COLUMN',
        help='rows with the same value in it form a path, which the tool follows without a jump if possible',
    )  # fmt: skip
    add_region(parser)
    parser.add_argument(
        '--length', action='append', default=[], metavar='NAME=MIN:MAX',
        help='also show the gain from other lengths [m] of a link, for a xacro file with the argument '
        'NAME_length; may be given several times',
    )  # fmt: skip
    parser.add_argument(
        '--output', metavar='NAME', help='write NAME.json, NAME.png and a picture of each placement'
    )
    add_overwrite(parser)
    return run(_place, parser.parse_args(given))


def _place(arguments: argparse.Namespace) -> int:
    for package in ('pyarrow', 'tqdm', *(['matplotlib'] if arguments.output else [])):
        require(package, 'ik_place')
    output = None if arguments.output is None else output_name(arguments.output, '.json', '.png')
    if output is not None:
        pictures = [f'{output}_{rank:02d}.png' for rank in range(1, COUNT + 1)]
        written = map(Path, (f'{output}.json', f'{output}.png', *pictures))
        check_outputs(written, [arguments.goals, arguments.description_file], arguments.overwrite)
    region = region_of(arguments)
    lengths = ranges_of(arguments.description_file, arguments.xacro_args, arguments.length)
    arm = read_arm(arguments)
    warn(arm)
    goals = _goals(arguments, arm)
    say(f'{arm.describe()}\n{len(goals.positions)} goals: {goals.told}')
    clearance, note = clearance_of(arguments.description_file, arm, arguments.xacro_args)
    say(note)
    start = time.monotonic()
    search = PlacementSearch(arm, goals.positions, goals.directions, region)
    with ProgressBar(None, 'placements') as progress:
        grid, steps = search.coarse(GRID, progress.add)
        found = search.best(grid, steps, progress.add)
    judge = PlacementJudge(search, IkSolver(arm, compile='wait'), clearance, goals.paths)
    placements = sorted((judge.judged(base) for base in found.bases), key=lambda one: one.score)
    kept = distinct(region, np.array([one.base for one in placements]), COUNT)
    best = [placements[row] for row in kept]
    say(table(best, len(goals.positions), bool(goals.paths)))
    unmet = len(best[0].unmet)
    excluded = excluded_share(search, grid.bases, steps, max(unmet - 1, 0))
    say(said_of_search(grid, steps, excluded, unmet, clearance is not None, time.monotonic() - start))
    if output is not None:
        write_whole(f'{output}.json', lambda file: file.write(report(arm, best).encode()))
        _draw(output, arm, region, search, best, goals.positions)
    for line in compared(lengths, arguments, goals.positions, goals.directions, region):
        say(line)
    return 0 if not best[0].unmet else 1


def _goals(arguments: argparse.Namespace, arm: Arm) -> Goals:
    """Return the goals of the file. Raises InputError."""
    from ik_node.batch.goal_columns import GoalColumns, frames_of, read_rows
    from ik_node.batch.goal_files import open_goals

    file = open_goals(arguments.goals)
    columns = GoalColumns.found(file.names, given_columns(arguments))
    extra = [name for name in (columns.frame, arguments.path) if name]
    if absent := [name for name in extra if name not in file.names]:
        raise InputError(f'no column {quoted(absent[0])} in "{file.path}"')
    columns = replace(columns, frame='')  # any fixed frame, as long as it is one
    batch = next(file.batches(list(dict.fromkeys([*columns.names, *extra])), MOST_GOALS + 1), None)
    file.check()
    if batch is None or not 1 <= batch.num_rows <= MOST_GOALS:
        raise InputError(f'"{file.path}" must hold 1 to {MOST_GOALS} goals')
    rows = read_rows(batch, columns, arm, anywhere=True)
    if rows.wrong:
        row, sentence = min(rows.wrong.items())
        raise InputError(f'row {row} of "{file.path}" holds no goal: {sentence}')
    frame = given_columns(arguments)['frame'] or ('frame' if 'frame' in file.names else None)
    if frame and len(frames := set(frames_of(batch, str(frame)))) > 1:
        raise InputError(f'goals are in {len(frames)} frames by column {quoted(str(frame))}, allowed: one')
    return Goals(rows.positions, rows.directions, _paths(batch, arguments.path), described(columns))


def _paths(batch: pa.RecordBatch, column: str | None) -> tuple[NDArray[np.int64], ...]:
    """Return the rows of each value of column, in order; rows without a value are on no path."""
    rows: dict[object, list[int]] = {}
    values = batch.column(batch.schema.get_field_index(column)).to_pylist() if column else []
    for row, value in enumerate(values):
        if value is not None and value == value:  # NaN is none
            rows.setdefault(str(value), []).append(row)
    return tuple(np.array(path) for path in rows.values())


def _draw(
    output: str,
    arm: Arm,
    region: Region,
    search: PlacementSearch,
    best: Sequence[Placement],
    positions: Array,
) -> None:
    from ik_node.cli.place_picture import draw_placement, draw_region  # matplotlib takes a second to load

    figures = {f'{output}.png': draw_region(arm, region, search, best, positions)}
    for rank, one in enumerate(best, 1):
        figures[f'{output}_{rank:02d}.png'] = draw_placement(arm, rank, one, positions)
    for name, figure in figures.items():
        write_whole(name, lambda file, figure=figure: figure.savefig(file, format='png', dpi=110))  # type: ignore[misc]
    last = f' to {output}_{len(best):02d}.png' if len(best) > 1 else ''
    say(f'wrote {output}.json, {output}.png and {output}_01.png{last}')
