# SPDX-License-Identifier: Apache-2.0
"""ik_place: where to put an arm so that it reaches the goals of a file."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ik_node.arguments import (
    ProgressBar,
    add_overwrite,
    arm_parser,
    check_outputs,
    output_name,
    read_arm,
    warn,
)
from ik_node.checks import Array
from ik_node.console import run, say
from ik_node.errors import InputError, join_names, quoted
from ik_node.extras import require
from ik_node.files import write_file
from ik_node.model.arm import Arm
from ik_node.model.urdf.link_lengths import LinkLengths
from ik_node.solver.solver import IkSolver

from .goal_options import add_columns, described, given_columns
from .placement import (
    GRID,
    NAMES,
    Judged,
    Placement,
    PlacementJudge,
    PlacementSearch,
    Region,
    distinct,
    excluded_share,
)
from .self_collision import clearance_of

if TYPE_CHECKING:
    import pyarrow as pa

# The attitude of the base at zero; a wall is one whose free side is towards +x.
MOUNTINGS = {
    'table': np.eye(3),
    'ceiling': np.diag([1.0, -1.0, -1.0]),
    'wall': np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]),
    'free': np.eye(3),
}
NOT_MOVED = (0.0, 0.0)
ANGLES = {'roll': NOT_MOVED, 'pitch': NOT_MOVED, 'yaw': (-180.0, 180.0)}
ANY_ANGLES = {'roll': (-180.0, 180.0), 'pitch': (-90.0, 90.0), 'yaw': (-180.0, 180.0)}
SHORTEST = 1e-6  # m, of a rail


def add_region(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the region."""
    group = parser.add_argument_group('region', 'where the base may be, in the frame of the goals')
    defaults = {'z': '0 0', 'roll': '0 0', 'pitch': '0 0', 'yaw': '-180 180'}
    for name in NAMES:
        unit = 'm' if name in 'xyz' else 'degrees'
        default = f' (default: {defaults[name]})' if name in defaults else ''
        group.add_argument(f'--{name}', type=float, nargs=2, metavar=('MIN', 'MAX'), help=f'[{unit}]{default}')
    group.add_argument(
        '--rail', type=float, nargs=6, metavar=('X1', 'Y1', 'Z1', 'X2', 'Y2', 'Z2'),
        help='the base is on the line from one point to the other [m], in place of --x --y --z',
    )  # fmt: skip
    group.add_argument(
        '--mounting', choices=MOUNTINGS, default='table',
        help='what the base is fixed to (default: table); a wall has its free side towards +x; free: any '
        'attitude unless --roll, --pitch or --yaw restricts it',
    )  # fmt: skip


def region_of(arguments: argparse.Namespace) -> Region:
    """Return the region. Raises InputError."""
    given = {name: getattr(arguments, name) for name in NAMES}
    angles = ANY_ANGLES if arguments.mounting == 'free' else ANGLES
    turned = np.radians([given[name] or angles[name] for name in NAMES[3:]])
    R_up = MOUNTINGS[arguments.mounting]
    if arguments.rail is not None:
        if any(given[name] is not None for name in 'xyz'):
            raise InputError('--rail and --x, --y, --z exclude each other')
        ends = np.array(arguments.rail).reshape(2, 3)
        length = float(np.linalg.norm(ends[1] - ends[0]))
        if not SHORTEST < length < np.inf:
            raise InputError('--rail must be two different points of finite numbers')
        bounds = np.vstack([[(0.0, length), NOT_MOVED, NOT_MOVED], turned])
        axes = np.zeros((3, 3))
        axes[:, 0] = (ends[1] - ends[0]) / length
        return Region(bounds[:, 0], bounds[:, 1], R_up, ends[0], axes)
    for name in 'xy':
        if given[name] is None:
            raise InputError(f'--{name} MIN MAX is missing: where the base may be, or --rail')
    bounds = np.vstack([[given['x'], given['y'], given['z'] or NOT_MOVED], turned])
    return Region(bounds[:, 0], bounds[:, 1], R_up)


MAX_ROWS = 8  # of unmet goals that are named


def table(best: Sequence[Placement], goals: int, paths: bool) -> str:
    """Return a line for each placement."""
    tilted = any(one.base[3:5].any() for one in best)
    angles = ('roll', 'pitch', 'yaw') if tilted else ('yaw',)
    head = ['', 'x [m]', 'y [m]', 'z [m]', *(f'{name} [deg]' for name in angles), 'met']
    head += ['to limits', 'to reach', 'clearance', *(['jumps'] if paths else []), 'unmet rows']
    rows = [head]
    for rank, one in enumerate(best, 1):
        turned = [f'{math.degrees(one.base[NAMES.index(name)]):.1f}' for name in angles]
        unmet = ' '.join(map(str, one.unmet[:MAX_ROWS])) + (' ...' if len(one.unmet) > MAX_ROWS else '')
        rows.append(
            [
                str(rank),
                *(f'{value:.3f}' for value in one.position),
                *turned,
                f'{goals - len(one.unmet)}/{goals}',
                *map(_length, (one.to_limits, one.to_reach, one.clearance)),
                *([str(one.breaks)] if paths else []),
                unmet,
            ]
        )
    lines = [' '.join(cell.rjust(11 if k else 3) for k, cell in enumerate(row[:-1])) for row in rows]
    return '\n'.join(f'{line}  {row[-1]}'.rstrip() for line, row in zip(lines, rows, strict=True))


