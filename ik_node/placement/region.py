# SPDX-License-Identifier: Apache-2.0
"""Region: the placements of a base that are allowed."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError

NAMES = ('x', 'y', 'z', 'yaw')


@dataclass(frozen=True)
class Region:
    """Bounds of x, y, z [m] and yaw [rad] of the base in the frame of the goals.

    A placement is an array (4,) of these; the base turns about its z axis. lower, upper (4,). R_up (3, 3):
    the attitude of the base at yaw 0, for walls and ceilings.
    """

    lower: Array
    upper: Array
    R_up: Array

    def __post_init__(self) -> None:
        """Raise InputError for bounds that are not finite or crossed."""
        for name, low, high in zip(NAMES, self.lower, self.upper, strict=True):
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise InputError(
                    f'--{name} must be two finite numbers, the lower one first, got {low:g} {high:g}'
                )

    def rotation(self, yaw: float) -> Array:
        """Return the attitude (3, 3) of the base: it turns about its own z axis."""
        c, s = math.cos(yaw), math.sin(yaw)
        R: Array = self.R_up @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        return R

    def grid(self, most: int, reach: float) -> tuple[Array, Array]:
        """Return placements (N, 4), about `most` at equal distances, and these distances (4,).

        reach [m]: at which a turn moves the tool as far as a shift.
        """
        size = (self.upper - self.lower) * (1.0, 1.0, 1.0, reach)
        wide = size > 0.0
        step = (float(np.prod(size[wide])) / most) ** (1.0 / max(1, int(wide.sum()))) if wide.any() else 1.0
        counts = np.where(wide, np.maximum(2, np.round(size / step).astype(int) + 1), 1)
        axes = [
            np.linspace(low, high, count)
            for low, high, count in zip(self.lower, self.upper, counts, strict=True)
        ]
        steps = np.array([axis[1] - axis[0] if len(axis) > 1 else 0.0 for axis in axes])
        return np.array(list(itertools.product(*axes))), steps
