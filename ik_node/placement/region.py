# SPDX-License-Identifier: Apache-2.0
"""Region: the placements of a base that are allowed."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.errors import InputError

NAMES = ('x', 'y', 'z', 'roll', 'pitch', 'yaw')
SIZE = len(NAMES)
TURN = 2.0 * math.pi
WHOLE = 1e-9  # rad by which a range may miss a whole turn


@dataclass(frozen=True)
class Region:
    """Bounds of x, y, z [m] and roll, pitch, yaw [rad] of the base.

    A placement is an array (6,) of these. x, y, z are along the columns of axes (3, 3) from origin (3,) [m]
    in the frame of the goals, for rails; roll, pitch and yaw turn about the fixed axes of R_up (3, 3), the
    attitude of the base at zero, for walls and ceilings. lower, upper (6,). A range of a whole turn has no
    ends.
    """

    lower: Array
    upper: Array
    R_up: Array = field(default_factory=lambda: np.eye(3))
    origin: Array = field(default_factory=lambda: np.zeros(3))
    axes: Array = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        """Raise InputError for bounds that are not finite, crossed, or more than a turn."""
        for k, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            name, unit = NAMES[k], math.degrees(1.0) if k >= 3 else 1.0
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise InputError(
                    f'--{name} must be two finite numbers, the lower one first, '
                    f'got {unit * low:g} {unit * high:g}'
                )
            if k >= 3 and high - low > TURN + WHOLE:
                raise InputError(f'--{name} spans more than a turn: {unit * low:g} {unit * high:g} degrees')

    @property
    def size(self) -> Array:
        """The ranges (6,) [m, rad]."""
        return self.upper - self.lower

    @property
    def periodic(self) -> NDArray[np.bool_]:
        """Which ranges (6,) are whole turns."""
        return np.array([k >= 3 and span > TURN - WHOLE for k, span in enumerate(self.size)])

    def poses(self, bases: Array) -> tuple[Array, Array]:
        """Return the positions (N, 3) and attitudes (N, 3, 3) of bases (N, 6) in the frame of the goals."""
        (cr, cp, cy), (sr, sp, sy) = np.cos(bases[:, 3:]).T, np.sin(bases[:, 3:]).T
        R = np.empty((len(bases), 3, 3))
        R[:, 0] = np.column_stack([cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr])
        R[:, 1] = np.column_stack([sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr])
        R[:, 2] = np.column_stack([-sp, cp * sr, cp * cr])
        return self.origin + bases[:, :3] @ self.axes.T, self.R_up @ R

    def within(self, bases: Array) -> Array:
        """Return bases (N, 6) brought into the bounds: whole turns around, other ranges to their ends."""
        turns = self.lower + np.mod(bases - self.lower, TURN)
        return np.where(self.periodic, turns, np.clip(bases, self.lower, self.upper))

    def apart(self, bases: Array, base: Array) -> Array:
        """Return how far (N, 6) bases (N, 6) are from base (6,), the short way round."""
        gaps = np.abs(bases - base)
        return np.where(self.periodic, np.minimum(gaps, TURN - gaps), gaps)

    def grid(self, most: int, reach: float) -> tuple[Array, Array]:
        """Return placements (N, 6), about `most` at equal distances, and these distances (6,).

        reach [m]: at which a turn moves the tool as far as a shift.
        """
        size = self.size * np.repeat([1.0, reach], 3)
        wide = size > 0.0
        step = (float(np.prod(size[wide])) / most) ** (1.0 / max(1, int(wide.sum()))) if wide.any() else 1.0
        # Half a step is left at both ends, so that each placement is the middle of a cell of the same size.
        counts = np.where(wide, np.maximum(2, np.round(size / step).astype(int)), 1)
        steps = np.where(wide, self.size / counts, 0.0)
        axes = [
            low + width * (np.arange(count) + 0.5) if width else np.array([low])
            for low, width, count in zip(self.lower, steps, counts, strict=True)
        ]
        return np.array(list(itertools.product(*axes))), steps

    def spread(self, count: int) -> Array:
        """Return placements (count, 6) spread evenly, as an additive recurrence of Kronecker's kind.

        Steps are powers of the root of x^(d + 1) = x + 1 for d ranges, which gives few gaps (Roberts 2018).
        """
        wide = np.flatnonzero(self.size > 0.0)
        root = 2.0
        for _ in range(50):
            root = (1.0 + root) ** (1.0 / (len(wide) + 1))
        shares = np.zeros((count, SIZE))
        steps = root ** -np.arange(1.0, len(wide) + 1)
        shares[:, wide] = np.mod(0.5 + np.arange(1, count + 1)[:, None] * steps, 1.0)
        return self.lower + shares * self.size