def _length(value: float | None) -> str:
    return '' if value is None or math.isinf(value) else f'{value:.3f}'


def search_summary(grid: Judged, steps: Array, excluded: float, unmet: int, collision: bool, seconds: float) -> str:
    """Return what the search can have missed and what not.

    excluded: as from excluded_share; unmet: goals that the best placement leaves unmet.
    """
    text = f'{len(grid.bases)} placements of a grid, and more between them, in {seconds:.1f} s. '
    if unmet == 0:
        text += 'All goals are met; a placement farther from the limits may exist'
    elif not steps.any():
        text += 'The region is one placement'
    else:
        shift, turn = 1e3 * float(steps[:3].max()) / 2.0, math.degrees(float(steps[3:].max())) / 2.0
        room = ' and '.join(
            part for part in (f'{shift:.0f} mm' * bool(shift), f'{turn:.1f} degrees' * bool(turn)) if part
        )
        text += (
            f'In {100.0 * excluded:.0f} % of the region no placement meets more goals, because too '
            'many are out of reach. In the rest, the search may have missed a placement with less '
            f'room than {room} around it'
        )
    if grid.complete < 1.0:
        share = 100.0 * (1.0 - grid.complete)
        text += f'. {share:.0f} % of the goals were judged by descents, which may miss solutions'
    return text + ('. Self-collision is judged for the best of them only.' if collision else '.')


def report(arm: Arm, best: Sequence[Placement]) -> str:
    """Return the placements as JSON; positions and angles [m, rad] in the frame of the goals."""
    placements = [
        {
            **dict(zip('xyz', one.position.tolist(), strict=True)),
            **dict(zip(NAMES[3:], one.base[3:].tolist(), strict=True)),
            'rotation': one.R.tolist(),
            'unmet': one.unmet,
            'to_limits': _finite(one.to_limits),
            'to_reach': _finite(one.to_reach),
            'clearance': _finite(one.clearance),
            'jumps': one.breaks,
            'joints': [None if np.isnan(q).any() else q.tolist() for q in one.joints],
        }
        for one in best
    ]
    data = {
        'arm': arm.name,
        'base_link': arm.base_link,
        'tip_link': arm.tip_link,
        'joint_names': arm.joint_names,
        'placements': placements,
    }
    return json.dumps(data, indent=2) + '\n'


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value


VALUES = 5  # of each length, from the lowest to the highest
MAX_ARMS = 125  # arms
GRID_PLACEMENTS = 4_000  # placements for each
MORE = 0.02  # [m] by which each length is changed alone

Ranges = tuple[LinkLengths, dict[str, tuple[float, float]]]


def ranges_of(path: str, arguments: Mapping[str, str], given: Sequence[str]) -> Ranges | None:
    """Return the lengths of the file and the ranges given as NAME=MIN:MAX. Raises IkError."""
    if not given:
        return None
    lengths = LinkLengths.read(path, arguments)
    ranges: dict[str, tuple[float, float]] = {}
    for text in given:
        name, _, span = text.partition('=')
        try:
            low, high = map(float, span.split(':'))
        except ValueError:
            raise InputError(f'--length must be like forearm=0.2:0.3, got {text!r}') from None
        if name not in lengths.values:
            known = join_names(lengths.values) or 'none, as no argument NAME_length with a number is declared'
            raise InputError(f'--length: "{path}" has no length {name!r}; lengths: {known}')
        if not 0.0 < low < high < math.inf:
            raise InputError(f'--length {name}: 0 < MIN < MAX must hold, got {low:g} and {high:g}')
        ranges[name] = (low, high)
    if VALUES ** len(ranges) > MAX_ARMS:
        raise InputError(f'--length: at most {int(math.log(MAX_ARMS, VALUES))} at a time, got {len(ranges)}')
    return lengths, ranges


