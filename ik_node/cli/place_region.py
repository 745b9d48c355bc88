# SPDX-License-Identifier: Apache-2.0
"""The region of ik_place: where the base may be, from the command line."""

from __future__ import annotations

import argparse

import numpy as np

from ik_node.errors import InputError
from ik_node.placement.region import NAMES, Region

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
        group.add_argument(
            f'--{name}', type=float, nargs=2, metavar=('MIN', 'MAX'), help=f'[{unit}]{default}'
        )
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
