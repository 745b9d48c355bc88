# SPDX-License-Identifier: Apache-2.0
"""Slices: planes of positions through the workspace of an arm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.model.arm import Arm

ACROSS = 32  # positions along the largest side, about, unless a resolution is given
SAMPLES = 20_000  # configurations, for the extent of the workspace
MARGIN = 0.03  # of the extent, left free around it
MAX_POSITIONS = 2_000_000  # positions of a lattice: 0.3 GB; more are assumed to be a mistake


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
    if positions > MAX_POSITIONS:
        raise InputError(
            f'--resolution {resolution:g} m makes {positions:.1e} positions, at most {MAX_POSITIONS:.1e} are allowed'
        )
    x, y, z = (multiples(start, end, resolution) for start, end in zip(low, high, strict=True))
    return x, y, z


SLICE_ACROSS = 70  # positions along the larger side, unless a resolution is given
MAX_PAIRS = 1e9  # positions times directions, one byte each: more are assumed to be a mistake


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
    def positions(self) -> Array:
        """The positions (b a, 3) [m], row by row from below."""
        grid = np.full((len(self.up_values), len(self.across_values), 3), self.level)
        grid[:, :, self.across] = self.across_values
        grid[:, :, self.up] = self.up_values[:, None]
        return grid.reshape(-1, 3)

    @property
    def name(self) -> str:
        """The plane as text."""
        return f'{"xyz"[self.across]}{"xyz"[self.up]} plane at {"xyz"[self.third]} = {self.level:g} m'


def slices_of(arm: Arm, resolution: float | None, height: float | None, directions: int) -> list[Slice]:
    """Return the vertical plane through joint 1 that the arm faces and a horizontal one, over the reach."""
    low, high = extent(arm)
    step = (high - low).max() / SLICE_ACROSS if resolution is None else resolution
    if not 0.0 < step < math.inf:
        raise InputError(f'--resolution must be greater than 0, got {step:g}')
    planes = planes_of(arm, height)
    forward = planes[0][0]
    sides = np.floor((high - low) / step) + 2
    answers = sides[forward] * (sides[1 - forward] + sides[2]) * directions
    if answers > MAX_PAIRS:
        raise InputError(
            f'--resolution {step:g} m with {directions} directions makes {answers:.1g} pairs of position and '
            f'direction, {MAX_PAIRS:.1g} are allowed'
        )
    axes = [multiples(start, end, step) for start, end in zip(low, high, strict=True)]
    return [Slice(across, up, axes[across], axes[up], level) for across, up, level in planes]


def planes_of(arm: Arm, height: float | None) -> tuple[tuple[int, int, float], ...]:
    """Return (axis across, axis up, level [m]) of both planes of slices_of; height [m] of the second."""
    joints = arm.skeleton(arm.middle)
    forward = int(np.argmax(np.abs(joints[-1] - joints[0])[:2]))
    level = _to_mm(joints[1][2]) if height is None else height
    return (forward, 2, _to_mm(joints[0][1 - forward])), (0, 1, level)


def _to_mm(level: float) -> float:
    """Return the level rounded to millimetres, never -0."""
    return round(float(level), 3) + 0.0
