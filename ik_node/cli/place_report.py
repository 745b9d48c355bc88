# SPDX-License-Identifier: Apache-2.0
"""What ik_place prints and writes about placements."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np

from ik_node.checks import Array
from ik_node.model.arm import Arm
from ik_node.placement.placement import Placement
from ik_node.placement.region import NAMES
from ik_node.placement.search import Judged

MOST_ROWS = 8  # of unmet goals that are named


def table(best: Sequence[Placement], goals: int, paths: bool) -> str:
    """Return a line for each placement."""
    tilted = any(one.base[3:5].any() for one in best)
    angles = ('roll', 'pitch', 'yaw') if tilted else ('yaw',)
    head = ['', 'x [m]', 'y [m]', 'z [m]', *(f'{name} [deg]' for name in angles), 'met']
    head += ['to limits', 'to reach', 'clearance', *(['jumps'] if paths else []), 'unmet rows']
    rows = [head]
    for rank, one in enumerate(best, 1):
        turned = [f'{math.degrees(one.base[NAMES.index(name)]):.1f}' for name in angles]
        unmet = ' '.join(map(str, one.unmet[:MOST_ROWS])) + (' ...' if len(one.unmet) > MOST_ROWS else '')
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


def said_of_search(
    grid: Judged, steps: Array, excluded: float, unmet: int, collision: bool, seconds: float
) -> str:
    """Return what the search can have missed and what not.

    excluded: as from excluded_share; unmet: goals that the best placement leaves unmet.
    """
    text = f'{len(grid.bases)} placements of a grid, and more between them, in {seconds:.1f} s. '
    if unmet == 0:
        text += 'Every goal is met; a placement farther from the limits may exist'
    elif not steps.any():
        text += 'The region is one placement'
    else:
        shift, turn = 1e3 * float(steps[:3].max()) / 2.0, math.degrees(float(steps[3:].max())) / 2.0
        room = ' and '.join(
            part for part in (f'{shift:.0f} mm' * bool(shift), f'{turn:.1f} degrees' * bool(turn)) if part
        )
        text += (
            f'In {100.0 * excluded:.0f} % of the region no placement meets more goals: too many are out of '
            f'reach. In the rest, a placement with less room than {room} around it may have been missed'
        )
    if grid.complete < 1.0:
        share = 100.0 * (1.0 - grid.complete)
        text += f'. {share:.0f} % of the goals tried were judged by descents, which may miss solutions'
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
