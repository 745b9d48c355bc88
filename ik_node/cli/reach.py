"""ik_reach: the workspace of an arm, and the share of directions at each position."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.cli.arguments import arm_parser, read_arm, run, say, warn
from ik_node.cli.progress import Progress
from ik_node.errors import InputError
from ik_node.extras import EXTRAS, require
from ik_node.model.arm import Arm
from ik_node.solver.reachability import fibonacci_sphere, reachable_directions

POSES = 20_000  # configurations sampled for the extent of the pictures
PLACES_ACROSS = 70  # positions along the larger side, unless a resolution is given
MARGIN = 0.03  # of the extent, left free around it
MOST_DIRECTIONS = 100_000
MOST_ANSWERS = 1e9  # positions times directions, one byte each: more are assumed to be a mistake


@dataclass(frozen=True)
class Slice:
    """A grid of positions in a plane: its axes across and up (0 x, 1 y, 2 z), its level on the third."""

    across: int
    up: int
    across_values: Array  # (a,) [m]
    up_values: Array  # (b,) [m]
    level: float  # m

    @property
    def third(self) -> int:
        """The axis normal to the plane."""
        return 3 - self.across - self.up

    @property
    def places(self) -> Array:
        """The positions (b a, 3) [m], row by row from below."""
        grid = np.full((len(self.up_values), len(self.across_values), 3), self.level)
        grid[:, :, self.across] = self.across_values
        grid[:, :, self.up] = self.up_values[:, None]
        return grid.reshape(-1, 3)

    @property
    def name(self) -> str:
        """The plane as text."""
        return f'{"xyz"[self.across]}{"xyz"[self.up]} plane at {"xyz"[self.third]} = {self.level:g} m'


def main(given: Sequence[str] | None = None) -> int:
    """Write the picture and the data; return 0, 2 for an invalid file or argument, 130 after Ctrl-C."""
    parser = arm_parser(
        'Draw the workspace of an arm and the share of all directions that it can take at each position.'
    )
    parser.add_argument(
        '--within',
        type=float,
        default=5.0,
        metavar='DEG',
        help='a direction counts if the tool axis is within this angle of it, with the tool point exactly at '
        'the position (default: 5; an arm with 4 effective DoF can meet few directions exactly)',
    )
    parser.add_argument(
        '--directions',
        type=int,
        default=500,
        metavar='N',
        help='directions tried at each position (default: 500)',
    )
    parser.add_argument(
        '--resolution',
        type=float,
        metavar='M',
        help=f'distance between positions [m] (default: {PLACES_ACROSS} positions across the workspace)',
    )
    parser.add_argument(
        '--height', type=float, metavar='Z', help='height of the xy plane [m] (default: that of joint 2)'
    )
    parser.add_argument(
        '--output',
        metavar='NAME',
        help='NAME.png and NAME.npz are written (default: the name of the arm and _reach)',
    )
    return run(_reach, parser.parse_args(given))


def _reach(arguments: argparse.Namespace) -> int:
    for package in EXTRAS['pictures']:
        require(package, 'ik_reach')
    for name, high in (('within', 180.0), ('directions', MOST_DIRECTIONS)):
        value = getattr(arguments, name)
        if not 0 < value <= high:
            raise InputError(f'--{name} must be greater than 0 and at most {high:g}, got {value:g}')
    if arguments.height is not None and not math.isfinite(arguments.height):
        raise InputError(f'--height must be finite, got {arguments.height:g}')
    arm = read_arm(arguments)
    warn(arm)
    output = _output(arguments.output or f'{arm.name}_reach'.replace('/', '_'))
    slices = _slices(arm, arguments.resolution, arguments.height, arguments.directions)
    places = np.concatenate([plane.places for plane in slices])
    directions = fibonacci_sphere(arguments.directions)
    within = math.radians(arguments.within)
    say(arm.describe())
    there = np.empty(len(places), dtype=np.bool_)
    reached = np.empty((len(places), len(directions)), dtype=np.bool_)
    with Progress(len(places), 'positions') as progress:
        for rows, *part in reachable_directions(arm, places, directions, within):
            there[rows], reached[rows] = part
            progress.add(len(part[0]))
    shares = np.where(there, reached.mean(axis=1), np.nan)
    _save(output, arm, slices, places, directions, reached, shares, within)
    at = 0
    for plane in slices:
        say(_summary(plane, shares[at : at + len(plane.places)]))
        at += len(plane.places)
    say(f'wrote {output}.png and {output}.npz')
    return 0


def _output(name: str) -> str:
    """Return the output name without suffix. Raises InputError for a folder that cannot be written to."""
    path = Path(name)
    if path.suffix in ('.png', '.npz'):
        path = path.with_suffix('')
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f'--output: cannot write to the folder "{path.parent}"')
    return str(path)


def _slices(arm: Arm, resolution: float | None, height: float | None, directions: int) -> list[Slice]:
    """Return the vertical plane through joint 1 that the arm faces and a horizontal one, over the reach."""
    points = np.array([arm.fk(q)[0] for q in arm.sample(np.random.default_rng(0), POSES)])
    low, high = points.min(axis=0), points.max(axis=0)
    margin = MARGIN * (high - low).max()
    low, high = low - margin, high + margin
    step = (high - low).max() / PLACES_ACROSS if resolution is None else resolution
    if not 0.0 < step < math.inf:
        raise InputError(f'--resolution must be greater than 0, got {step:g}')
    joints = arm.skeleton(arm.middle)
    forward = int(np.argmax(np.abs(joints[-1] - joints[0])[:2]))
    sides = np.floor((high - low) / step) + 2
    answers = sides[forward] * (sides[1 - forward] + sides[2]) * directions
    if answers > MOST_ANSWERS:
        raise InputError(
            f'--resolution {step:g} m with {directions} directions makes {answers:.1g} pairs of position and '
            f'direction, {MOST_ANSWERS:.1g} are allowed'
        )
    x, y, z = (_values(start, end, step) for start, end in zip(low, high, strict=True))
    return [
        Slice(forward, 2, (x, y)[forward], z, _to_mm(joints[0][1 - forward])),
        Slice(0, 1, x, y, _to_mm(joints[1][2]) if height is None else height),
    ]


def _to_mm(level: float) -> float:
    """Return the level rounded to millimetres, never -0."""
    return round(float(level), 3) + 0.0


def _values(start: float, end: float, step: float) -> Array:
    """Multiples of step from about start to about end."""
    return np.arange(math.floor(start / step), math.ceil(end / step) + 1) * np.float64(step) + 0.0  # no -0


def _summary(plane: Slice, shares: Array) -> str:
    there = shares[~np.isnan(shares)]
    if len(there) == 0:
        return f'{plane.name}: no position reached'
    best = int(np.nanargmax(shares))
    place = ', '.join(f'{value:.3f}' for value in plane.places[best])
    return (
        f'{plane.name}: {len(there)} of {len(shares)} positions, {100 * there.mean():.1f} % of all '
        f'directions on average, {100 * shares[best]:.1f} % at ({place}) m'
    )


def _save(
    output: str,
    arm: Arm,
    slices: Sequence[Slice],
    places: Array,
    directions: Array,
    reached: NDArray[np.bool_],
    shares: Array,
    within: float,
) -> None:
    from ik_node.cli.reach_picture import draw  # matplotlib takes a second to load

    figure = draw(arm, slices, shares, within)
    data: dict[str, Any] = {
        'positions': places,
        'fractions': shares,
        'directions': directions,
        'reached': reached,
        'plane': np.concatenate([[plane.name] * len(plane.places) for plane in slices]),
        'within': within,
        'arm': arm.name,
        'base_link': arm.base_link,
        'tip_link': arm.tip_link,
        'joint_names': np.array(arm.joint_names),
        'tool_axis': arm.tool_axis,
        'tool_point': arm.tool_point,
    }
    _write(f'{output}.npz', lambda file: np.savez_compressed(file, **data))
    _write(f'{output}.png', lambda file: figure.savefig(file, format='png', dpi=150))


def _write(name: str, content: Callable[[IO[bytes]], None]) -> None:
    """Write a file completely or not at all."""
    part = Path(f'{name}.part')
    try:
        with part.open('wb') as file:
            content(file)
        part.replace(name)
    except OSError as error:
        raise InputError(f'cannot write "{name}": {error.strerror}') from None
    finally:
        part.unlink(missing_ok=True)