def compared(
    given: Ranges | None,
    arguments: argparse.Namespace,
    positions: Array,
    directions: Array | None,
    region: Region,
) -> Iterator[str]:
    """Yield lines: the best placement for each combination of lengths, and what 2 cm more of each buys."""
    if given is None:
        return
    lengths, ranges = given

    def best(**changed: float) -> Judged:
        arm = Arm.from_urdf(
            lengths.changed(**changed).description(),
            arguments.tip_link,
            tool_axis=arguments.tool_axis,
            tool_point=arguments.tool_point,
            base_link=arguments.base_link,
        )
        search = PlacementSearch(arm, positions, directions, region)
        return search.best(*search.coarse(GRID_PLACEMENTS, lambda _: None))

    yield f'other lengths, each with {GRID_PLACEMENTS} placements of a grid, without self-collision:'
    yield ' '.join(f'{name} [m]'.rjust(16) for name in ranges) + '     met   to limits'
    for values in itertools.product(*(np.linspace(*span, VALUES) for span in ranges.values())):
        met, distance = _rates(best(**dict(zip(ranges, values, strict=True))), len(positions))
        yield ' '.join(f'{value:16.3f}' for value in values) + f'{met:>8}{distance:>12}'
    now = _rates(best(), len(positions))
    for name in ranges:
        more = _rates(best(**{name: lengths.values[name] + MORE}), len(positions))
        yield (
            f'{100 * MORE:g} cm more {name} ({lengths.values[name]:g} m): {more[0]} instead of {now[0]} '
            f'goals met, {more[1]} instead of {now[1]} to limits'
        )


def _rates(judged: Judged, goals: int) -> tuple[str, str]:
    """Return how many goals the first placement meets, and the distance to the limits."""
    distance = judged.distances[0]
    return f'{goals - judged.unmet[0]}/{goals}', f'{distance:.3f}' if np.isfinite(distance) else '-'


MAX_GOALS = 10_000
COUNT = 10  # placements that are shown


@dataclass(frozen=True)
class Goals:
    """Goals in one frame: positions (N, 3) [m], directions (N, 3) unit or None, and the rows of each path."""

    positions: Array
    directions: Array | None
    paths: tuple[NDArray[np.int64], ...]
    description: str


def main(given: Sequence[str] | None = None) -> int:
    """Return 0 if a placement meets every goal, 1 if none was found, 2 for an invalid file or argument."""
    parser = arm_parser('ik_place')
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
    parser.add_argument('--output', metavar='NAME', help='write NAME.json, NAME.png and a picture of each placement')
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
    say(f'{arm.describe()}\n{len(goals.positions)} goals: {goals.description}')
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
    say(search_summary(grid, steps, excluded, unmet, clearance is not None, time.monotonic() - start))
    if output is not None:
        write_file(f'{output}.json', report(arm, best))
        _draw(output, arm, region, search, best, goals.positions)
    for line in compared(lengths, arguments, goals.positions, goals.directions, region):
        say(line)
    return 0 if not best[0].unmet else 1


def _goals(arguments: argparse.Namespace, arm: Arm) -> Goals:
    """Return the goals of the file. Raises InputError."""
    from .goal_columns import GoalColumns, frames_of, read_rows
    from .goal_files import open_goals

    file = open_goals(arguments.goals)
    columns = GoalColumns.found(file.names, given_columns(arguments))
    extra = [name for name in (columns.frame, arguments.path) if name]
    if absent := [name for name in extra if name not in file.names]:
        raise InputError(f'no column {quoted(absent[0])} in "{file.path}"')
    columns = replace(columns, frame='')  # any fixed frame, as long as it is one
    batch = next(file.batches(list(dict.fromkeys([*columns.names, *extra])), MAX_GOALS + 1), None)
    file.check()
    if batch is None or not 1 <= batch.num_rows <= MAX_GOALS:
        raise InputError(f'"{file.path}" must hold 1 to {MAX_GOALS} goals')
    rows = read_rows(batch, columns, arm, anywhere=True)
    if rows.wrong:
        row, sentence = min(rows.wrong.items())
        raise InputError(f'row {row} of "{file.path}" holds no goal: {sentence}')
    frame = given_columns(arguments)['frame'] or ('frame' if 'frame' in file.names else None)
    if frame and len(frames := set(frames_of(batch, str(frame)))) > 1:
        raise InputError(f'goals are in {len(frames)} frames (column {quoted(str(frame))}), but must all be in one')
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

    from ik_node.tools.pictures import draw_placement, draw_region  # matplotlib takes a second to load

    figures = {f'{output}.png': draw_region(arm, region, search, best, positions)}
    for rank, one in enumerate(best, 1):
        figures[f'{output}_{rank:02d}.png'] = draw_placement(arm, rank, one, positions)
    for name, figure in figures.items():
        write_file(name, lambda file, figure=figure: figure.savefig(file, format='png', dpi=110))  # type: ignore[misc]
    last = f' to {output}_{len(best):02d}.png' if len(best) > 1 else ''
    say(f'wrote {output}.json, {output}.png and {output}_01.png{last}')
