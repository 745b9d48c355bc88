# SPDX-License-Identifier: Apache-2.0
"""ik_reach: the workspace of an arm, and the share of directions at each position."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from ik_node.errors import InputError
from ik_node.extras import EXTRAS, require
from ik_node.files import write_file
from ik_node.model.arm import Arm
from ik_node.solver.reachable_directions import fibonacci_sphere, reachable_directions
from ik_node.tools.slices import ACROSS, SLICE_ACROSS, Slice, lattice, slices_of

from .reach_volume import Survey, as_netcdf, surveyed
from .self_collision import clearance_of

# directions tried at each position: of slices, and of a volume with its many positions
MAX_DIRECTIONS, MAX_IN_VOLUME = 100_000, 1000
DIRECTIONS, DIRECTIONS_IN_VOLUME = 500, 100


def main(given: Sequence[str] | None = None) -> int:
    """Write the picture and the data; return 0, 2 for an invalid file or argument, 130 after Ctrl-C."""
    parser = arm_parser('ik_reach')
    parser.add_argument(
        '--within',
        type=float,
        default=5.0,
        metavar='DEG',
        help='a direction counts if the tool axis comes within this angle of it with the tool point '
        'exactly at the position (default: 5; an arm with 4 effective DoF can meet few '
        'directions exactly)',
    )
    parser.add_argument(
        '--directions',
        type=int,
        metavar='N',
        help=f'directions tried at each position (default: {DIRECTIONS}, with --volume {DIRECTIONS_IN_VOLUME})',
    )
    parser.add_argument(
        '--resolution',
        type=float,
        metavar='M',
        help=f'distance between positions [m] (default: {SLICE_ACROSS} positions across the workspace, with '
        f'--volume about {ACROSS})',
    )
    parser.add_argument(
        '--height', type=float, metavar='Z', help='height of the xy plane [m] (default: that of joint 2)'
    )
    volume = parser.add_argument_group('whole workspace instead of two planes')
    volume.add_argument(
        '--volume',
        action='store_true',
        help='survey the whole workspace in three dimensions, leaving out configurations in self-collision, '
        'with the distance to the joint limits and the smallest singular value too',
    )
    volume.add_argument(
        '--tolerance',
        type=float,
        default=0.0,
        metavar='SHARE',
        help='with --volume: positions between which no value changes by more than this share of its range '
        'are interpolated (default: 0, which surveys every position)',
    )
    volume.add_argument(
        '--solutions',
        action='store_true',
        help='with --volume: count the solutions of each direction too, which takes many times as long',
    )
    parser.add_argument(
        '--output',
        metavar='NAME',
        help='write NAME.png and NAME.npz (with --volume: NAME.png and NAME.nc, NetCDF); default NAME: the '
        'name of the arm and _reach',
    )
    add_overwrite(parser)
    return run(_reach, parser.parse_args(given))


def _reach(arguments: argparse.Namespace) -> int:
    for package in (*EXTRAS['pictures'], *(EXTRAS['scipy'] if arguments.volume else ())):
        require(package, 'ik_reach')
    max_directions = MAX_IN_VOLUME if arguments.volume else MAX_DIRECTIONS
    if arguments.directions is None:
        arguments.directions = DIRECTIONS_IN_VOLUME if arguments.volume else DIRECTIONS
    for name, high in (('within', 180.0), ('directions', max_directions)):
        value = getattr(arguments, name)
        if not 0 < value <= high:
            raise InputError(f'--{name} must be greater than 0 and at most {high:g}, got {value:g}')
    if not 0.0 <= arguments.tolerance < 1.0:
        raise InputError(f'--tolerance must be at least 0 and below 1, got {arguments.tolerance:g}')
    if arguments.height is not None and not math.isfinite(arguments.height):
        raise InputError(f'--height must be finite, got {arguments.height:g}')
    arm = read_arm(arguments)
    warn(arm)
    kinds = '.png', '.nc' if arguments.volume else '.npz'
    output = output_name(arguments.output or f'{arm.name}_reach'.replace('/', '_'), *kinds)
    written = [Path(f'{output}{kind}') for kind in kinds]
    check_outputs(written, [arguments.description_file], arguments.overwrite)
    within = math.radians(arguments.within)
    if arguments.volume:
        return _survey(arm, arguments, within, output)
    if arguments.solutions:
        raise InputError('--solutions needs --volume')
    slices = slices_of(arm, arguments.resolution, arguments.height, arguments.directions)
    positions = np.concatenate([plane.positions for plane in slices])
    directions = fibonacci_sphere(arguments.directions)
    say(arm.describe())
    there = np.empty(len(positions), dtype=np.bool_)
    reached = np.empty((len(positions), len(directions)), dtype=np.bool_)
    with ProgressBar(len(positions), 'positions') as progress:
        for rows, *part in reachable_directions(arm, positions, directions, within):
            there[rows], reached[rows] = part
            progress.add(len(part[0]))
    shares = np.where(there, reached.mean(axis=1), np.nan)
    _save(output, arm, slices, positions, directions, reached, shares, within)
    at = 0
    for plane in slices:
        say(_summary(plane, shares[at : at + len(plane.positions)]))
        at += len(plane.positions)
    say(f'wrote {output}.png and {output}.npz')
    return 0


def _survey(arm: Arm, arguments: argparse.Namespace, within: float, output: str) -> int:
    """Survey the whole workspace; write output.nc and output.png; return the exit code. within [rad]."""
    from ik_node.tools.pictures import draw_volume  # matplotlib takes a second to load

    x, y, z = lattice(arm, arguments.resolution)
    say(arm.describe())
    clearance, note = clearance_of(arguments.description_file, arm, arguments.xacro_args)
    say(note)
    survey = Survey(arm, arguments.directions, within, clearance, arguments.solutions)
    with ProgressBar(len(x) * len(y) * len(z), 'positions') as progress:
        volume = surveyed(survey, x, y, z, arguments.tolerance, progress.add)
    content = as_netcdf(volume, arm, arguments.directions, within, clearance is not None)
    write_file(f'{output}.nc', lambda file: file.write(content))
    figure = draw_volume(arm, volume, arguments.height, within)
    write_file(f'{output}.png', lambda file: figure.savefig(file, format='png', dpi=110))
    reached = volume.share[~np.isnan(volume.share)]
    average = 100.0 * reached.mean() if len(reached) else 0.0
    count = int(volume.surveyed.sum())
    between = '' if count == volume.share.size else f', {count} of them surveyed and the others interpolated'
    say(
        f'{volume.share.size} positions, {1e3 * (x[1] - x[0]):g} mm apart{between}: {len(reached)} reached, '
        f'{average:.1f} % of all directions on average'
    )
    say(f'wrote {output}.nc and {output}.png')
    return 0


def _summary(plane: Slice, shares: Array) -> str:
    there = shares[~np.isnan(shares)]
    if len(there) == 0:
        return f'{plane.name}: no position reached'
    best = int(np.nanargmax(shares))
    position = ', '.join(f'{value:.3f}' for value in plane.positions[best])
    return (
        f'{plane.name}: {len(there)} of {len(shares)} positions, {100 * there.mean():.1f} % of all '
        f'directions on average, {100 * shares[best]:.1f} % at ({position}) m'
    )


def _save(
    output: str,
    arm: Arm,
    slices: Sequence[Slice],
    positions: Array,
    directions: Array,
    reached: NDArray[np.bool_],
    shares: Array,
    within: float,
) -> None:

    from ik_node.tools.pictures import draw  # matplotlib takes a second to load

    figure = draw(arm, slices, shares, within)
    data: dict[str, Any] = {
        'positions': positions,
        'fractions': shares,
        'directions': directions,
        'reached': reached,
        'plane': np.concatenate([[plane.name] * len(plane.positions) for plane in slices]),
        'within': within,
        'arm': arm.name,
        'base_link': arm.base_link,
        'tip_link': arm.tip_link,
        'joint_names': np.array(arm.joint_names),
        'tool_axis': arm.tool_axis,
        'tool_point': arm.tool_point,
    }
    write_file(f'{output}.npz', lambda file: np.savez_compressed(file, **data))
    write_file(f'{output}.png', lambda file: figure.savefig(file, format='png', dpi=150))
