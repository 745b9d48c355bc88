# SPDX-License-Identifier: Apache-2.0
"""EliminationForm: one elimination for all solutions of an arm."""

from __future__ import annotations

from dataclasses import dataclass

from ik_node.checks import Array
from ik_node.solver.closed_form import EXACT_TOLERANCE


@dataclass(frozen=True, eq=False)
class EliminationForm:
    """What of the geometry is used, as words, and the constants (k, 15) for kernels.eliminated.

    deviation: rad or share of the length by which the geometry is off. rejected: other forms that the
    geometry suggests, and why they are not used. rough: solutions may be missing where several share a
    root, as at right angles: descents must check.
    """

    name: str
    constants: Array
    deviation: float = 0.0
    rejected: tuple[str, ...] = ()
    rough: bool = False

    @property
    def exact(self) -> bool:
        """Whether no solution can be missing because of the geometry, up to rounding."""
        return self.deviation < EXACT_TOLERANCE
