# SPDX-License-Identifier: Apache-2.0
"""What other lengths of links buy, for arms that have them as xacro arguments."""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError, join_names
from ik_node.model.arm import Arm
from ik_node.model.urdf.link_lengths import LinkLengths
from ik_node.placement.region import Region
from ik_node.placement.search import Judged, PlacementSearch

VALUES = 5  # of each length, from the least to the largest
MOST = 125  # arms
GRID = 4_000  # placements for each
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
    if VALUES ** len(ranges) > MOST:
        raise InputError(f'--length: at most {int(math.log(MOST, VALUES))} at a time, got {len(ranges)}')
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
        return search.best(*search.coarse(GRID, lambda _: None))

    yield f'other lengths, each with {GRID} placements of a grid, without self-collision:'
    yield ' '.join(f'{name} [m]'.rjust(16) for name in ranges) + '     met   to limits'
    for values in itertools.product(*(np.linspace(*span, VALUES) for span in ranges.values())):
        met, distance = _told(best(**dict(zip(ranges, values, strict=True))), len(positions))
        yield ' '.join(f'{value:16.3f}' for value in values) + f'{met:>8}{distance:>12}'
    now = _told(best(), len(positions))
    for name in ranges:
        more = _told(best(**{name: lengths.values[name] + MORE}), len(positions))
        yield (
            f'{100 * MORE:g} cm more {name} ({lengths.values[name]:g} m): {more[0]} instead of {now[0]} '
            f'goals met, {more[1]} instead of {now[1]} to limits'
        )


def _told(judged: Judged, goals: int) -> tuple[str, str]:
    """Return how many goals the first placement meets, and the distance to the limits."""
    distance = judged.distances[0]
    return f'{goals - judged.unmet[0]}/{goals}', f'{distance:.3f}' if np.isfinite(distance) else '-'
