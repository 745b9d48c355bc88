# SPDX-License-Identifier: Apache-2.0
"""Workspace: the box that the tool point may not leave."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ik_node.checks import Array
from ik_node.errors import InputError
from ik_node.model.arm import Arm
from ik_node.solver.workspace_bounds import radial_bounds

AXES = 'xyz'


class Workspace:
    """A box low to high, (3,) each [m], in the base frame. given: by the user, else it is the arm's reach."""

    def __init__(self, low: Array, high: Array, given: bool) -> None:
        self.low, self.high, self.given = low, high, given

    @classmethod
    def of(cls, arm: Arm, corners: Sequence[float]) -> Workspace:
        """Return the box of corners (least x, y, z, largest x, y, z); if all are 0, its reach."""
        if any(corners):
            return cls(np.array(corners[:3]), np.array(corners[3:]), given=True)
        low, high = np.full(3, -np.inf), np.full(3, np.inf)
        for row in radial_bounds(arm):
            low, high = np.maximum(low, row[:3] - row[4]), np.minimum(high, row[:3] + row[4])
        return cls(low, high, given=False)

    @staticmethod
    def check(corners: Sequence[float]) -> None:
        """Raise InputError for corners that span no box."""
        if any(corners) and not all(low < high for low, high in zip(corners[:3], corners[3:], strict=True)):
            raise InputError(
                'parameter workspace must be the least x, y, z and then the largest x, y, z, each greater '
                f'than the least, got {list(corners)}'
            )

    def describe(self) -> str:
        """Return one line for the log."""
        spans = ', '.join(f'{AXES[i]} {self.low[i]:.3f} to {self.high[i]:.3f}' for i in range(3))
        return (
            f'workspace of the tool point [m]: {spans} ({"as given" if self.given else "reach of the arm"})'
        )

    def outside(self, point: Array, slack: float = 0.0) -> str | None:
        """Return by which coordinate a point (3,) is outside by more than slack [m], None if it is inside."""
        for axis, value, low, high in zip(AXES, point.tolist(), self.low, self.high, strict=True):
            if not low - slack <= value <= high + slack:
                return f'{axis} {value:.4g}, allowed: {low:.4g} to {high:.4g}'
        return None

    def around(self, other: Workspace) -> Workspace:
        """Return the smallest box around this one and another."""
        return Workspace(np.minimum(self.low, other.low), np.maximum(self.high, other.high), other.given)

    def reaching(self, point: Array) -> Workspace:
        """Return the smallest box around this one and a point (3,)."""
        return Workspace(np.minimum(self.low, point), np.maximum(self.high, point), self.given)
