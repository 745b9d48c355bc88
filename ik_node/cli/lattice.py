# SPDX-License-Identifier: Apache-2.0
"""Lattices of positions over all that an arm reaches."""

from __future__ import annotations

import math

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.model.arm import Arm

ACROSS = 32  # positions along the largest side, about, unless a resolution is given
SAMPLES = 20_000  # configurations, for the extent of the workspace
MARGIN = 0.03  # of the extent, left free around it
MOST = 2_000_000  # positions of a lattice: 0.3 GB; more are assumed to be a mistake


def extent(arm: Arm) -> tuple[Array, Array]:
    """Return the lower and upper corner (3,) [m] of a box around the workspace, base frame, with a margin."""
    points = np.array([arm.fk(q)[0] for q in arm.sample(np.random.default_rng(0), SAMPLES)])
    low, high = points.min(axis=0), points.max(axis=0)
    margin = MARGIN * (high - low).max()
    return low - margin, high + margin


def multiples(low: float, high: float, step: float) -> Array:
    """Return the multiples of step from about low to about high."""
    return np.arange(math.floor(low / step), math.ceil(high / step) + 1) * np.float64(step) + 0.0  # no -0


def lattice(arm: Arm, resolution: float | None) -> tuple[Array, Array, Array]:
    """Return x, y and z [m] of positions over the workspace: multiples of resolution [m].

    None: as many as ACROSS says. Raises InputError for a resolution that is not positive or too fine.
    """
    low, high = extent(arm)
    if resolution is None:
        resolution = float(f'{(high - low).max() / ACROSS:.0e}')  # one digit
    if not 0.0 < resolution < math.inf:
        raise InputError(f'--resolution must be greater than 0, got {resolution:g}')
    positions = math.prod(side / resolution + 2.0 for side in (high - low).tolist())
    if positions > MOST:
        raise InputError(
            f'--resolution {resolution:g} m makes {positions:.1e} positions, at most {MOST:.1e} are allowed'
        )
    x, y, z = (multiples(start, end, resolution) for start, end in zip(low, high, strict=True))
    return x, y, z
