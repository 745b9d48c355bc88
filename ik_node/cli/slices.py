# SPDX-License-Identifier: Apache-2.0
"""Slices: planes of positions through the workspace of an arm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.model.arm import Arm

POSES = 20_000  # configurations sampled for the extent of the pictures
PLACES_ACROSS = 70  # positions along the larger side, unless a resolution is given
MARGIN = 0.03  # of the extent, left free around it
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


def slices_of(arm: Arm, resolution: float | None, height: float | None, directions: int) -> list[Slice]:
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
