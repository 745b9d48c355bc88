# SPDX-License-Identifier: Apache-2.0
"""ik_place: where to put an arm so that it reaches the goals of a file."""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ik_node.checks import Array
from ik_node.cli.arguments import arm_parser, read_arm, warn
from ik_node.cli.goal_options import add_columns, described, given_columns
from ik_node.cli.progress_bar import ProgressBar
from ik_node.console import run, say
from ik_node.errors import InputError
from ik_node.extras import require
from ik_node.model.arm import Arm
from ik_node.placement.region import Region
from ik_node.placement.search import GRID, Placement, PlacementSearch
from ik_node.solver.solver import IkSolver

if TYPE_CHECKING:
    from ik_node.batch.goal_columns import GoalRows

MOST_GOALS = 10_000
COUNT = 10  # placements that are shown
# Of the region: name, unit and default.
BOUNDS = (('x', 'm', None), ('y', 'm', None), ('z', 'm', (0.0, 0.0)), ('yaw', 'degrees', (-180.0, 180.0)))
# The attitude of the base at yaw 0; a wall is one whose free side is towards +x.
MOUNTINGS = {
    'table': np.eye(3),
    'ceiling': np.diag([1.0, -1.0, -1.0]),
    'wall': np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]),
}


def main(given: Sequence[str] | None = None) -> int:
    """Return 0 if a placement meets every goal, 1 if none was found, 2 for an invalid file or argument."""
    parser = arm_parser('Find the placements of the base from which an arm meets the goals of a file.')
    parser.add_argument('goals', help='file of goals as for ik_batch, in any fixed frame')
    add_columns(parser)
    group = parser.add_argument_group('region', 'where the base may be, in the frame of the goals')
    for name, unit, default in BOUNDS:
        group.add_argument(
            f'--{name}', type=float, nargs=2, metavar=('MIN', 'MAX'),
            default=default, required=default is None,
            help=f'[{unit}]' + (f' (default: {default[0]:g} {default[1]:g})' if default else ''),
        )  # fmt: skip
    group.add_argument(
        '--mounting', choices=MOUNTINGS, default='table',
        help='what the base stands on (default: table); a wall has its free side towards +x',
    )  # fmt: skip
    parser.add_argument('--output', metavar='NAME', help='NAME.json and NAME.png are written')
    return run(_place, parser.parse_args(given))


def _place(arguments: argparse.Namespace) -> int:
    for package in ('pyarrow', 'tqdm', *(['matplotlib'] if arguments.output else [])):
        require(package, 'ik_place')
    region = _region(arguments)
    output = None if arguments.output is None else Path(arguments.output)
    if output is not None and not (output.parent.is_dir() and os.access(output.parent, os.W_OK)):
        raise InputError(f'cannot write "{output}": its folder must exist and be writable')
    arm = read_arm(arguments)
    warn(arm)
    rows, told = _goals(arguments, arm)
    say(f'{arm.describe()}\n{len(rows.positions)} goals: {told}')
    solver = IkSolver(arm, compile='wait')
    search = PlacementSearch(solver, rows.positions, rows.directions, region)
    start = time.monotonic()
    with ProgressBar(len(region.grid(GRID, arm.reach)[0]), 'placements') as progress:
        best, coarse, steps = search.best(COUNT, progress.add)
    say(_table(best, len(rows.positions)))
    say(_bound(steps, len(coarse), time.monotonic() - start))
    if output is not None:
        _write(output, arm, best, coarse, rows.positions)
        say(f'wrote {output}.json and {output}.png')
    return 0 if best and not best[0].unmet else 1


def _region(arguments: argparse.Namespace) -> Region:
    yaw = np.radians(arguments.yaw)
    if yaw[1] - yaw[0] > 2.0 * math.pi + 1e-9:
        raise InputError(f'--yaw spans more than a turn: {arguments.yaw[0]:g} {arguments.yaw[1]:g} degrees')
    bounds = np.array([arguments.x, arguments.y, arguments.z, yaw])
    return Region(bounds[:, 0], bounds[:, 1], MOUNTINGS[arguments.mounting])


def _goals(arguments: argparse.Namespace, arm: Arm) -> tuple[GoalRows, str]:
    """Return the goals, and which columns they are from. Raises InputError."""
    from ik_node.batch.goal_columns import GoalColumns, read_rows
    from ik_node.batch.goal_files import open_goals

    file = open_goals(arguments.goals)
    columns = GoalColumns.found(file.names, given_columns(arguments))
    batch = next(file.batches(columns.names, MOST_GOALS + 1), None)
    if batch is None or batch.num_rows > MOST_GOALS:
        raise InputError(f'"{file.path}" must hold 1 to {MOST_GOALS} goals')
    rows = read_rows(batch, columns, arm)
    if rows.wrong:
        row, sentence = next(iter(sorted(rows.wrong.items())))
        raise InputError(f'row {row} of "{file.path}" holds no goal: {sentence}')
    return rows, described(columns)


def _table(best: Sequence[Placement], goals: int) -> str:
    """Return a line for each placement."""
    rows = [('', 'x [m]', 'y [m]', 'z [m]', 'yaw [deg]', 'met', 'to limits', 'unmet rows')]
    for rank, one in enumerate(best, 1):
        x, y, z, yaw = one.base
        unmet = ' '.join(map(str, one.unmet[:8])) + (' ...' if len(one.unmet) > 8 else '')
        place = (f'{x:.3f}', f'{y:.3f}', f'{z:.3f}', f'{math.degrees(yaw):.1f}')
        rows.append((str(rank), *place, f'{goals - len(one.unmet)}/{goals}', f'{one.margin:.3f}', unmet))
    lines = [' '.join(cell.rjust(9) for cell in row[:-1]) + f'  {row[-1]}' for row in rows]
    return '\n'.join(line.rstrip() for line in lines)


def _bound(steps: Array, count: int, seconds: float) -> str:
    """Return what the search cannot have missed."""
    shift, turn = 1e3 * float(steps[:3].max()) / 2.0, math.degrees(float(steps[3])) / 2.0
    return (
        f'{count} placements of a grid, the best of them improved, in {seconds:.1f} s. If any placement '
        f'meets every goal even when moved by {shift:.0f} mm along each axis and by {turn:.1f} degrees, '
        'one that meets every goal was found. Narrower ones may have been missed.'
    )


def _write(
    output: Path, arm: Arm, best: Sequence[Placement], coarse: Sequence[Placement], positions: Array
) -> None:
    from ik_node.cli.place_picture import draw  # matplotlib takes a second to load

    data = {
        'arm': arm.name,
        'base_link': arm.base_link,
        'placements': [
            {
                **dict(zip(('x', 'y', 'z', 'yaw'), one.base.tolist(), strict=True)),
                'unmet': one.unmet,
                'margin': one.margin,
            }
            for one in best
        ],
    }
    try:
        Path(f'{output}.json').write_text(json.dumps(data, indent=2) + '\n', encoding='utf-8')
        draw(f'{arm.name}: where the base may stand', coarse, best, positions).savefig(
            f'{output}.png', dpi=120
        )
    except OSError as error:
        raise InputError(f'cannot write "{output}": {error.strerror}') from None
